//! Sampling: drawing a token from logits.
//!
//! Filters apply in llama.cpp's order: `top_k`, `top_p`, `min_p`, then the temperature. Transformers applies the
//! temperature first, so that a high one lets more tokens through `top_p`.
//!
//! The same seed, settings and logits give the same token on every machine. Ties go to the lower id, sums run in a fixed
//! order in `f64`, exponentials come from `libm` and random numbers from ChaCha12.

mod drawing;
mod logprobs;

use rand_chacha::{
    ChaCha12Rng,
    rand_core::{Rng, SeedableRng},
};

pub use drawing::{Drawing, GREEDY, OutOfRange};
pub use logprobs::{TokenLogprobs, top_logprobs};
pub(crate) use logprobs::{logprobs, logprobs_of_best};

use crate::{error::Error, model::BestTokens};

/// Settings of a [`Sampler`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Divides the logits; above 0. Values below 1 favor likely tokens.
    pub temperature: f32,
    /// Keeps this many of the largest logits; 0 keeps all.
    pub top_k: usize,
    /// Keeps the most likely tokens until their total probability reaches this; above 0, and 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens with at least this share of the best one's probability; 0 to 1, and 0 keeps all.
    pub min_p: f32,
    /// Seeds the random numbers.
    pub seed: u64,
}

impl Default for Sampling {
    /// Returns settings that draw from the model's own distribution.
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 }
    }
}

/// Draws tokens from logits.
#[derive(Debug, Clone)]
pub struct Sampler {
    settings: Sampling,
    random: ChaCha12Rng,
}

impl Sampler {
    /// Makes a sampler at the start of its random numbers.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn new(settings: Sampling) -> Result<Self, Error> {
        let Sampling { temperature, top_k: _, top_p, min_p, seed } = settings;
        let check = |is_valid, name, value, expected, hint| {
            if is_valid { Ok(()) } else { Err(Error::BadSampling { name, value, expected, hint }) }
        };
        let is_positive = temperature > 0.0 && temperature.is_finite();
        check(
            is_positive,
            "temperature",
            temperature,
            "a number above 0",
            "generate without a sampler to be greedy",
        )?;
        check(
            top_p > 0.0 && top_p <= 1.0,
            "top_p",
            top_p,
            "above 0 and at most 1",
            "1 draws from all tokens",
        )?;
        check((0.0..=1.0).contains(&min_p), "min_p", min_p, "0 to 1", "0 draws from all tokens")?;
        Ok(Self { settings, random: ChaCha12Rng::seed_from_u64(seed) })
    }

    /// Returns the seed of the random numbers.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// Draws a token.
    ///
    /// # Errors
    /// A logit is not a number, or all are minus infinity.
    pub fn sample(&mut self, logits: &[f32]) -> Result<u32, Error> {
        check_logits(logits)?;
        self.draw(candidates(logits, &self.settings))
    }

    /// Draws the token that [`sample`](Self::sample) would draw, if the best tokens suffice. `None` if they do not: no number
    /// was drawn.
    ///
    /// # Errors
    /// None of the best tokens is a token.
    pub fn sample_best(&mut self, best: &BestTokens, vocab: usize) -> Result<Option<u32>, Error> {
        candidates_of_best(best, vocab, &self.settings).map(|kept| self.draw(kept)).transpose()
    }

    /// Draws one of the candidates.
    fn draw(&mut self, mut kept: Vec<Candidate>) -> Result<u32, Error> {
        let best = kept.iter().map(|c| c.logit).fold(f32::NEG_INFINITY, f32::max);
        let temperature = f64::from(self.settings.temperature);
        let mut total = 0.0;
        for candidate in &mut kept {
            total += libm::exp(f64::from(candidate.logit - best) / temperature);
            candidate.cumulative = total;
        }
        // An `f64` represents every number of 53 random bits.
        let uniform = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let drawn = kept.iter().find(|c| c.cumulative > uniform * total).or(kept.last());
        drawn.map(|c| c.id).ok_or(Error::NoLogits)
    }
}

