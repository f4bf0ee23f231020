//! Entry points and caches that are refused.

use super::*;
use crate::manifest::{
    Pooling,
    entry::{ArgumentKind, PagePart, ResultKind},
    sample,
};

/// Returns the entry points, whose indices are [`STEP_1`] and [`STEP_4`].
fn entries(manifest: &mut Manifest) -> &mut Vec<Entry> {
    &mut manifest.targets.get_mut("cpu").unwrap().entries
}

const STEP_1: usize = 0;
const STEP_4: usize = 1;

fn serving(manifest: &mut Manifest) -> &mut Serving {
    manifest.targets.get_mut("cpu").unwrap().serving.as_mut().unwrap()
}

/// Gives a manifest these pools, and an entry for them in `role`.
fn with_pools(manifest: &mut Manifest, role: Role, pools: Vec<Pool>) {
    *entries(manifest) = vec![Entry::new(role, &Interface { context: 64, width: 100, pools: &pools })];
    serving(manifest).pools = pools;
}

/// Makes the manifest one of an encoder with this entry.
fn embedding(manifest: &mut Manifest, sizes: CallSizes) {
    manifest.plan.as_mut().unwrap().embedding =
        Some(EmbeddingSpec { width: 8, pooling: Pooling::Mean, normalized: true });
    serving(manifest).pools.clear();
    let interface = Interface { context: 64, width: 8, pools: &[] };
    *entries(manifest) = vec![Entry::new(Role::Embed(sizes), &interface)];
}

/// Makes the manifest one of format 2.
pub(super) fn old(manifest: &mut Manifest) {
    manifest.format = 2;
    manifest.plan.as_mut().unwrap().batch = Some(1);
    let cpu = manifest.targets.get_mut("cpu").unwrap();
    cpu.serving = None;
    let interface = Interface { context: 64, width: 100, pools: &[] };
    cpu.entries =
        [Role::Prefill { tokens: 16 }, Role::Decode { cache: 64 }].map(|r| Entry::new(r, &interface)).into();
}

const RAGGED: CallSizes = CallSizes { rows: 64, sequences: 2, selected: 2, uniform: false, in_place: false };
const UNIFORM: CallSizes = CallSizes { uniform: true, ..RAGGED };

#[test]
fn entry_points() {
    assert_eq!(
        refused(|m| entries(m)[STEP_4].name = "main".into()),
        "target cpu: entry is named `main`, expected `step_4` by its role"
    );
    assert_eq!(
        refused(|m| entries(m).extend_from_within(STEP_1..STEP_4)),
        "target cpu: entry step_1 is listed twice"
    );
    // Entries of one name have one size.
    assert_eq!(
        refused(|m| entries(m).push(sample::entry(sample::step(4, 4), 64, 100))),
        "target cpu: entry step_4 is listed twice"
    );
    assert_eq!(refused(|m| entries(m).clear()), "target cpu: no entry, expected at least one");
    assert_eq!(
        refused(|m| m.plan.as_mut().unwrap().context = 65),
        "target cpu: pages of pool 0 of entry step_1 is i32[1,1], expected i32[1,2]"
    );
}

