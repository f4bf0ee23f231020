//! Self-tests: the answers of a model, recorded on one device and compared on another.

use mlxcel_artifacts::SelfTestCase;

use crate::{encoder::Encoder, error::Error, sampling::top_logprobs, session::Session};

/// The largest difference of an embedding, relative to its length.
///
/// Devices sum in different orders, and some round to 16 bits.
const EMBEDDING_TOLERANCE: f32 = 1e-2;

/// The result of one test case.
#[derive(Debug, Clone, PartialEq)]
pub enum SelfTestResult {
    /// The answer is the recorded one.
    Passed,
    /// A token differs from the recorded one.
    TokenMismatch {
        /// The index of the first such token, from 0.
        index: usize,
        /// The token generated.
        found: u32,
        /// The token recorded.
        expected: u32,
        /// The recorded distance from the largest logit to the second largest.
        gap: f32,
    },
    /// The embedding is too far from the recorded one.
    EmbeddingMismatch {
        /// The largest difference of an element, relative to the length of the recorded embedding.
        distance: f32,
        /// The largest distance that passes.
        tolerance: f32,
    },
}

/// Records a greedy generation after `prompt`: `count` tokens, or fewer if the context ends.
///
/// # Errors
/// The session refuses the prompt or fails.
pub fn record_generation(
    session: &mut dyn Session,
    prompt: &[u32],
    count: usize,
) -> Result<SelfTestCase, Error> {
    session.rewind(0)?;
    let mut case = SelfTestCase { prompt: prompt.to_vec(), ..SelfTestCase::default() };
    let mut next = session.prefill(prompt)?;
    while case.tokens.len() < count {
        let best = top_logprobs(&session.logits()?, 2)?;
        let gap = match best[..] {
            [(_, first), (_, second)] if (first - second).is_finite() => first - second,
            // No other token is possible.
            _ => f32::MAX,
        };
        case.tokens.push(next);
        case.gaps.push(gap);
        if case.tokens.len() == count || session.position() >= session.capabilities().context {
            break;
        }
        next = session.decode_step(next)?;
    }
    Ok(case)
}

/// Generates again after a recorded prompt and compares the tokens.
///
/// # Errors
/// The session fails.
pub fn replay_generation(
    session: &mut dyn Session,
    recorded: &SelfTestCase,
) -> Result<SelfTestResult, Error> {
    session.rewind(0)?;
    let mut found = session.prefill(&recorded.prompt)?;
    for (index, (&expected, &gap)) in recorded.tokens.iter().zip(&recorded.gaps).enumerate() {
        if found != expected {
            return Ok(SelfTestResult::TokenMismatch { index, found, expected, gap });
        }
        if index + 1 < recorded.tokens.len() {
            found = session.decode_step(expected)?;
        }
    }
    Ok(SelfTestResult::Passed)
}

/// Records the embedding of `prompt`.
///
/// # Errors
/// The encoder refuses the prompt or fails.
pub fn record_embedding(encoder: &mut dyn Encoder, prompt: &[u32]) -> Result<SelfTestCase, Error> {
    let embedding = encoder.embed(&[prompt])?.concat();
    Ok(SelfTestCase { prompt: prompt.to_vec(), embedding, ..SelfTestCase::default() })
}

/// Embeds a recorded prompt again and compares the embedding.
///
/// # Errors
/// The encoder fails.
pub fn replay_embedding(encoder: &mut dyn Encoder, recorded: &SelfTestCase) -> Result<SelfTestResult, Error> {
    let found = encoder.embed(&[&recorded.prompt])?.concat();
    let length = recorded.embedding.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    let differences = found.iter().zip(&recorded.embedding).map(|(x, y)| (x - y).abs());
    // Written so that NaN counts as a large difference, whatever follows it.
    let larger = |most: f32, x: f32| if most.is_nan() || x <= most { most } else { x };
    let distance = differences.fold(0.0, larger) / length;
    let tolerance = EMBEDDING_TOLERANCE;
    // Not `distance > tolerance`, which is false for NaN.
    Ok(if distance <= tolerance {
        SelfTestResult::Passed
    } else {
        SelfTestResult::EmbeddingMismatch { distance, tolerance }
    })
}