/// Returns the token with the largest logit, the lowest id on a tie.
///
/// # Errors
/// A logit is not a number, or all are minus infinity.
pub(crate) fn largest_logit(logits: &[f32]) -> Result<u32, Error> {
    check_logits(logits)?;
    largest(all(logits), 1).first().map(|best| best.id).ok_or(Error::NoLogits)
}

/// A token that may be drawn.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: u32,
    logit: f32,
    /// The sum of the weights up to this candidate.
    cumulative: f64,
}

/// Applies top-k, top-p and min-p. The order of the result depends on the logits alone.
fn candidates(logits: &[f32], settings: &Sampling) -> Vec<Candidate> {
    let &Sampling { top_k, top_p, min_p, temperature: _, seed: _ } = settings;
    let mut kept = all(logits);
    if top_k > 0 {
        kept = largest(kept, top_k);
    }
    if top_p < 1.0 {
        kept = nucleus(kept, f64::from(top_p));
    }
    if min_p > 0.0 {
        let best = kept.iter().map(|c| c.logit).fold(f32::NEG_INFINITY, f32::max);
        kept.retain(|c| libm::exp(f64::from(c.logit - best)) >= f64::from(min_p));
    }
    kept
}

/// Returns what [`candidates`] would; `None` if the best tokens do not say.
fn candidates_of_best(best: &BestTokens, vocab: usize, settings: &Sampling) -> Option<Vec<Candidate>> {
    let &Sampling { top_k, top_p, min_p, temperature: _, seed: _ } = settings;
    if !best.log_sum_exp.is_finite() {
        return None;
    }
    let found = best.ids.iter().zip(&best.logits);
    let mut kept: Vec<Candidate> =
        found.map(|(&id, &logit)| Candidate { id, logit, cumulative: 0.0 }).collect();
    let first = kept.first()?.logit;
    // Subtracted as for all tokens, so that rounding keeps the same ones.
    let weight = |candidate: &Candidate| libm::exp(f64::from(candidate.logit - first));
    let is_whole = kept.len() == vocab;
    if top_k > 0 {
        if top_k > kept.len() && !is_whole {
            return None;
        }
        kept.truncate(top_k);
        if top_p < 1.0 {
            kept = nucleus(kept, f64::from(top_p));
        }
    } else if top_p < 1.0 {
        let count = nucleus_of_best(&kept, best.log_sum_exp, top_p)?;
        kept.truncate(count);
    } else {
        // Nothing else cuts the tail off.
        if !is_whole && kept.last().is_none_or(|last| min_p <= 0.0 || weight(last) >= f64::from(min_p)) {
            return None;
        }
        // The order of the ids, in which candidates of all tokens are.
        kept.sort_unstable_by_key(|candidate| candidate.id);
    }
    if min_p > 0.0 {
        kept.retain(|candidate| weight(candidate) >= f64::from(min_p));
    }
    Some(kept)
}

/// Returns how many of the best tokens reach the probability `top_p`; `None` if rounding could make it another number, or all
/// do not reach it.
fn nucleus_of_best(best: &[Candidate], log_sum_exp: f32, top_p: f32) -> Option<usize> {
    /// More than the relative error of the device's sum, and of its logarithm in `f32` where that is below 64.
    const ERROR: f64 = 1e-5;
    let first = f64::from(best.first()?.logit);
    let total = f64::from(top_p) * libm::exp(f64::from(log_sum_exp) - first);
    let reaches = |least: f64| {
        let mut sum = 0.0;
        best.iter().position(|candidate| {
            sum += libm::exp(f64::from(candidate.logit) - first);
            sum >= least
        })
    };
    let (early, late) = (reaches(total * (1.0 - ERROR))?, reaches(total * (1.0 + ERROR))?);
    (early == late && log_sum_exp.abs() < 64.0).then_some(late + 1)
}

