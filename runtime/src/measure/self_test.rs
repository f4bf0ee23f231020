//! Golden replay: what a model answered when it was recorded, it must answer on every device.

use mlxcel_artifacts::SelfTestCase;

use crate::{encoder::Encoder, error::Error, sampling::top_logprobs, session::Session};

/// By how much an embedding may differ, as a part of its length: devices add in other orders, and some round to 16 bits.
const EMBEDDING_TOLERANCE: f32 = 1e-2;

/// How a replay went.
#[derive(Debug, Clone, PartialEq)]
pub enum SelfTestResult {
    /// As it was recorded.
    Passed,
    /// The first token that is another one.
    TokenMismatch {
        /// Its place among the tokens, from 0.
        index: usize,
        /// The token given.
        found: u32,
        /// The one recorded.
        expected: u32,
        /// By how much the logit of the recorded one was above every other.
        gap: f32,
    },
    /// The embedding is too far from the one recorded.
    EmbeddingMismatch {
        /// The largest difference of a number, as a part of the recorded one's length.
        distance: f32,
        /// How much it may be.
        tolerance: f32,
    },
}

/// Records what a greedy generation goes on with after `prompt`: `count` tokens, or fewer where the context ends.
///
/// # Errors
/// When the prompt is refused or the session fails.
pub fn record_generation(
    session: &mut dyn Session,
    prompt: &[u32],
    count: usize,
) -> Result<SelfTestCase, Error> {
    session.rewind(0)?;
    let mut replay = SelfTestCase { prompt: prompt.to_vec(), ..SelfTestCase::default() };
    let mut next = session.prefill(prompt)?;
    while replay.tokens.len() < count {
        let best = top_logprobs(&session.logits()?, 2)?;
        let gap = match best[..] {
            [(_, first), (_, second)] if (first - second).is_finite() => first - second,
            // Nothing else is possible.
            _ => f32::MAX,
        };
        replay.tokens.push(next);
        replay.gaps.push(gap);
        if replay.tokens.len() == count || session.position() >= session.capabilities().context {
            break;
        }
        next = session.decode_step(next)?;
    }
    Ok(replay)
}

/// Replays what was recorded of a session.
///
/// # Errors
/// When the session fails.
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
/// When the prompt is refused or the encoder fails.
pub fn record_embedding(encoder: &mut dyn Encoder, prompt: &[u32]) -> Result<SelfTestCase, Error> {
    let embedding = encoder.embed(prompt)?;
    Ok(SelfTestCase { prompt: prompt.to_vec(), embedding, ..SelfTestCase::default() })
}

/// Replays what was recorded of an encoder.
///
/// # Errors
/// When the encoder fails.
pub fn replay_embedding(encoder: &mut dyn Encoder, recorded: &SelfTestCase) -> Result<SelfTestResult, Error> {
    let found = encoder.embed(&recorded.prompt)?;
    let length = recorded.embedding.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    let differences = found.iter().zip(&recorded.embedding).map(|(x, y)| (x - y).abs());
    // NaN is no small difference.
    let distance = differences.fold(0.0, |most: f32, x| if x <= most { most } else { x }) / length;
    let tolerance = EMBEDDING_TOLERANCE;
    // Not `distance > tolerance`, which NaN is not.
    Ok(if distance <= tolerance {
        SelfTestResult::Passed
    } else {
        SelfTestResult::EmbeddingMismatch { distance, tolerance }
    })
}

/// Prompts that touch every part of a bundle: the shortest, one of a few tokens, and one longer than the smallest prefill,
/// of ids spread over the vocabulary. All fit the context with `count` tokens after them.
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
    use crate::scripted::ScriptedSession;

    fn session() -> ScriptedSession {
        ScriptedSession::saying(100, 10, 2, &[3, 4, 5, 6])
    }

    #[test]
    fn what_was_recorded_is_replayed() {
        let mut session = session();
        let recorded = record_generation(&mut session, &[1, 2], 3).unwrap();
        assert_eq!((recorded.tokens.as_slice(), recorded.gaps.len()), (&[3, 4, 5][..], 3));
        assert!(recorded.gaps.iter().all(|&gap| gap > 0.0 && gap.is_finite()), "{:?}", recorded.gaps);
        // With something else in the cache.
        session.prefill(&[7]).unwrap();
        assert_eq!(replay_generation(&mut session, &recorded).unwrap(), SelfTestResult::Passed);
    }

    #[test]
    fn the_first_other_token_is_named() {
        let recorded = record_generation(&mut session(), &[1, 2], 4).unwrap();
        let mut other = ScriptedSession::saying(100, 10, 2, &[3, 4, 9, 9]);
        let gap = recorded.gaps[2];
        assert_eq!(
            replay_generation(&mut other, &recorded).unwrap(),
            SelfTestResult::TokenMismatch { index: 2, found: 9, expected: 5, gap }
        );
    }

    #[test]
    fn the_context_ends_a_record() {
        let mut short = ScriptedSession::saying(4, 10, 2, &[3]);
        let recorded = record_generation(&mut short, &[1, 2], 40).unwrap();
        assert_eq!(recorded.tokens, [3, 3, 3]);
        assert_eq!(replay_generation(&mut short, &recorded).unwrap(), SelfTestResult::Passed);
    }

    #[test]
    fn self_test_prompts_fit() {
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