#[test]
fn arguments_and_results() {
    let argument = |m: &mut Manifest, kind: ArgumentKind| -> usize {
        entries(m)[STEP_4].arguments.iter().position(|argument| argument.kind == kind).unwrap()
    };
    let shaped = |kind: ArgumentKind, shape: &[usize]| {
        refused(|m| {
            let at = argument(m, kind);
            entries(m)[STEP_4].arguments[at].shape = shape.to_vec();
        })
    };
    let (pages, cache) = (ArgumentKind::Pages { pool: 0 }, ArgumentKind::Cache { pool: 0, part: 0 });
    for (kind, shape, problem) in [
        (ArgumentKind::Tokens, &[5][..], "tokens of entry step_4 is i32[5], expected i32[4]"),
        (ArgumentKind::Begins, &[2], "begins of entry step_4 is i32[2], expected i32[3]"),
        (ArgumentKind::Selected, &[3], "selected of entry step_4 is i32[3], expected i32[2]"),
        (pages, &[2, 2], "pages of pool 0 of entry step_4 is i32[2,2], expected i32[2,1]"),
        (pages, &[2], "pages of pool 0 of entry step_4 is i32[2], expected i32[2,1]"),
        (cache, &[1, 2, 2, 64, 8], "cache 0.0 of entry step_4 is f32[1,2,2,64,8], expected f32[0,2,2,64,8]"),
        (cache, &[0, 4, 64, 8], "cache 0.0 of entry step_4 is f32[0,4,64,8], expected f32[0,2,2,64,8]"),
    ] {
        assert_eq!(shaped(kind, shape), format!("target cpu: {problem}"));
    }
    assert_eq!(
        refused(|m| entries(m)[STEP_4].arguments[1].dtype = Dtype::I64),
        "target cpu: positions of entry step_4 is i64[4], expected i32[4]"
    );
    assert_eq!(
        refused(|m| entries(m)[STEP_4].results[1].shape = vec![2, usize::MAX]),
        "target cpu: logits of entry step_4 is f32[2,18446744073709551615], expected f32[2,100]"
    );
    assert_eq!(
        refused(|m| entries(m)[STEP_4].results[2].shape[0] = 2),
        "target cpu: cache 0.0 of entry step_4 is f32[2,2,2,64,8], expected f32[0,2,2,64,8]"
    );
    assert_eq!(
        refused(|m| entries(m)[STEP_4].arguments.extend_from_within(..1)),
        "target cpu: entry step_4 takes tokens twice"
    );
    assert_eq!(
        refused(|m| entries(m)[STEP_4].results.extend_from_within(..1)),
        "target cpu: entry step_4 gives next_token twice"
    );
    // Each is needed.
    let all = sample::entry(sample::step(4, 2), 64, 100);
    for (index, argument) in all.arguments.iter().enumerate() {
        let expected = format!("target cpu: entry step_4 takes no {}", argument.kind);
        assert_eq!(refused(|m| entries(m)[STEP_4].arguments.remove(index)), expected);
    }
    for (index, result) in all.results.iter().enumerate() {
        let expected = format!("target cpu: entry step_4 gives no {}", result.kind);
        assert_eq!(refused(|m| entries(m)[STEP_4].results.remove(index)), expected);
    }
}

#[test]
fn arguments_and_results_of_other_entries() {
    let taken = |kind: ArgumentKind, shape: &[usize]| {
        let argument = ArgumentSpec { name: None, kind, dtype: Dtype::I32, shape: shape.to_vec() };
        refused(|m| entries(m)[STEP_4].arguments.push(argument))
    };
    for (kind, shape) in [
        (ArgumentKind::Pages { pool: 1 }, &[2, 1][..]),
        (ArgumentKind::Slots { pool: 0 }, &[4]),
        (ArgumentKind::Slots { pool: 9 }, &[4]),
        (ArgumentKind::FirstPages { pool: 9 }, &[2]),
        (ArgumentKind::Cache { pool: 1, part: 0 }, &[0, 2, 2, 64, 8]),
        (ArgumentKind::Cache { pool: 0, part: 1 }, &[0, 2, 2, 64, 8]),
        (ArgumentKind::Lengths, &[2]),
        (ArgumentKind::End, &[]),
        (ArgumentKind::Logits, &[2, 100]),
    ] {
        assert_eq!(taken(kind, shape), format!("target cpu: entry step_4 takes {kind}, expected none"));
    }
    let given = |kind: ResultKind| {
        let result = ResultSpec { name: None, kind, dtype: Dtype::F32, shape: vec![2, 100] };
        refused(|m| entries(m)[STEP_4].results.push(result))
    };
    assert_eq!(given(ResultKind::Embedding), "target cpu: entry step_4 gives embedding, expected none");
    for kind in [ResultKind::BestTokens, ResultKind::BestLogits, ResultKind::LogSumExp] {
        assert_eq!(given(kind), format!("target cpu: entry step_4 gives {kind}, expected none"));
    }
    assert_eq!(
        given(ResultKind::Cache { pool: 0, part: 1 }),
        "target cpu: entry step_4 gives cache 0.1, expected none"
    );
    assert_eq!(
        refused(|m| {
            embedding(m, RAGGED);
            let kind = ArgumentKind::Pages { pool: 1 };
            entries(m)[0].arguments.push(ArgumentSpec {
                name: None,
                kind,
                dtype: Dtype::I32,
                shape: vec![2, 1],
            });
        }),
        "target cpu: entry embed_64 takes pages of pool 1, expected none"
    );
}