/// Returns the fewest most likely candidates whose total probability reaches `p`.
fn nucleus(candidates: Vec<Candidate>, p: f64) -> Vec<Candidate> {
    let best = candidates.iter().map(|c| c.logit).fold(f32::NEG_INFINITY, f32::max);
    let total = mass(candidates.iter().map(|c| c.logit), best);
    // Sorting the whole vocabulary costs more than a step of a small model, and a nucleus is rarely large.
    let mut count = 64;
    loop {
        let mut top = largest(candidates.clone(), count);
        let mut sum = 0.0;
        let end = top.iter().position(|c| {
            sum += libm::exp(f64::from(c.logit - best));
            sum >= p * total
        });
        if end.is_some() || top.len() == candidates.len() {
            top.truncate(end.map_or(top.len(), |end| end + 1));
            return top;
        }
        count *= 8;
    }
}

/// Returns the `count` candidates with the largest logits, sorted.
fn largest(mut candidates: Vec<Candidate>, count: usize) -> Vec<Candidate> {
    let order = |a: &Candidate, b: &Candidate| match b.logit.total_cmp(&a.logit) {
        // 0 and -0 are equal logits.
        _ if a.logit == b.logit => a.id.cmp(&b.id),
        other => other,
    };
    if count < candidates.len() && count > 0 {
        candidates.select_nth_unstable_by(count - 1, order);
    }
    candidates.truncate(count);
    candidates.sort_unstable_by(order);
    candidates
}

/// Makes a candidate of every token.
fn all(logits: &[f32]) -> Vec<Candidate> {
    let ids = 0u32..;
    ids.zip(logits).map(|(id, &logit)| Candidate { id, logit, cumulative: 0.0 }).collect()
}

/// Returns the sum of the probabilities, in units of the best one's.
fn mass(logits: impl Iterator<Item = f32>, best: f32) -> f64 {
    logits.map(|logit| libm::exp(f64::from(logit - best))).sum()
}