/// Returns prompts for a self-test: of one token, of a few, and longer than the smallest prefill.
///
/// Their ids are spread over the vocabulary. Each fits the context together with `count` generated tokens.
#[must_use]
pub fn self_test_prompts(vocab: usize, context: usize, smallest: usize, count: usize) -> Vec<Vec<u32>> {
    let room = context.saturating_sub(count).max(1);
    let mut lengths: Vec<usize> = [1, 7, smallest + 9].into_iter().map(|length| length.min(room)).collect();
    lengths.dedup();
    // Knuth's multiplicative hashing.
    let id = |index: usize| ((index as u64 + 1).wrapping_mul(2_654_435_761) % vocab.max(1) as u64) as u32;
    lengths.into_iter().map(|length| (0..length).map(id).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{scripted::ScriptedSession, session::Capabilities};

    fn session() -> ScriptedSession {
        ScriptedSession::answering(100, 10, 2, &[3, 4, 5, 6])
    }

    #[test]
    fn a_recorded_generation_passes() {
        let mut session = session();
        let recorded = record_generation(&mut session, &[1, 2], 3).unwrap();
        assert_eq!((recorded.tokens.as_slice(), recorded.gaps.len()), (&[3, 4, 5][..], 3));
        assert!(recorded.gaps.iter().all(|&gap| gap > 0.0 && gap.is_finite()), "{:?}", recorded.gaps);
        // Even with other tokens in the cache.
        session.prefill(&[7]).unwrap();
        assert_eq!(replay_generation(&mut session, &recorded).unwrap(), SelfTestResult::Passed);
    }

    #[test]
    fn the_first_token_that_differs_is_named() {
        let recorded = record_generation(&mut session(), &[1, 2], 4).unwrap();
        let mut other = ScriptedSession::answering(100, 10, 2, &[3, 4, 9, 9]);
        let gap = recorded.gaps[2];
        assert_eq!(
            replay_generation(&mut other, &recorded).unwrap(),
            SelfTestResult::TokenMismatch { index: 2, found: 9, expected: 5, gap }
        );
    }

    #[test]
    fn recording_ends_where_the_context_ends() {
        let mut short = ScriptedSession::answering(4, 10, 2, &[3]);
        let recorded = record_generation(&mut short, &[1, 2], 40).unwrap();
        assert_eq!(recorded.tokens, [3, 3, 3]);
        assert_eq!(replay_generation(&mut short, &recorded).unwrap(), SelfTestResult::Passed);
    }

    /// An encoder that always answers the same.
    struct Constant(Capabilities, Vec<f32>);

    impl Encoder for Constant {
        fn capabilities(&self) -> &Capabilities {
            &self.0
        }

        fn width(&self) -> usize {
            self.1.len()
        }

        fn embed(&mut self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>, Error> {
            Ok(vec![self.1.clone(); texts.len()])
        }
    }

    #[test]
    fn the_farthest_element_of_an_embedding_counts() {
        let case = SelfTestCase { prompt: vec![1], embedding: vec![3.0, 4.0], ..SelfTestCase::default() };
        let replay = |embedding: &[f32]| {
            let mut encoder = Constant(Capabilities::default(), embedding.to_vec());
            replay_embedding(&mut encoder, &case).unwrap()
        };
        assert_eq!(replay(&[3.0, 4.01]), SelfTestResult::Passed);
        let far = SelfTestResult::EmbeddingMismatch { distance: 0.2, tolerance: EMBEDDING_TOLERANCE };
        assert_eq!(replay(&[2.0, 4.0]), far);
        // NaN is far, also if the elements after it are near.
        for embedding in [[f32::NAN, 4.0], [3.0, f32::NAN]] {
            let found = replay(&embedding);
            let is_nan =
                matches!(found, SelfTestResult::EmbeddingMismatch { distance, .. } if distance.is_nan());
            assert!(is_nan, "{found:?}");
        }
    }

    #[test]
    fn prompts_fit_the_context() {
        for (vocab, context, smallest) in [(1, 1, 1), (100, 8, 4), (32_000, 4096, 32), (7, 40, 512)] {
            let prompts = self_test_prompts(vocab, context, smallest, 16);
            assert!(!prompts.is_empty());
            for prompt in prompts {
                assert!((1..=context).contains(&prompt.len()));
                assert!(prompt.iter().all(|&id| (id as usize) < vocab));
            }
        }
        assert_eq!(self_test_prompts(100, 4096, 32, 16).iter().map(Vec::len).collect::<Vec<_>>(), [1, 7, 41]);
    }
}
