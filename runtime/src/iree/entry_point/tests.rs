//! The values of arguments, without a module.

use mlxcel_artifacts::{
    entry::{ArgumentKind as Kind, ArgumentSpec, Interface, Role},
    sample,
};

use super::*;

const CONTEXT: usize = 300;

const RAGGED: CallSizes = CallSizes { rows: 8, sequences: 3, selected: 4, uniform: false, in_place: false };
/// Rows 0 to 2 are of the first sequence, 3 to 5 of the second, and 6 to 8 of the third.
const UNIFORM: CallSizes = CallSizes { rows: 9, sequences: 3, selected: 4, uniform: true, in_place: false };

/// Returns pools with these windows.
fn pools(windows: &[Option<usize>]) -> Vec<Pool> {
    windows.iter().map(|&window| Pool { window, ..sample::pools()[0].clone() }).collect()
}

/// Returns the values of an argument of a call with these sequences.
fn values(kind: Kind, role: Role, pools: &[Pool], sequences: &[SequenceRows<'_>]) -> Vec<i32> {
    let spec = ArgumentSpec::new(kind, role, &Interface { context: CONTEXT, width: 100, pools }).unwrap();
    // Those of an earlier call.
    let mut values = vec![-1; spec.shape.iter().product()];
    RowPlaces::new(role.sizes().unwrap(), sequences).fill(kind, &spec.shape, &mut values, pools);
    values
}

/// Returns rows of two sequences: three from position 63 on, of which two are selected, and two from position 130 on.
fn two<'a>(pages: [&'a [u32]; 2]) -> [SequenceRows<'a>; 2] {
    [
        SequenceRows { tokens: vec![10, 11, 12], start: 63, pages: vec![pages[0]], selected: vec![1, 2] },
        SequenceRows { tokens: vec![20, 21], start: 130, pages: vec![pages[1]], selected: vec![1] },
    ]
}

fn pages() -> [Vec<u32>; 2] {
    [vec![7, 2], vec![5, 9, 4]]
}

#[test]
fn sequences_of_a_ragged_call_follow_each_other() {
    let pages = pages();
    let values = |kind| values(kind, Role::Step(RAGGED), &pools(&[None]), &two([&pages[0], &pages[1]]));
    assert_eq!(values(Kind::Tokens), [10, 11, 12, 20, 21, 0, 0, 0]);
    assert_eq!(values(Kind::Positions), [63, 64, 65, 130, 131, 0, 0, 0]);
    assert_eq!(values(Kind::Begins), [0, 3, 5, 5], "the third sequence has no rows");
    assert_eq!(values(Kind::Starts), [63, 130, 0]);
    assert_eq!(values(Kind::Rows), [5]);
    let table = [[7, 2, 0, 0, 0], [5, 9, 4, 0, 0], [0; 5]].concat();
    assert_eq!(values(Kind::Pages { pool: 0 }), table);
    assert_eq!(values(Kind::Selected), [1, 2, 4, 0]);
    assert_eq!(values(Kind::SelectedCount), [3]);
}

#[test]
fn sequences_of_a_uniform_call_have_rows_of_their_own() {
    let pages = pages();
    let values = |kind| values(kind, Role::Step(UNIFORM), &pools(&[None]), &two([&pages[0], &pages[1]]));
    assert_eq!(values(Kind::Tokens), [10, 11, 12, 20, 21, 0, 0, 0, 0]);
    assert_eq!(values(Kind::Positions), [63, 64, 65, 130, 131, 0, 0, 0, 0]);
    let slots = [7 * 64 + 63, 2 * 64, 2 * 64 + 1, 4 * 64 + 2, 4 * 64 + 3];
    assert_eq!(values(Kind::Slots { pool: 0 })[..5], slots);
    assert_eq!(values(Kind::Slots { pool: 0 })[5..], [0; 4], "padding goes to page 0");
    assert_eq!(values(Kind::End), [132]);
    assert_eq!(values(Kind::Selected), [1, 2, 4, 0]);
    let table = [[7, 2, 0, 0, 0], [5, 9, 4, 0, 0], [0; 5]].concat();
    assert_eq!(values(Kind::Pages { pool: 0 }), table);
}

#[test]
fn shorter_sequences_of_a_uniform_call_are_padded() {
    let pages = pages();
    let [a, b] = two([&pages[0], &pages[1]]);
    let values =
        |kind| values(kind, Role::Step(UNIFORM), &pools(&[None]), &[b.clone(), a.clone(), b.clone()]);
    assert_eq!(values(Kind::Tokens), [20, 21, 0, 10, 11, 12, 20, 21, 0]);
    assert_eq!(values(Kind::Positions), [130, 131, 0, 63, 64, 65, 130, 131, 0]);
    assert_eq!(values(Kind::Slots { pool: 0 })[1..4], [4 * 64 + 3, 0, 7 * 64 + 63]);
    assert_eq!(values(Kind::Selected), [1, 4, 5, 7]);
    assert_eq!(values(Kind::End), [132]);
}

