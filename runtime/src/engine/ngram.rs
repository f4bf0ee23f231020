//! Guesses of the next tokens by looking up the end of a text in the text itself.

use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Error};

/// Settings of speculation with n-grams of the prompt and the answer so far.
///
/// The most recent place with the longest n-gram that ends the text is found, and what followed there is the draft. The
/// draft is verified in one step, so the answer is the same as without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speculation {
    /// The fewest tokens that have to agree; at least 1.
    pub ngram_min: usize,
    /// The most tokens that are compared.
    pub ngram_max: usize,
    /// The most tokens of a draft; at least 1.
    pub draft_max: usize,
}

impl Default for Speculation {
    /// Returns settings for texts that repeat phrases of the prompt.
    fn default() -> Self {
        Self { ngram_min: 2, ngram_max: 4, draft_max: 8 }
    }
}

impl Speculation {
    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// A setting is 0, or the smallest n-gram is larger than the largest.
    pub fn check(&self) -> Result<(), Error> {
        let &Self { ngram_min, ngram_max, draft_max } = self;
        let refuse =
            |name, value, expected: String| Err(EngineError::BadSpeculation { name, value, expected }.into());
        if ngram_min == 0 {
            return refuse("ngram_min", ngram_min, "at least 1".to_owned());
        }
        if ngram_max < ngram_min {
            return refuse("ngram_max", ngram_max, format!("at least ngram_min, {ngram_min}"));
        }
        if draft_max == 0 {
            return refuse("draft_max", draft_max, "at least 1".to_owned());
        }
        Ok(())
    }

    /// Guesses at most `most` tokens that follow `text`; none if its end is new.
    pub(super) fn draft(&self, text: &[u32], most: usize) -> Vec<u32> {
        let (mut best, mut from) = (0, 0);
        for end in (1..text.len()).rev() {
            let pairs = text[..end].iter().rev().zip(text.iter().rev());
            let agree = pairs.take(self.ngram_max).take_while(|(a, b)| a == b).count();
            if agree > best {
                (best, from) = (agree, end);
                if best == self.ngram_max {
                    break;
                }
            }
        }
        if best < self.ngram_min {
            return Vec::new();
        }
        // A draft that reaches the end of the text goes on with itself: the text repeats there.
        let period = text.len() - from;
        (0..most.min(self.draft_max)).map(|index| text[from + index % period]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH: Speculation = Speculation { ngram_min: 2, ngram_max: 3, draft_max: 4 };

    #[test]
    fn the_longest_match_wins_and_the_most_recent_of_equals() {
        assert_eq!(WITH.draft(&[1, 2, 3, 7, 8, 2, 3, 9, 9, 1, 2, 3], 4), [7, 8, 2, 3]);
        assert_eq!(WITH.draft(&[2, 3, 7, 7, 7, 2, 3, 8, 8, 8, 2, 3], 3), [8, 8, 8]);
    }

    #[test]
    fn short_matches_are_no_match() {
        assert!(WITH.draft(&[3, 1, 2, 3], 4).is_empty());
        assert!(WITH.draft(&[], 4).is_empty());
        assert_eq!(Speculation { ngram_min: 1, ..WITH }.draft(&[3, 1, 2, 3], 2), [1, 2]);
        assert!(WITH.draft(&[1, 2, 1, 2], 0).is_empty());
    }

    #[test]
    fn repetition_goes_on() {
        assert_eq!(WITH.draft(&[1, 2, 5, 1, 2, 5], 9), [1, 2, 5, 1]);
        assert_eq!(WITH.draft(&[4, 4, 4], 2), [4, 4]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let message = |settings: Speculation| settings.check().unwrap_err().to_string();
        let hint = "hint: ngram_min 2, ngram_max 4 and draft_max 8 suit most texts";
        assert_eq!(
            message(Speculation { ngram_min: 0, ..WITH }),
            format!("ngram_min is 0, expected at least 1\n{hint}")
        );
        assert_eq!(
            message(Speculation { ngram_max: 1, ..WITH }),
            format!("ngram_max is 1, expected at least ngram_min, 2\n{hint}")
        );
        assert_eq!(
            message(Speculation { draft_max: 0, ..WITH }),
            format!("draft_max is 0, expected at least 1\n{hint}")
        );
        assert!(Speculation::default().check().is_ok());
    }
}
