//! Self-tests: the answers of a model, recorded on one device and compared on another.

use std::ops::ControlFlow;

use mlxcel_artifacts::{Cancel, SelfTestCase};

use crate::{
    encoder::contract::Encoder,
    engine::{Engine, Request},
    error::Error,
    model::ModelRunner,
};

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
    /// All tokens are those recorded, but the answer ended before them.
    TooShort {
        /// The tokens generated.
        found: usize,
        /// The tokens recorded.
        expected: usize,
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
/// The engine refuses the prompt, or the device fails.
pub fn record_generation<R: ModelRunner>(
    engine: &mut Engine<R>,
    prompt: &[u32],
    count: usize,
) -> Result<SelfTestCase, Error> {
    let request =
        Request { prompt: prompt.to_vec(), max_tokens: count, logprobs: Some(2), ..Request::default() };
    let found = engine.generate(request, &Cancel::new(), &mut |_| ControlFlow::Continue(()))?;
    let gap = |best: &Vec<(u32, f32)>| match best[..] {
        [(_, first), (_, second)] if (first - second).is_finite() => first - second,
        // No other token is possible.
        _ => f32::MAX,
    };
    let gaps = found.logprobs.iter().map(gap).collect();
    Ok(SelfTestCase { prompt: prompt.to_vec(), tokens: found.tokens, gaps, ..SelfTestCase::default() })
}

/// Generates again after a recorded prompt and compares the tokens.
///
/// # Errors
/// The engine refuses the prompt, or the device fails.
pub fn replay_generation<R: ModelRunner>(
    engine: &mut Engine<R>,
    recorded: &SelfTestCase,
) -> Result<SelfTestResult, Error> {
    let SelfTestCase { prompt, tokens, gaps, .. } = recorded;
    let request = Request { prompt: prompt.clone(), max_tokens: tokens.len(), ..Request::default() };
    let mut expected = tokens.iter();
    let found = engine.generate(request, &Cancel::new(), &mut |token| match expected.next() {
        Some(&expected) if expected == token => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    })?;
    let pairs = found.tokens.iter().zip(tokens).zip(gaps).enumerate();
    let mismatch = |(index, ((&found, &expected), &gap))| {
        (found != expected).then_some(SelfTestResult::TokenMismatch { index, found, expected, gap })
    };
    if let Some(mismatch) = pairs.filter_map(mismatch).next() {
        return Ok(mismatch);
    }
    let (found, expected) = (found.tokens.len(), tokens.len());
    // A smaller context than that of the recording ends the answer before.
    Ok(if found == expected { SelfTestResult::Passed } else { SelfTestResult::TooShort { found, expected } })
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
    use crate::{
        EngineSettings, device::DeviceInfo, encoder::contract::EncoderLimits, scripted::ScriptedModel,
    };

    fn engine(context: usize, answer: &[u32]) -> Engine<ScriptedModel> {
        let model = ScriptedModel::answering(context, 10, 2, answer);
        Engine::new(model, EngineSettings::default()).unwrap()
    }

    #[test]
    fn a_recorded_generation_passes() {
        let mut engine = engine(100, &[3, 4, 5, 6]);
        let recorded = record_generation(&mut engine, &[1, 2], 3).unwrap();
        assert_eq!((recorded.tokens.as_slice(), recorded.gaps.len()), (&[3, 4, 5][..], 3));
        assert!(recorded.gaps.iter().all(|&gap| gap > 0.0 && gap.is_finite()), "{:?}", recorded.gaps);
        assert_eq!(replay_generation(&mut engine, &recorded).unwrap(), SelfTestResult::Passed);
    }

    #[test]
    fn the_first_token_that_differs_is_named() {
        let recorded = record_generation(&mut engine(100, &[3, 4, 5, 6]), &[1, 2], 4).unwrap();
        let mut other = engine(100, &[3, 4, 9, 9]);
        let gap = recorded.gaps[2];
        assert_eq!(
            replay_generation(&mut other, &recorded).unwrap(),
            SelfTestResult::TokenMismatch { index: 2, found: 9, expected: 5, gap }
        );
    }

    #[test]
    fn recording_ends_where_the_context_ends() {
        let mut short = engine(4, &[3]);
        let recorded = record_generation(&mut short, &[1, 2], 40).unwrap();
        assert_eq!(recorded.tokens, [3, 3, 3]);
        assert_eq!(replay_generation(&mut short, &recorded).unwrap(), SelfTestResult::Passed);
        // A context that ends before does not pass.
        let too_short = SelfTestResult::TooShort { found: 2, expected: 3 };
        assert_eq!(replay_generation(&mut engine(3, &[3]), &recorded).unwrap(), too_short);
    }

    /// An encoder that always answers the same.
    struct Constant(EncoderLimits, DeviceInfo, Vec<f32>);

    impl Encoder for Constant {
        fn limits(&self) -> &EncoderLimits {
            &self.0
        }

        fn device(&self) -> &DeviceInfo {
            &self.1
        }

        fn embed(&mut self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>, Error> {
            Ok(vec![self.2.clone(); texts.len()])
        }
    }

    #[test]
    fn the_farthest_element_of_an_embedding_counts() {
        let case = SelfTestCase { prompt: vec![1], embedding: vec![3.0, 4.0], ..SelfTestCase::default() };
        let replay = |embedding: &[f32]| {
            let (limits, device) = (EncoderLimits::default(), DeviceInfo::default());
            let mut encoder = Constant(limits, device, embedding.to_vec());
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