#[test]
fn pages_within_a_window_begin_at_the_first_that_is_seen() {
    let pools = pools(&[None, Some(64), Some(100)]);
    let pages = [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12, 13, 14, 15]];
    let pages = || pages.iter().map(<[u32; 5]>::as_slice).collect();
    let sequence = |start| [SequenceRows { tokens: vec![0, 0], start, pages: pages(), selected: vec![] }];
    let uniform = |kind, position| values(kind, Role::Step(UNIFORM), &pools, &sequence(position));
    let (first, table) = (|pool| Kind::FirstPages { pool }, |pool| Kind::Pages { pool });
    for (position, first_64, first_100) in
        [(0, 0, 0), (63, 0, 0), (126, 0, 0), (127, 1, 0), (162, 1, 0), (163, 1, 1), (190, 1, 1), (191, 2, 1)]
    {
        assert_eq!(uniform(first(1), position), [first_64, 0, 0], "{position}");
        assert_eq!(uniform(first(2), position), [first_100, 0, 0], "{position}");
    }
    // Without a window a table has all pages; that of a window has those that the most rows see.
    assert_eq!(uniform(table(0), 191)[..6], [1, 2, 3, 4, 5, 0]);
    assert_eq!(uniform(table(1), 126), [[6, 7, 8], [0; 3], [0; 3]].concat());
    assert_eq!(uniform(table(1), 191), [[8, 9, 10], [0; 3], [0; 3]].concat());
    assert_eq!(uniform(table(1), 298), [[9, 10, 0], [0; 3], [0; 3]].concat());
    assert_eq!(uniform(table(2), 191), [[12, 13, 14], [0; 3], [0; 3]].concat());
    // Slots are those of the whole cache.
    assert_eq!(uniform(Kind::Slots { pool: 1 }, 191)[..2], [8 * 64 + 63, 9 * 64]);
    assert_eq!(uniform(Kind::Slots { pool: 2 }, 191)[..2], [13 * 64 + 63, 14 * 64]);
    // In a ragged call a table has all pages.
    let ragged = values(table(1), Role::Step(RAGGED), &pools, &sequence(191));
    assert_eq!(ragged, [[6, 7, 8, 9, 10], [0; 5], [0; 5]].concat());
}

#[test]
fn every_page_that_a_window_sees_is_in_its_table() {
    for (window, rows) in [(1, 1), (2, 64), (63, 1), (64, 3), (65, 65), (100, 1), (128, 128)] {
        let sizes = CallSizes { rows, sequences: 1, selected: 1, uniform: true, in_place: false };
        let pools = pools(&[Some(window)]);
        let pages: Vec<u32> = (1..=5).collect();
        for position in 0..CONTEXT - rows {
            let (tokens, pages) = (vec![0; rows], vec![pages.as_slice()]);
            let sequence = [SequenceRows { tokens, start: position, pages, selected: vec![] }];
            let values = |kind| values(kind, Role::Step(sizes), &pools, &sequence);
            let first = values(Kind::FirstPages { pool: 0 })[0] as usize;
            let table = values(Kind::Pages { pool: 0 });
            for seen in (position + 1).saturating_sub(window)..position + rows {
                assert_eq!(table[seen / PAGE - first], 1 + (seen / PAGE) as i32, "{window} {rows} {seen}");
            }
        }
    }
}

#[test]
fn texts_to_embed() {
    let tokens: Vec<u32> = (0..70).collect();
    let text = |tokens: &[u32]| SequenceRows {
        tokens: tokens.to_vec(),
        start: 0,
        pages: vec![&[1, 2]],
        selected: vec![],
    };
    let uniform = CallSizes { rows: 140, sequences: 2, selected: 1, uniform: true, in_place: false };
    let lengths = |texts: &[SequenceRows<'_>]| values(Kind::Lengths, Role::Embed(uniform), &[], texts);
    assert_eq!(lengths(&[text(&tokens), text(&tokens[..3])]), [70, 3]);
    assert_eq!(lengths(&[text(&tokens)]), [70, 1], "the mean of no tokens is no number");
    let ragged = Role::Embed(CallSizes { uniform: false, ..uniform });
    let table = values(Kind::Pages { pool: 0 }, ragged, &[], &[text(&tokens)]);
    assert_eq!(table, [[1, 2, 0, 0, 0], [0; 5]].concat());
}
