//! Which texts go through the device in which call.

use std::collections::BTreeSet;

use mlxcel_artifacts::entry::CallSizes;

/// Texts that go through in one call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedCall {
    /// The index of the entry point.
    pub(super) entry: usize,
    /// The indices of the texts, the longest first.
    pub(super) texts: Vec<usize>,
}

/// Divides texts among calls: each is filled with the longest text that still fits.
///
/// `lengths` are the tokens of each text, at least one. Of `sizes`, ascending by the rows of a sequence, at least the last
/// holds the longest text.
pub(super) fn plan_calls(lengths: &[usize], sizes: &[CallSizes]) -> Vec<PlannedCall> {
    let mut rest: BTreeSet<(usize, usize)> =
        lengths.iter().enumerate().map(|(index, &length)| (length, index)).collect();
    let mut calls = Vec::new();
    while let Some(&(longest, _)) = rest.last() {
        let entry = entry_to_fill(sizes, longest);
        let CallSizes { rows, sequences, uniform, .. } = sizes[entry];
        let (mut texts, mut taken) = (Vec::new(), 0);
        while texts.len() < sequences.max(1) {
            let room = if uniform { sizes[entry].rows_of_a_sequence() } else { rows - taken };
            let Some(&text) = rest.range(..=(room, usize::MAX)).next_back() else { break };
            rest.remove(&text);
            taken += text.0;
            texts.push(text.1);
        }
        let entry = if uniform { entry } else { smallest_ragged(sizes, taken, texts.len(), entry) };
        calls.push(PlannedCall { entry, texts });
    }
    calls
}

/// Returns the entry to fill, which holds the longest text: the largest of calls that skip their padding, or the smallest
/// of those that compute it.
fn entry_to_fill(sizes: &[CallSizes], longest: usize) -> usize {
    let holds = |index: &usize| sizes[*index].rows_of_a_sequence() >= longest;
    let ragged = (0..sizes.len()).rev().find(|index| !sizes[*index].uniform && holds(index));
    ragged.or_else(|| (0..sizes.len()).find(holds)).unwrap_or(sizes.len() - 1)
}

/// Returns the smallest ragged entry for so many rows and texts, or `filled`.
fn smallest_ragged(sizes: &[CallSizes], rows: usize, texts: usize, filled: usize) -> usize {
    let holds = |sizes: &CallSizes| !sizes.uniform && sizes.rows >= rows && sizes.sequences >= texts;
    sizes.iter().position(holds).unwrap_or(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(uniform: bool, of: &[(usize, usize)]) -> Vec<CallSizes> {
        of.iter()
            .map(|&(rows, sequences)| CallSizes {
                rows,
                sequences,
                selected: sequences,
                uniform,
                in_place: false,
            })
            .collect()
    }

    /// Returns the rows of the entry and the texts of each call.
    fn planned(lengths: &[usize], sizes: &[CallSizes]) -> Vec<(usize, Vec<usize>)> {
        let calls = plan_calls(lengths, sizes);
        calls.into_iter().map(|PlannedCall { entry, texts }| (sizes[entry].rows, texts)).collect()
    }

    #[test]
    fn ragged_calls_are_filled_with_the_longest_texts_that_fit() {
        let sizes = sizes(false, &[(8, 2), (32, 4)]);
        assert_eq!(planned(&[], &sizes), []);
        // 20 + 12 fill a call, then 9 + 8 + 8, because 7 is shorter, and 1 goes where it fits.
        let found = planned(&[9, 20, 8, 12, 8, 7, 1], &sizes);
        assert_eq!(found, [(32, vec![1, 3]), (32, vec![0, 4, 2, 5]), (8, vec![6])]);
        // Four texts at most, although there is room for more.
        assert_eq!(planned(&[1; 6], &sizes), [(32, vec![5, 4, 3, 2]), (8, vec![1, 0])]);
    }

    #[test]
    fn a_call_takes_the_smallest_entry_that_holds_it() {
        let sizes = sizes(false, &[(8, 8), (32, 32), (128, 64)]);
        for (length, rows) in [(1, 8), (8, 8), (9, 32), (33, 128), (128, 128)] {
            assert_eq!(planned(&[length], &sizes), [(rows, vec![0])]);
        }
        // Nine texts of a token are more sequences than the first entry has.
        let nine: Vec<usize> = (0..9).rev().collect();
        assert_eq!(planned(&[1; 9], &sizes), [(32, nine)]);
    }

    #[test]
    fn uniform_calls_pad_each_text_the_least() {
        let one = sizes(true, &[(8, 1), (32, 1)]);
        assert_eq!(planned(&[3, 20, 8], &one), [(32, vec![1]), (8, vec![2]), (8, vec![0])]);
        // Two sequences of 16 rows.
        let two = sizes(true, &[(8, 1), (32, 2)]);
        assert_eq!(planned(&[9, 16, 10, 2], &two), [(32, vec![1, 2]), (32, vec![0, 3])]);
    }

    #[test]
    fn every_text_goes_through_once_and_fits() {
        let sizes = sizes(false, &[(32, 32), (128, 64), (512, 64)]);
        let lengths: Vec<usize> = (0..1000).map(|index| 1 + index * 7919 % 512).collect();
        let calls = plan_calls(&lengths, &sizes);
        for PlannedCall { entry, texts } in &calls {
            let rows: usize = texts.iter().map(|&text| lengths[text]).sum();
            assert!(rows <= sizes[*entry].rows && texts.len() <= sizes[*entry].sequences, "{texts:?}");
        }
        let mut all: Vec<usize> = calls.iter().flat_map(|call| call.texts.clone()).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..lengths.len()));
        // Only the last calls are not full.
        let rows: usize = lengths.iter().sum();
        assert!(calls.len() <= rows.div_ceil(512) + 2, "{} calls for {rows} rows", calls.len());
    }
}
