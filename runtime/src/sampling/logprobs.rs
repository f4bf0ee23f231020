//! Log-probabilities in a model's own distribution.

use super::{all, check_logits, largest, mass};
use crate::{error::Error, model::BestTokens};

/// The log-probabilities that come with a token, in the model's own distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprobs {
    /// That of the token.
    pub token: f32,
    /// The most likely ids with theirs, best first.
    pub top: Vec<(u32, f32)>,
}

/// Returns the log-probability of `token`, and the `count` most likely ids with theirs.
///
/// # Errors
/// A logit is not a number, or all are minus infinity.
pub(crate) fn logprobs(logits: &[f32], token: u32, count: usize) -> Result<TokenLogprobs, Error> {
    check_logits(logits)?;
    let log_total = log_sum_exp(logits);
    let logit = logits.get(token as usize).ok_or(Error::NoLogits)?;
    Ok(TokenLogprobs { token: (f64::from(*logit) - log_total) as f32, top: top(logits, log_total, count) })
}

/// Returns what [`logprobs`] would; `None` if the best tokens do not say.
pub(crate) fn logprobs_of_best(best: &BestTokens, token: u32, count: usize) -> Option<TokenLogprobs> {
    let is_enough = count <= best.ids.len() && best.log_sum_exp.is_finite();
    let mut pairs = best.ids.iter().zip(&best.logits).map(|(&id, logit)| (id, logit - best.log_sum_exp));
    let (_, of_token) = pairs.clone().find(|&(id, _)| id == token).filter(|_| is_enough)?;
    Some(TokenLogprobs { token: of_token, top: pairs.by_ref().take(count).collect() })
}

/// Returns the `count` most likely ids with their log-probabilities, best first.
///
/// # Errors
/// A logit is not a number, or all are minus infinity.
pub fn top_logprobs(logits: &[f32], count: usize) -> Result<Vec<(u32, f32)>, Error> {
    check_logits(logits)?;
    Ok(top(logits, log_sum_exp(logits), count))
}

/// Returns the `count` most likely ids with their log-probabilities, for logits whose exponentials' sum has this logarithm.
fn top(logits: &[f32], log_total: f64, count: usize) -> Vec<(u32, f32)> {
    let top = largest(all(logits), count).into_iter();
    top.map(|c| (c.id, (f64::from(c.logit) - log_total) as f32)).collect()
}

/// Returns the logarithm of the sum of the exponentials of all logits.
fn log_sum_exp(logits: &[f32]) -> f64 {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    f64::from(best) + libm::log(mass(logits.iter().copied(), best))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f32, expected: f32) {
        assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
    }

    #[test]
    fn the_best_tokens_say_what_all_logits_say() {
        let logits: Vec<f32> = [0.5f32, 0.125, 0.375].iter().map(|p| p.ln()).collect();
        let best = BestTokens { ids: vec![0, 2], logits: vec![logits[0], logits[2]], log_sum_exp: 0.0 };
        let all = logprobs(&logits, 2, 1).unwrap();
        near(all.token, 0.375f32.ln());
        assert_eq!((all.top.len(), all.top[0].0), (1, 0));
        near(all.top[0].1, 0.5f32.ln());
        let found = logprobs_of_best(&best, 2, 1).unwrap();
        near(found.token, all.token);
        near(found.top[0].1, all.top[0].1);
        assert_eq!(logprobs(&logits, 1, 0).unwrap().top, []);
        // A token that is not among the best, and more than there are.
        assert_eq!(logprobs_of_best(&best, 1, 0), None);
        assert_eq!(logprobs_of_best(&best, 0, 3), None);
        assert_eq!(logprobs_of_best(&BestTokens { log_sum_exp: f32::NAN, ..best }, 0, 1), None);
    }
}
