//! How much of the returns the critic explains. In: returns and values of trainable tokens. Out: at most 1.

/// 1 − Var(R − V) / Var(R); None for fewer than two tokens or constant returns, where it is undefined.
pub fn explained_variance(returns: &[f64], values: &[f64]) -> Option<f64> {
    let residuals: Vec<f64> = returns.iter().zip(values).map(|(r, v)| r - v).collect();
    let total = variance(returns);
    (returns.len() > 1 && total > 1e-12).then(|| 1.0 - variance(&residuals) / total)
}

fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    #[test] // numerics table, row 23
    fn as_in_the_table() {
        assert_close(&[explained_variance(&[1., 0., 1., 0.], &[0.8, 0.3, 0.6, 0.1]).unwrap()], &[0.71]);
        assert_eq!(explained_variance(&[1., 1.], &[0., 0.5]), None);
    }
}
