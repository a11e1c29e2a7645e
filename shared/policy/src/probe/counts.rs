//! Whether tokens come back as often as their log-probs promise.
//!
//! In: draws of one prompt and temperature. Out: a fault where they do not. Must hold: where each token's probability
//! has odds within e^±(tolerance/T) of the reported ones, a fault is found with a probability of at most e^−limit.
//!
//! Before each draw the tokens seen so far are known, and with them the probability that the draw is one of them. This
//! is Good's question (1953: the mass of the unseen is that of tokens seen once), asked draw by draw, because then the
//! answer is exact: bets on it at the promised odds multiply to a capital whose expectation stays at most 1, and by
//! Ville's inequality (1939) it ever reaches e^limit with a probability of at most e^−limit (Ramdas and others,
//! "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 2023). No approximation for large
//! counts is involved.

use super::Fault;
use super::draws::Draws;
use std::collections::BTreeSet;

/// What the bets believe: that the odds of a token not seen before are e^bet times what the log-probs say, at least or
/// at most.
const BETS: [f64; 8] = [-4.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 4.0];
/// Log-probs of f32 cannot say how far below 1 a probability is, and servers round them; what may be left in any case.
const REST: f64 = 1e-3;
/// Sums may exceed 1 by this much, for the same reason.
const EXCESS: f64 = 1e-2;

/// Which tokens are counted.
#[derive(Clone, Copy)]
pub(super) enum Class<'a> {
    All,
    Only(&'a BTreeSet<u32>),
}

impl Class<'_> {
    fn holds(self, token: u32) -> bool {
        match self {
            Class::All => true,
            Class::Only(tokens) => tokens.contains(&token),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Class::All => "tokens",
            Class::Only(_) => "tokens of the prompt",
        }
    }
}

/// Tokens of the class that were seen, and what probability they have together.
#[derive(Default)]
struct Seen {
    tokens: BTreeSet<u32>,
    /// As reported, and the least and most it can be.
    sum: f64,
    least: f64,
    most: f64,
}

impl Seen {
    fn add(&mut self, token: u32, log_prob: f64, shift: f64) {
        let p = log_prob.exp();
        if self.tokens.insert(token) {
            self.sum += p;
            self.least += with_odds(p, -shift);
            self.most += with_odds(p, shift);
        }
    }

    /// Bounds of the probability that the next draw is none of them.
    fn rest(&self) -> (f64, f64) {
        ((1.0 - self.most).max(0.0), (1.0 - self.least).clamp(REST, 1.0))
    }
}

/// `p` with its odds times e^shift.
fn with_odds(p: f64, shift: f64) -> f64 {
    let up = p * shift.exp();
    up / (1.0 - p + up)
}

/// Bets on each draw; `tolerance` in logits. A fault where the capital reaches e^limit.
pub(super) fn counts(draws: &Draws, class: Class<'_>, tolerance: f64, limit: f64) -> Result<(), Fault> {
    let temperature = draws.temperature;
    let mut seen = Seen::default();
    let (mut capital, mut highest) = ([0.0; BETS.len()], 0.0_f64);
    let (mut found, mut promised) = (0, 0.0);
    for draw in &draws.drawn {
        let is_seen = draw.is_some_and(|(token, _)| seen.tokens.contains(&token));
        found += usize::from(is_seen);
        promised += seen.sum.min(1.0);
        bet(&mut capital, !is_seen, seen.rest());
        highest = highest.max(ln_mean_exp(&capital));
        if let Some((token, log_prob)) = draw.filter(|(token, _)| class.holds(*token)) {
            seen.add(token, log_prob, tolerance / temperature);
        }
        if seen.least > 1.0 + EXCESS {
            return Err(Fault::Mass { temperature, tokens: seen.tokens.len() });
        }
    }
    if highest < limit {
        return Ok(());
    }
    Err(Fault::Counts { temperature, what: class.name(), draws: draws.drawn.len(), found, promised })
}

/// Multiplies each bet's capital (kept as a logarithm) by its likelihood ratio.
///
/// With the probability q = b·e^bet/(1 − b + b·e^bet) that it believes in instead of b, the ratio is q/b for a new
/// token and (1 − q)/(1 − b) for a seen one. Who bets on fewer takes the lower bound for b, who bets on more the
/// upper one: then the expectation is at most 1 for every probability between the two.
fn bet(capital: &mut [f64; BETS.len()], is_new: bool, (least, most): (f64, f64)) {
    for (capital, bet) in capital.iter_mut().zip(BETS) {
        let b = if bet < 0.0 { least } else { most };
        *capital += if is_new { bet } else { 0.0 } - (1.0 - b + b * bet.exp()).ln();
    }
}

/// Log of the mean: capital that was spread evenly over the bets.
fn ln_mean_exp(logs: &[f64; BETS.len()]) -> f64 {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + (logs.iter().map(|l| (l - largest).exp()).sum::<f64>() / logs.len() as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule that makes a false alarm improbable, at every probability that the noise allows and none beyond.
    #[test]
    fn no_bet_gains_on_average_where_the_log_probs_are_right() {
        let steps = || (0..=50).map(|at| f64::from(at) / 50.0);
        let mut gained_outside = 0;
        for (least, most) in steps().flat_map(|l| steps().filter(move |m| *m >= l.max(REST)).map(move |m| (l, m))) {
            let mut outcomes = [[0.0; BETS.len()]; 2];
            bet(&mut outcomes[0], true, (least, most));
            bet(&mut outcomes[1], false, (least, most));
            let mean = |p: f64, at: usize| p * outcomes[0][at].exp() + (1.0 - p) * outcomes[1][at].exp();
            for at in 0..BETS.len() {
                for p in steps() {
                    let inside = (least..=most).contains(&p);
                    assert!(!inside || mean(p, at) <= 1.0 + 1e-9, "{least} {p} {most}, bet {at}: {}", mean(p, at));
                    gained_outside += usize::from(!inside && mean(p, at) > 1.0);
                }
            }
        }
        assert!(gained_outside > 1000, "{gained_outside}");
    }

    #[test]
    fn odds_are_shifted_and_stay_probabilities() {
        assert_eq!((with_odds(0.0, 2.0), with_odds(1.0, -2.0)), (0.0, 1.0));
        assert!((with_odds(0.5, 3_f64.ln()) - 0.75).abs() < 1e-12);
    }
}