/// Checks that the logits are numbers. Minus infinity is one: with it a model excludes a token.
pub(crate) fn check_logits(logits: &[f32]) -> Result<(), Error> {
    let is_bad = |value: f32| value.is_nan() || value == f32::INFINITY;
    if let Some(token) = logits.iter().position(|&value| is_bad(value)) {
        return Err(Error::BadLogit { token, value: logits[token] });
    }
    if logits.iter().all(|&value| value == f32::NEG_INFINITY) {
        return Err(logits.first().map_or(Error::NoLogits, |&value| Error::BadLogit { token: 0, value }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(logits: &[f32], settings: Sampling) -> Vec<u32> {
        candidates(logits, &settings).iter().map(|c| c.id).collect()
    }

    fn drawn(settings: Sampling, logits: &[f32], count: usize) -> Vec<u32> {
        let mut sampler = Sampler::new(settings).unwrap();
        (0..count).map(|_| sampler.sample(logits).unwrap()).collect()
    }

    /// Logits of these probabilities.
    fn logits(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln()).collect()
    }

    #[test]
    fn each_filter_keeps_its_tokens() {
        let logits = logits(&[0.1, 0.4, 0.2, 0.3]);
        let with = Sampling::default();
        assert_eq!(kept(&logits, with), [0, 1, 2, 3]);
        assert_eq!(kept(&logits, Sampling { top_k: 2, ..with }), [1, 3]);
        assert_eq!(kept(&logits, Sampling { top_k: 9, ..with }), [1, 3, 2, 0]);
        assert_eq!(kept(&logits, Sampling { top_p: 0.71, ..with }), [1, 3, 2]);
        assert_eq!(kept(&logits, Sampling { top_p: 0.69, ..with }), [1, 3]);
        assert_eq!(kept(&logits, Sampling { top_p: 1e-9, ..with }), [1]);
        assert_eq!(kept(&logits, Sampling { min_p: 0.6, ..with }), [1, 3]);
        assert_eq!(kept(&logits, Sampling { min_p: 1.0, ..with }), [1]);
    }

    /// Returns what a device finds.
    fn best_of(logits: &[f32], count: usize) -> BestTokens {
        let best = largest(all(logits), count);
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        BestTokens {
            ids: best.iter().map(|c| c.id).collect(),
            logits: best.iter().map(|c| c.logit).collect(),
            log_sum_exp: sum.ln() as f32,
        }
    }

    #[test]
    fn the_best_tokens_draw_what_all_tokens_draw() {
        let with = Sampling { seed: 7, ..Sampling::default() };
        // Some of these suffice, and some do not.
        let suffice = [
            (Sampling { top_k: 5, ..with }, true),
            (Sampling { top_k: 64, top_p: 0.7, min_p: 0.1, ..with }, true),
            (Sampling { top_p: 0.5, ..with }, true),
            (Sampling { top_p: 0.5, min_p: 0.2, temperature: 0.5, ..with }, true),
            (Sampling { min_p: 0.3, ..with }, true),
            (Sampling { min_p: 1e-6, ..with }, false),
            (Sampling { top_k: 65, ..with }, false),
            (Sampling { top_p: 0.999, ..with }, false),
            (with, false),
        ];
        let mut state = 1u32;
        let mut logit = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        };
        for (settings, is_enough) in suffice {
            let (mut a, mut b) = (Sampler::new(settings).unwrap(), Sampler::new(settings).unwrap());
            for _ in 0..50 {
                // A few likely tokens, with ties, and a long tail.
                let logits: Vec<f32> = (0..1000)
                    .map(|id| if id % 50 == 3 { (6.0 + 4.0 * logit()).round() } else { logit() })
                    .collect();
                let found = b.sample_best(&best_of(&logits, 64), logits.len()).unwrap();
                assert_eq!(found.is_some(), is_enough, "{settings:?}");
                let found = found.unwrap_or_else(|| b.sample(&logits).unwrap());
                assert_eq!(found, a.sample(&logits).unwrap(), "{settings:?}");
                // A vocabulary that is whole always suffices, but for the rounding of a nucleus.
                let few = &logits[..40];
                let found = b.sample_best(&best_of(few, 64), few.len()).unwrap();
                assert!(found.is_some() || settings.top_p < 1.0, "{settings:?}");
                let found = found.unwrap_or_else(|| b.sample(few).unwrap());
                assert_eq!(found, a.sample(few).unwrap(), "{settings:?}");
            }
        }
    }

    #[test]
    fn a_nucleus_whose_end_depends_on_rounding_is_not_decided() {
        // Half of the probability is exactly that of the first token.
        let logits = logits(&[0.5, 0.25, 0.25]);
        let best = best_of(&logits, 2);
        let of = |top_p| {
            candidates_of_best(&best, 3, &Sampling { top_p, ..Sampling::default() }).map(|kept| kept.len())
        };
        assert_eq!((of(0.5), of(0.4), of(0.6), of(0.9)), (None, Some(1), Some(2), None));
        let not_a_number = BestTokens { log_sum_exp: f32::NAN, ..best.clone() };
        let with = Sampling { top_k: 1, ..Sampling::default() };
        assert_eq!(Sampler::new(with).unwrap().sample_best(&not_a_number, 3).unwrap(), None);
    }

    #[test]
    fn min_p_rounds_as_for_all_tokens() {
        // The difference of the first two is -20 as `f32`, and more as `f64`.
        let logits = [20.0f32, 9e-7, -9.0];
        let min_p = (libm::exp(-20.0) * (1.0 + 4.5e-7)) as f32;
        let with = Sampling { min_p, ..Sampling::default() };
        assert_eq!(kept(&logits, with), [0]);
        for count in [2, 3] {
            let found = candidates_of_best(&best_of(&logits, count), 3, &with).unwrap();
            assert_eq!(found.iter().map(|c| c.id).collect::<Vec<_>>(), [0], "{count}");
        }
    }

    #[test]
    fn top_p_applies_after_top_k() {
        // 0.4 and 0.3 are 0.57 and 0.43 of the two.
        let logits = logits(&[0.1, 0.4, 0.2, 0.3]);
        assert_eq!(kept(&logits, Sampling { top_k: 2, top_p: 0.5, ..Sampling::default() }), [1]);
        assert_eq!(kept(&logits, Sampling { top_k: 2, top_p: 0.6, ..Sampling::default() }), [1, 3]);
    }

    #[test]
    fn ties_go_to_the_lower_id() {
        assert_eq!(kept(&[1.0; 6], Sampling { top_k: 3, ..Sampling::default() }), [0, 1, 2]);
        assert_eq!(kept(&[-0.0, 0.0], Sampling { top_k: 1, ..Sampling::default() }), [0]);
        assert_eq!(top_logprobs(&[1.0; 4], 2).unwrap().iter().map(|l| l.0).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_large_nucleus_is_whole() {
        let flat = vec![0.5; 5000];
        assert_eq!(kept(&flat, Sampling { top_p: 0.5, ..Sampling::default() }).len(), 2500);
    }

    #[test]
    fn a_seed_always_draws_the_same_tokens() {
        let logits: Vec<f32> = (0u16..50).map(|i| f32::from(i * 37 % 50) / 10.0).collect();
        let settings = Sampling { temperature: 0.8, top_k: 40, top_p: 0.95, min_p: 0.05, seed: 42 };
        // A change of these numbers changes the text of every seed.
        assert_eq!(drawn(settings, &logits, 12), [12, 12, 16, 8, 27, 35, 20, 28, 4, 27, 13, 12]);
        assert_eq!(
            drawn(Sampling { seed: 43, ..Sampling::default() }, &logits, 12),
            [35, 20, 17, 16, 4, 48, 7, 2, 24, 24, 1, 12]
        );
    }

    #[test]
    fn draws_follow_the_distribution() {
        let logits = logits(&[0.1, 0.6, 0.3]);
        let count = |settings| {
            let mut counts = [0; 3];
            drawn(settings, &logits, 10_000).iter().for_each(|&id| counts[id as usize] += 1);
            counts
        };
        for (found, expected) in count(Sampling::default()).into_iter().zip([1000i32, 6000, 3000]) {
            assert!((found - expected).abs() < 200, "{found} for {expected}");
        }
        // 0.6² : 0.3² : 0.1² = 36 : 9 : 1.
        let sharp = count(Sampling { temperature: 0.5, ..Sampling::default() });
        for (found, expected) in sharp.into_iter().zip([217i32, 7826, 1957]) {
            assert!((found - expected).abs() < 200, "{found} for {expected}");
        }
    }

    #[test]
    fn excluded_tokens_are_not_drawn() {
        let logits = [f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY];
        let hot = Sampling { temperature: 1e9, ..Sampling::default() };
        assert!(drawn(hot, &logits, 100).iter().all(|&id| id == 1));
        let cold = Sampling { temperature: f32::MIN_POSITIVE, ..Sampling::default() };
        assert!(drawn(cold, &[1.0, 1.1, 0.0], 100).iter().all(|&id| id == 1));
    }

    #[test]
    fn logits_without_a_distribution_are_refused() {
        let message = |logits: &[f32]| {
            let error = Sampler::new(Sampling::default()).unwrap().sample(logits).unwrap_err().to_string();
            assert_eq!(top_logprobs(logits, 1).unwrap_err().to_string(), error);
            error
        };
        let expected =
            "expected a number\nhint: check the weights, or compile the bundle with --precision f32";
        assert_eq!(message(&[0.0, f32::NAN]), format!("the logit of token 1 is NaN, {expected}"));
        assert_eq!(message(&[f32::INFINITY]), format!("the logit of token 0 is inf, {expected}"));
        assert_eq!(message(&[f32::NEG_INFINITY; 2]), format!("the logit of token 0 is -inf, {expected}"));
        assert_eq!(message(&[]), Error::NoLogits.to_string());
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let message = |settings| Sampler::new(settings).unwrap_err().to_string();
        let with = Sampling::default();
        assert_eq!(
            message(Sampling { temperature: 0.0, ..with }),
            "temperature is 0, expected a number above 0\nhint: generate without a sampler to be greedy"
        );
        assert_eq!(
            message(Sampling { temperature: f32::NAN, ..with }),
            "temperature is NaN, expected a number above 0\nhint: generate without a sampler to be greedy"
        );
        assert_eq!(
            message(Sampling { top_p: 0.0, ..with }),
            "top_p is 0, expected above 0 and at most 1\nhint: 1 draws from all tokens"
        );
        assert_eq!(
            message(Sampling { min_p: 1.5, ..with }),
            "min_p is 1.5, expected 0 to 1\nhint: 0 draws from all tokens"
        );
    }
}