#[test]
fn sizes_of_calls() {
    let sized = |sizes: CallSizes| refused(|m| entries(m).push(sample::entry(Role::Step(sizes), 64, 100)));
    assert_eq!(
        sized(CallSizes { rows: 0, ..RAGGED }),
        "target cpu: entry step_0 is for 0 rows, expected 1 to 2147483647"
    );
    assert_eq!(
        sized(CallSizes { rows: 1 << 31, ..RAGGED }),
        "target cpu: entry step_2147483648 is for 2147483648 rows, expected 1 to 2147483647"
    );
    assert_eq!(
        sized(CallSizes { sequences: 0, ..UNIFORM }),
        "target cpu: entry step_64 is for 0 sequences, expected 1 to 2147483647"
    );
    assert_eq!(
        sized(CallSizes { selected: 0, ..RAGGED }),
        "target cpu: entry step_64 is for 0 selected rows, expected 1 to 2147483647"
    );
    assert_eq!(
        sized(CallSizes { sequences: 65, ..RAGGED }),
        "target cpu: entry step_64 has 64 rows for 65 sequences, expected some for each"
    );
    assert_eq!(
        sized(CallSizes { sequences: 3, ..UNIFORM }),
        "target cpu: entry step_64 has 64 rows for 3 sequences, expected some for each"
    );
    let valid = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = manifest();
        change(&mut manifest);
        manifest.validate().unwrap();
        assert_eq!(Manifest::parse(&manifest.render().unwrap()).unwrap(), manifest);
    };
    valid(&|m| entries(m).push(sample::entry(Role::Step(CallSizes { sequences: 3, ..RAGGED }), 64, 100)));
    valid(&|m| entries(m).push(sample::entry(Role::Step(UNIFORM), 64, 100)));
    valid(&|m| entries(m).push(sample::entry(Role::Best { rows: 2 }, 64, 100)));
    valid(&|m| entries(m).insert(0, sample::entry(Role::Best { rows: 1 }, 64, 100)));
    valid(&|m| embedding(m, RAGGED));
    valid(&|m| embedding(m, CallSizes { rows: 128, ..UNIFORM }));
    valid(&old);
}

#[test]
fn entries_for_the_best_tokens() {
    let best = |rows| sample::entry(Role::Best { rows }, 64, 100);
    let with = |entry: Entry| refused(|m| entries(m).push(entry));
    assert_eq!(with(best(0)), "target cpu: entry best_0 is for 0 rows, expected 1 to 2147483647");
    assert_eq!(
        with(best(1 << 31)),
        "target cpu: entry best_2147483648 is for 2147483648 rows, expected 1 to 2147483647"
    );
    // The steps select 1 and 2 rows.
    assert_eq!(
        with(best(4)),
        "target cpu: entry best_4 is for 4 rows of logits, expected as many as a step selects"
    );
    assert_eq!(
        refused(|m| *entries(m) = vec![best(1)]),
        "target cpu: entry best_1 is for 1 rows of logits, expected as many as a step selects"
    );
    assert_eq!(
        with(Entry { name: "best".into(), ..best(2) }),
        "target cpu: entry is named `best`, expected `best_2` by its role"
    );
    assert_eq!(
        refused(|m| entries(m).extend([best(2), best(2)])),
        "target cpu: entry best_2 is listed twice"
    );
    let changed = |change: fn(&mut Entry)| {
        let mut entry = best(2);
        change(&mut entry);
        with(entry)
    };
    for (change, problem) in [
        (
            (|e| e.arguments[0].shape = vec![2, 99]) as fn(&mut Entry),
            "logits of entry best_2 is f32[2,99], expected f32[2,100]",
        ),
        (
            |e| e.arguments[0].shape = vec![1, 100],
            "logits of entry best_2 is f32[1,100], expected f32[2,100]",
        ),
        (|e| e.arguments[0].dtype = Dtype::I32, "logits of entry best_2 is i32[2,100], expected f32[2,100]"),
        (|e| e.arguments[1].shape = vec![2], "selected_count of entry best_2 is i32[2], expected i32[1]"),
        (
            |e| e.results[0].shape = vec![2, 100],
            "best_tokens of entry best_2 is i32[2,100], expected i32[2,64]",
        ),
        (|e| e.results[0].dtype = Dtype::I64, "best_tokens of entry best_2 is i64[2,64], expected i32[2,64]"),
        (
            |e| e.results[1].shape = vec![2, 65],
            "best_logits of entry best_2 is f32[2,65], expected f32[2,64]",
        ),
        (|e| e.results[2].shape = vec![2, 1], "log_sum_exp of entry best_2 is f32[2,1], expected f32[2]"),
        (|e| drop(e.arguments.remove(0)), "entry best_2 takes no logits"),
        (|e| drop(e.arguments.remove(1)), "entry best_2 takes no selected_count"),
        (|e| drop(e.results.remove(0)), "entry best_2 gives no best_tokens"),
        (|e| drop(e.results.remove(1)), "entry best_2 gives no best_logits"),
        (|e| drop(e.results.remove(2)), "entry best_2 gives no log_sum_exp"),
        (|e| e.arguments.extend_from_within(..1), "entry best_2 takes logits twice"),
        (|e| e.results[1].kind = ResultKind::Logits, "entry best_2 gives logits, expected none"),
        (|e| e.arguments[0].kind = ArgumentKind::Tokens, "entry best_2 takes tokens, expected none"),
    ] {
        assert_eq!(changed(change), format!("target cpu: {problem}"));
    }
    let few = |m: &mut Manifest| {
        m.plan.as_mut().unwrap().vocab = 5;
        *entries(m) = [sample::step(1, 1), Role::Best { rows: 1 }].map(|r| sample::entry(r, 64, 5)).to_vec();
        entries(m)[1].results[0].shape = vec![1, 64];
    };
    assert_eq!(refused(few), "target cpu: best_tokens of entry best_1 is i32[1,64], expected i32[1,5]");
}

