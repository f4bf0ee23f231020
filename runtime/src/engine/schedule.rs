//! What the next call runs: the size of the step, and how many rows each request gets.
//!
//! - The request whose turn is longest ago has its turn: it gets a row, and a prompt at least half of the largest chunk
//!   that a step could give it then. So each has a turn at least once in as many steps as requests run.
//! - Then come requests that generate, with one row each.
//! - Prompts get what is left, in turns: the one whose turn is longest ago fills its chunk first.
//! - Drafts get what prompts leave, and at most half of the rows after the first of each request.
//!
//! Among the sizes that a model has, the one that carries the most is taken, and the smallest of equals. Those whose
//! padding is computed come last where it is half of the call or more.

use std::cmp::Reverse;

use mlxcel_artifacts::entry::CallSizes;

/// What a request can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Want {
    /// Tokens to run: the rest of the prompt, or the last token of the answer.
    pub(super) pending: usize,
    /// Drafts that can follow the pending token.
    pub(super) drafts: usize,
    /// True until the whole prompt was run.
    pub(super) is_prompt: bool,
    /// True if logits are wanted of the last pending token, and of drafts.
    pub(super) selects: bool,
    /// The step of the request's last turn, or in which it was admitted.
    pub(super) served: u64,
}

/// A step to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The index of the size.
    pub(super) size: usize,
    /// The rows of each request, in the order of the wants; 0 for none.
    pub(super) rows: Vec<usize>,
    /// True for the requests that have their turn. A prompt with a few rows of a step for others has not.
    pub(super) turns: Vec<bool>,
}

/// The index of a size, and the rows of each request in a call of it.
type Packed = (usize, Vec<usize>);

/// Chooses a step. `None` if there is nothing to run. `limit` is the most rows of a sequence.
pub(super) fn plan(sizes: &[CallSizes], limit: usize, wants: &[Want]) -> Option<Plan> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by_key(|&index| (wants[index].served, index));
    let &first = order.first()?;
    let packed: Vec<Packed> = sizes
        .iter()
        .enumerate()
        .filter_map(|(index, size)| Some((index, pack(size, limit, wants, &order)?)))
        .collect();
    // Uniform calls compute their padding: more than half of a chunk is to be used.
    let is_filled = |(index, rows): &Packed| {
        let size = sizes[*index];
        !size.uniform || size.rows_of_a_sequence() == 1 || rows.iter().sum::<usize>() * 2 > size.rows
    };
    let filled = packed.iter().filter(|packed| is_filled(packed)).map(|(_, rows)| rows[first]).max();
    let most = filled.or_else(|| packed.iter().map(|(_, rows)| rows[first]).max())?;
    let best = packed.into_iter().max_by_key(|packed| {
        let (index, rows) = packed;
        let generating = wants.iter().zip(rows).filter(|(want, rows)| !want.is_prompt && **rows > 0).count();
        // A prompt whose turn it is gets a chunk, and not one row beside many requests that generate.
        let is_fair = !wants[first].is_prompt || rows[first] * 2 >= most;
        let sum = rows.iter().sum::<usize>();
        (is_fair, generating, is_filled(packed), sum, Reverse(sizes[*index].rows), Reverse(*index))
    });
    let (size, rows) = best?;
    let largest = sizes.iter().map(|size| size.rows_of_a_sequence()).max().unwrap_or(0).min(limit);
    let turns = wants.iter().zip(&rows).enumerate().map(|(index, (want, &rows))| {
        let is_chunk = !want.is_prompt || rows * 2 >= want.pending.min(largest);
        rows > 0 && (index == first || is_chunk)
    });
    Some(Plan { size, turns: turns.collect(), rows })
}

/// Fills a step. `None` if the first of `order` gets nothing.
fn pack(size: &CallSizes, limit: usize, wants: &[Want], order: &[usize]) -> Option<Vec<usize>> {
    let mut filling = Filling {
        wants,
        most: size.rows_of_a_sequence().min(limit),
        rows: vec![0; wants.len()],
        rows_left: size.rows,
        sequences_left: size.sequences,
        selected_left: size.selected,
    };
    let first = order[0];
    filling.raise(first, 1);
    if filling.rows[first] == 0 {
        return None;
    }
    let (prompts, generating): (Vec<usize>, Vec<usize>) =
        order.iter().copied().partition(|&index| wants[index].is_prompt);
    generating.iter().for_each(|&index| filling.raise(index, 1));
    filling.draft(&generating, &prompts);
    prompts.iter().for_each(|&index| filling.raise(index, wants[index].pending));
    Some(filling.rows)
}

