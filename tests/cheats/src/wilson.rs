//! Wilson's interval of a proportion (Wilson 1927), at 95 %.

/// Lower and upper end for `hits` of `n`; the whole range where nothing was tried.
pub fn interval(hits: usize, n: usize) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    const Z: f64 = 1.959_963_984_540_054;
    let (n, p) = (n as f64, hits as f64 / n as f64);
    let middle = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    let low = if hits == 0 { 0.0 } else { (middle - half) / scale };
    let high = if p == 1.0 { 1.0 } else { (middle + half) / scale };
    (low, high)
}

/// `3 of 40 (2.6–19.9 %)`.
pub fn share(hits: usize, n: usize) -> String {
    let (low, high) = interval(hits, n);
    format!("{hits} of {n} ({}–{} %)", percent(low), percent(high))
}

fn percent(x: f64) -> String {
    format!("{:.*}", if x > 0.0 && x < 0.01 { 2 } else { 1 }, 100.0 * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // Newcombe 1998, table I: 81 of 263 and 0 of 20.
        let (low, high) = interval(81, 263);
        assert!((low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5, "{low} {high}");
        let (low, high) = interval(0, 20);
        assert!(low == 0.0 && (high - 0.1611).abs() < 5e-5, "{high}");
        assert_eq!(interval(0, 0), (0.0, 1.0));
        assert_eq!((interval(0, 300).0, interval(7, 7).1), (0.0, 1.0));
        assert_eq!(share(0, 3000), "0 of 3000 (0.0–0.13 %)");
    }
}