#[test]
fn an_entry_whose_size_overflows() {
    let max = i32::MAX as usize;
    let sizes = CallSizes { rows: max, sequences: 1, selected: max, uniform: false, in_place: false };
    let change = |m: &mut Manifest| {
        m.plan.as_mut().unwrap().vocab = max;
        *entries(m) = vec![sample::entry(Role::Step(sizes), 64, max)];
    };
    assert_eq!(
        refused(change),
        "target cpu: logits of entry step_2147483647 is f32[2147483647,2147483647]: its size overflows"
    );
}

#[test]
fn caches() {
    assert_eq!(
        refused(|m| m.targets.get_mut("cpu").unwrap().serving = None),
        "target cpu: format 7 has no serving, expected it"
    );
    assert_eq!(refused(|m| serving(m).page = 32), "target cpu: a page has 32 positions, expected 64");
    assert_eq!(
        refused(|m| serving(m).pools.clear()),
        "target cpu: found 0 pools, expected some if and only if the model continues texts"
    );
    let pool = |window| Pool { window, ..sample::pools()[0].clone() };
    let pools = |windows: &[Option<usize>]| {
        refused(|m| with_pools(m, Role::Step(UNIFORM), windows.iter().map(|&window| pool(window)).collect()))
    };
    for window in [None, Some(8)] {
        assert_eq!(
            pools(&[Some(9), window, window]),
            "target cpu: two pools have the same window, expected one"
        );
    }
    for window in [0, 1 << 31, usize::MAX] {
        assert_eq!(
            pools(&[None, Some(window)]),
            format!("target cpu: the window of a pool is {window}, expected 1 to 2147483647")
        );
    }
    let parts = |parts: &[(Dtype, &[usize])]| {
        let part = |&(dtype, shape): &(Dtype, &[usize])| PagePart { dtype, shape: shape.to_vec() };
        let pool = Pool { window: None, parts: parts.iter().map(part).collect() };
        refused(|m| with_pools(m, sample::step(4, 2), vec![pool]))
    };
    let empty = "target cpu: a page has no elements, expected some";
    assert_eq!(parts(&[]), empty);
    assert_eq!(parts(&[(Dtype::F32, &[2, 64]), (Dtype::F32, &[2, 0, 64])]), empty);
    let too_large = "target cpu: the size of a page overflows or is not whole bytes";
    assert_eq!(parts(&[(Dtype::F32, &[1 << 40, 1 << 40])]), too_large);
    assert_eq!(parts(&[(Dtype::I8, &[1 << 63])]), too_large, "a file's offsets are i64");
    let half = (Dtype::I8, &[1 << 62][..]);
    assert_eq!(parts(&[half, half]), too_large);
    assert_eq!(parts(&[(Dtype::F4, &[3])]), too_large);
}