/// A step that is being filled.
struct Filling<'a> {
    wants: &'a [Want],
    /// The most rows of a sequence.
    most: usize,
    rows: Vec<usize>,
    rows_left: usize,
    sequences_left: usize,
    selected_left: usize,
}

impl Filling<'_> {
    /// Raises the rows of a request towards `target`, without drafts.
    fn raise(&mut self, index: usize, target: usize) {
        let Want { pending, selects, .. } = self.wants[index];
        let has = self.rows[index];
        if has == 0 && self.sequences_left == 0 {
            return;
        }
        let mut rows = target.min(pending).min(self.most).min(has + self.rows_left);
        if rows > has && rows == pending && selects && self.selected_left == 0 {
            rows -= 1;
        }
        if rows <= has {
            return;
        }
        self.sequences_left -= usize::from(has == 0);
        self.rows_left -= rows - has;
        self.selected_left -= usize::from(rows == pending && selects);
        self.rows[index] = rows;
    }

    /// Gives drafts to requests that have their row, and leaves prompts what they can use or half of the rest.
    fn draft(&mut self, generating: &[usize], prompts: &[usize]) {
        let wanted = prompts.iter().map(|&index| self.wants[index].pending.min(self.most)).sum::<usize>();
        let kept = wanted.min(self.rows_left.div_ceil(2));
        let ending = |index: &&usize| self.wants[**index].selects && self.wants[**index].pending <= self.most;
        let ends = prompts.iter().filter(ending).count().min(self.sequences_left + 1);
        let mut left = (self.rows_left - kept).min(self.selected_left.saturating_sub(ends));
        for &index in generating.iter().filter(|&&index| self.wants[index].drafts > 0) {
            if self.rows[index] == 0 {
                continue;
            }
            let drafts = self.wants[index].drafts.min(left).min(self.most - self.rows[index]);
            self.rows[index] += drafts;
            self.rows_left -= drafts;
            self.selected_left -= drafts;
            left -= drafts;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ragged(rows: usize, sequences: usize) -> CallSizes {
        CallSizes { rows, sequences, selected: sequences, uniform: false, in_place: false }
    }

    const fn generating(served: u64) -> Want {
        Want { pending: 1, drafts: 0, is_prompt: false, selects: true, served }
    }

    const fn prompt(pending: usize, served: u64) -> Want {
        Want { pending, drafts: 0, is_prompt: true, selects: true, served }
    }

    fn found(sizes: &[CallSizes], wants: &[Want]) -> (usize, Vec<usize>) {
        let Plan { size, rows, turns: _ } = plan(sizes, usize::MAX, wants).unwrap();
        (size, rows)
    }

    const SIZES: [CallSizes; 3] = [ragged(1, 1), ragged(8, 8), ragged(64, 8)];

    #[test]
    fn the_smallest_size_that_carries_all() {
        assert_eq!(plan(&SIZES, 64, &[]), None);
        assert_eq!(found(&SIZES, &[generating(1)]), (0, vec![1]));
        assert_eq!(found(&SIZES, &[generating(1), generating(1)]), (1, vec![1, 1]));
        assert_eq!(found(&SIZES, &[generating(1), prompt(7, 1)]), (1, vec![1, 7]));
        assert_eq!(found(&SIZES, &[generating(1), prompt(8, 1)]), (2, vec![1, 8]));
    }

    #[test]
    fn prompts_fill_what_generation_leaves_in_turns() {
        let wants = [generating(5), prompt(100, 5), prompt(3, 4)];
        assert_eq!(found(&SIZES, &wants), (2, vec![1, 60, 3]));
        let wants = [prompt(100, 5), prompt(100, 4), generating(5)];
        assert_eq!(found(&SIZES, &wants), (2, vec![0, 63, 1]));
    }

    #[test]
    fn a_prompt_gets_a_chunk_when_it_is_its_turn() {
        // Generation and prompts never fit one step.
        let sizes =
            [CallSizes { rows: 8, sequences: 8, selected: 8, uniform: true, in_place: false }, ragged(64, 1)];
        let wants = |prompt_served| [generating(5), generating(5), prompt(100, prompt_served)];
        assert_eq!(found(&sizes, &wants(5)), (0, vec![1, 1, 1]));
        assert_eq!(found(&sizes, &wants(4)), (1, vec![0, 0, 64]));
        // One row is not a turn, or the prompt would get no more than that.
        assert_eq!(plan(&sizes, 64, &wants(5)).unwrap().turns, [true, true, false]);
    }

    #[test]
    fn uniform_sizes_and_the_limit_cut_chunks() {
        let sizes = [CallSizes { rows: 32, sequences: 4, selected: 4, uniform: true, in_place: false }];
        assert_eq!(found(&sizes, &[prompt(100, 1), prompt(3, 1)]), (0, vec![8, 3]));
        assert_eq!(plan(&sizes, 5, &[prompt(100, 1)]).unwrap().rows, [5]);
    }

    /// Returns the rows of the calls' sizes for a prompt.
    fn cut(sizes: &[CallSizes], mut tokens: usize) -> Vec<usize> {
        let mut calls = vec![];
        while tokens > 0 {
            let plan = plan(sizes, usize::MAX, &[prompt(tokens, 1)]).unwrap();
            calls.push(sizes[plan.size].rows);
            tokens -= plan.rows[0];
        }
        calls
    }

    #[test]
    fn a_prompt_is_cut_into_calls() {
        let sizes = |uniform| {
            [16, 128, 512].map(|rows| CallSizes { rows, sequences: 1, selected: 1, uniform, in_place: false })
        };
        // Padding is computed, so that at least half of a call is used.
        for (tokens, calls) in [
            (1, vec![16]),
            (16, vec![16]),
            (17, vec![16, 16]),
            (64, vec![16; 4]),
            (65, vec![128]),
            (128, vec![128]),
            (257, vec![512]),
            (700, vec![512, 128, 16, 16, 16, 16]),
        ] {
            assert_eq!(cut(&sizes(true), tokens), calls, "{tokens}");
        }
        // Padding is skipped.
        for (tokens, calls) in [
            (1, vec![16]),
            (17, vec![128]),
            (129, vec![512]),
            (700, vec![512, 512]),
            (1030, vec![512, 512, 16]),
        ] {
            assert_eq!(cut(&sizes(false), tokens), calls, "{tokens}");
        }
    }

    #[test]
    fn logits_are_wanted_of_as_many_rows_as_a_size_selects() {
        let sizes = [CallSizes { rows: 16, sequences: 4, selected: 1, uniform: false, in_place: false }];
        assert_eq!(found(&sizes, &[generating(2), generating(1)]), (0, vec![0, 1]));
        // The last row of the prompt waits for a step that can select it.
        assert_eq!(found(&sizes, &[generating(1), prompt(4, 2)]), (0, vec![1, 3]));
        let none = [CallSizes { selected: 0, ..sizes[0] }];
        assert_eq!(plan(&none, 64, &[generating(1)]), None);
        assert_eq!(found(&none, &[prompt(4, 1)]), (0, vec![3]));
        assert_eq!(found(&none, &[Want { selects: false, ..prompt(4, 1) }]), (0, vec![4]));
    }

    #[test]
    fn drafts_take_selected_rows_that_prompts_leave() {
        let sizes = [CallSizes { rows: 16, sequences: 4, selected: 8, uniform: false, in_place: false }];
        let drafting = Want { drafts: 5, ..generating(1) };
        assert_eq!(found(&sizes, &[drafting, drafting]), (0, vec![6, 2]));
        assert_eq!(found(&sizes, &[drafting, prompt(100, 1)]), (0, vec![6, 10]));
        assert_eq!(found(&sizes, &[drafting, drafting, prompt(100, 1)]), (0, vec![6, 2, 8]));
        assert_eq!(found(&SIZES, &[drafting]), (1, vec![6]));
        assert_eq!(found(&[ragged(8, 1)], &[drafting]), (0, vec![1]));
    }
}
