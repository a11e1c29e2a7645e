//! Whitening of advantages. In: the advantages of all trainable tokens of the **whole** batch (masked tokens already
//! left out). Out: the same with mean 0 and sample standard deviation 1.

/// Keeps a batch of equal advantages at 0 instead of dividing by 0; too small to show in the promised digits.
const STD_FLOOR: f64 = 1e-8;

/// Mean and sample standard deviation (n − 1), two passes; (0, 0) for nothing, (x, 0) for one number.
pub fn mean_std(values: &[f64]) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (mean, (squares / (values.len() - 1) as f64).sqrt())
}

/// Whitens in place; below two tokens nothing changes.
pub fn whiten(values: &mut [f64]) {
    if values.len() < 2 {
        return;
    }
    let (mean, std) = mean_std(values);
    values.iter_mut().for_each(|x| *x = (*x - mean) / (std + STD_FLOOR));
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    #[test] // numerics table, row 9; the control that lets the masked 100 in differs
    fn only_trainable_tokens_sample_std() {
        let (all, mask) = ([1., 2., 3., 100.], [true, true, true, false]);
        let mut kept: Vec<f64> = all.iter().zip(mask).filter(|(_, m)| *m).map(|(x, _)| *x).collect();
        whiten(&mut kept);
        assert_close(&kept, &[-1., 0., 1.]);
        let mut control = all;
        whiten(&mut control);
        assert!((control[0] + 1.).abs() > 0.1);
    }

    #[test]
    fn not_below_two_tokens_and_finite_when_equal() {
        let mut one = [7.];
        whiten(&mut one);
        assert_eq!(one, [7.]);
        let mut equal = [3.; 4];
        whiten(&mut equal);
        assert_eq!(equal, [0.; 4]);
    }
}