#[test]
fn encoders() {
    let encoder = |change: fn(&mut Manifest)| {
        refused(|m| {
            embedding(m, RAGGED);
            change(m);
        })
    };
    assert_eq!(
        encoder(|m| serving(m).pools = sample::pools()),
        "target cpu: found 1 pools, expected some if and only if the model continues texts"
    );
    assert_eq!(
        encoder(|m| entries(m)
            .push(Entry::new(Role::Step(RAGGED), &Interface { context: 64, width: 8, pools: &[] }))),
        "target cpu: entry step_64 in a bundle whose plan has embedding"
    );
    assert_eq!(
        encoder(|m| entries(m).push(sample::entry(Role::Best { rows: 2 }, 64, 8))),
        "target cpu: entry best_2 in a bundle whose plan has embedding"
    );
    assert_eq!(
        refused(|m| entries(m).push(Entry::new(
            Role::Embed(RAGGED),
            &Interface { context: 64, width: 100, pools: &sample::pools() }
        ))),
        "target cpu: entry embed_64 in a bundle whose plan has no embedding"
    );
    assert_eq!(encoder(|m| entries(m)[0].results.clear()), "target cpu: entry embed_64 gives no embedding");
    assert_eq!(
        encoder(|m| embedding(m, CallSizes { rows: 63, ..RAGGED })),
        "target cpu: the largest entry takes texts of 63 tokens, expected the context, 64"
    );
    // Two texts share its 64 rows.
    assert_eq!(
        encoder(|m| embedding(m, UNIFORM)),
        "target cpu: the largest entry takes texts of 32 tokens, expected the context, 64"
    );
    assert_eq!(
        encoder(|m| m.plan.as_mut().unwrap().embedding.as_mut().unwrap().width = 0),
        "plan.embedding.width is 0, expected 1 to 2147483647"
    );
}

#[test]
fn older_formats() {
    let refused = |change: fn(&mut Manifest)| {
        refused(|m| {
            old(m);
            change(m);
        })
    };
    assert_eq!(refused(|m| m.plan.as_mut().unwrap().batch = None), "format 2 has no plan.batch, expected 1");
    assert_eq!(
        refused(|m| m.plan.as_mut().unwrap().batch = Some(2)),
        "plan.batch is 2, expected 1 up to format 2 and none later"
    );
    assert_eq!(
        refused(|m| m.targets.get_mut("cpu").unwrap().serving =
            Some(Serving { page: PAGE, exact: true, pools: vec![] })),
        "target cpu: format 2 has serving, expected none before format 3"
    );
    assert_eq!(
        refused(|m| entries(m).push(sample::entry(sample::step(4, 2), 64, 100))),
        "target cpu: format 2 has the entry step_4, expected step, best and embed since format 3"
    );
    assert_eq!(
        refused(|m| entries(m).push(sample::entry(Role::Best { rows: 1 }, 64, 100))),
        "target cpu: format 2 has the entry best_1, expected step, best and embed since format 3"
    );
    assert_eq!(
        refused(|m| entries(m)[0].arguments[0].shape = vec![1, 17]),
        "target cpu: tokens of entry prefill_16 is i32[1,17], expected i32[1,16]"
    );
    assert_eq!(
        refused(|m| drop(entries(m)[1].arguments.remove(1))),
        "target cpu: entry decode_64 takes no positions"
    );
    assert_eq!(
        refused(|m| drop(entries(m)[1].results.remove(0))),
        "target cpu: entry decode_64 gives no next_token"
    );
    assert_eq!(
        refused(|m| {
            let role = Role::Prefill { tokens: 0 };
            entries(m).push(Entry::new(role, &Interface { context: 64, width: 100, pools: &[] }));
        }),
        "target cpu: entry prefill_0 is for 0 positions, expected 1 to 2147483647"
    );
    assert_eq!(
        refused(|m| {
            let kind = ArgumentKind::Cache { pool: 0, part: 0 };
            let argument = ArgumentSpec { name: None, kind, dtype: Dtype::F32, shape: vec![0, 2, 2, 64, 8] };
            entries(m)[0].arguments.push(argument);
        }),
        "target cpu: entry prefill_16 takes cache 0.0, expected none"
    );
    // In the newest format.
    let newest = |change: fn(&mut Manifest)| super::refused(change);
    assert_eq!(
        newest(|m| m.plan.as_mut().unwrap().batch = Some(1)),
        "plan.batch is 1, expected 1 up to format 2 and none later"
    );
    for role in [Role::Prefill { tokens: 16 }, Role::Decode { cache: 64 }, Role::Encode { tokens: 64 }] {
        assert_eq!(
            super::refused(|m| entries(m).push(sample::entry(role, 64, 100))),
            format!(
                "target cpu: format 7 has the entry {}, expected step, best and embed since format 3",
                role.entry_name().unwrap()
            )
        );
    }
}
