//! A session over a module whose answers can be computed by hand.
//!
//! After tokens t₀ … tₙ₋₁ of a sequence it answers `Σ tᵢ · (i + 1) mod VOCAB`. Its logits are `bias`, plus 1 for the answer.

use std::{fmt::Write, fs, path::Path};

use mlxcel_artifacts::{
    BundleWriter, Driver, Manifest, Serving, TargetArtifact,
    entry::{Entry, Interface, PagePart, Parameter, Pool, Role},
    sample,
};
use safetensors::Dtype;
use tempfile::TempDir;

use super::*;
use crate::{
    ffi,
    ffi::tests::{compile, weights},
};

const CONTEXT: usize = 150;
const VOCAB: usize = 64;
/// Pages of the context.
const TABLE: usize = CONTEXT.div_ceil(PAGE);
/// Sequences of a call, and the rows that each can have. Neither they nor all rows together are ascending.
const STEPS: [(usize, usize); 4] = [(1, 8), (1, 4), (2, 3), (1, 1)];

fn module() -> String {
    let functions: String = STEPS.map(|(sequences, rows)| function(sequences, rows)).concat();
    format!(
        "module @model {{
  util.global private @bias = #flow.parameter.named<\"model\"::\"bias\"> : tensor<{VOCAB}xf32>
{functions}}}
"
    )
}

/// Returns a function that writes `tokens` to the slots of the cache, and reads the pages of each sequence.
fn function(sequences: usize, rows: usize) -> String {
    let all = sequences * rows;
    let (s, width) = (sequences, TABLE * PAGE);
    let (row_type, cache_type) = (format!("tensor<{all}xi32>"), format!("tensor<?x1x{PAGE}xi32>"));
    let (each, seen) = (format!("tensor<{s}xi32>"), format!("tensor<{s}x{width}xi32>"));
    let mut text = String::new();
    write!(
        text,
        "
  func.func @step_{all}(%tokens: {row_type}, %positions: {row_type}, %end: i32, %pages: tensor<{s}x{TABLE}xi32>, %slots: {row_type}, %selected: {each}, %old: {cache_type} {{iree.abi.consume}}) -> ({each}, tensor<{s}x{VOCAB}xf32>, {cache_type}) {{
    %first = arith.constant 0 : index
    %count = tensor.dim %old, %first : {cache_type}
    %flat = tensor.collapse_shape %old [[0, 1, 2]] : {cache_type} into tensor<?xi32>
    %at = stablehlo.reshape %slots : ({row_type}) -> tensor<{all}x1xi32>
    %written = \"stablehlo.scatter\"(%flat, %at, %tokens) ({{
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      stablehlo.return %b : tensor<i32>
    }}) {{indices_are_sorted = false, unique_indices = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}} : (tensor<?xi32>, tensor<{all}x1xi32>, {row_type}) -> tensor<?xi32>
    %cache = tensor.expand_shape %written [[0, 1, 2]] output_shape [%count, 1, {PAGE}] : tensor<?xi32> into {cache_type}
    %paged = \"stablehlo.gather\"(%cache, %pages) {{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, {PAGE}>, indices_are_sorted = false}} : ({cache_type}, tensor<{s}x{TABLE}xi32>) -> tensor<{s}x{TABLE}x1x{PAGE}xi32>
    %sequences = stablehlo.reshape %paged : (tensor<{s}x{TABLE}x1x{PAGE}xi32>) -> {seen}
    %rows = stablehlo.constant dense<{rows}> : {each}
    %sequence = stablehlo.divide %selected, %rows : {each}
    %own = \"stablehlo.gather\"(%sequences, %sequence) {{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, {width}>, indices_are_sorted = false}} : ({seen}, {each}) -> {seen}
    %position = \"stablehlo.gather\"(%positions, %selected) {{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}} : ({row_type}, {each}) -> {each}
    %index = stablehlo.iota dim = 1 : {seen}
    %lasts = stablehlo.broadcast_in_dim %position, dims = [0] : ({each}) -> {seen}
    %causal = stablehlo.compare LE, %index, %lasts : ({seen}, {seen}) -> tensor<{s}x{width}xi1>
    %limit = tensor.from_elements %end : tensor<i32>
    %limits = stablehlo.broadcast_in_dim %limit, dims = [] : (tensor<i32>) -> {seen}
    %before = stablehlo.compare LT, %index, %limits : ({seen}, {seen}) -> tensor<{s}x{width}xi1>
    %inside = stablehlo.and %causal, %before : tensor<{s}x{width}xi1>
    %ones = stablehlo.constant dense<1> : {seen}
    %weight = stablehlo.add %index, %ones : {seen}
    %product = stablehlo.multiply %own, %weight : {seen}
    %nothing = stablehlo.constant dense<0> : {seen}
    %terms = stablehlo.select %inside, %product, %nothing : tensor<{s}x{width}xi1>, {seen}
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %sum = stablehlo.reduce(%terms init: %zero) applies stablehlo.add across dimensions = [1] : ({seen}, tensor<i32>) -> {each}
    %vocab = stablehlo.constant dense<{VOCAB}> : {each}
    %next = stablehlo.remainder %sum, %vocab : {each}
    %ids = stablehlo.iota dim = 1 : tensor<{s}x{VOCAB}xi32>
    %nexts = stablehlo.broadcast_in_dim %next, dims = [0] : ({each}) -> tensor<{s}x{VOCAB}xi32>
    %hit = stablehlo.compare EQ, %ids, %nexts : (tensor<{s}x{VOCAB}xi32>, tensor<{s}x{VOCAB}xi32>) -> tensor<{s}x{VOCAB}xi1>
    %hits = stablehlo.convert %hit : (tensor<{s}x{VOCAB}xi1>) -> tensor<{s}x{VOCAB}xf32>
    %bias = util.global.load @bias : tensor<{VOCAB}xf32>
    %biases = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<{VOCAB}xf32>) -> tensor<{s}x{VOCAB}xf32>
    %logits = stablehlo.add %hits, %biases : tensor<{s}x{VOCAB}xf32>
    return %next, %logits, %cache : {each}, tensor<{s}x{VOCAB}xf32>, {cache_type}
  }}\n"
    )
    .unwrap();
    text
}

fn bias() -> Vec<f32> {
    (0..VOCAB).map(|id| id as f32 / 256.0).collect()
}

fn answer(tokens: &[u32]) -> u32 {
    tokens.iter().zip(1..).map(|(token, weight)| token * weight).sum::<u32>() % VOCAB as u32
}

/// Returns a cache of one token for each position.
fn pools() -> Vec<Pool> {
    vec![Pool { window: None, parts: vec![PagePart { dtype: Dtype::I32, shape: vec![1, PAGE] }] }]
}

fn step(sequences: usize, rows: usize) -> Entry {
    let sizes = CallSizes { rows: sequences * rows, sequences, selected: sequences, uniform: true };
    Entry::new(Role::Step(sizes), &Interface { context: CONTEXT, width: VOCAB, pools: &pools() })
}

fn bundle(folder: &Path, device: &str, change: impl FnOnce(&mut Manifest)) -> Bundle {
    let mut writer = BundleWriter::create(&folder.join("bundle")).unwrap();
    let vmfb = writer.add_bytes(&fs::read(compile(&module(), device)).unwrap()).unwrap();
    let driver: Driver = if device == "vulkan" { Driver::Vulkan } else { Driver::Local };
    let arch = if driver == Driver::Local { std::env::consts::ARCH } else { "" };
    let target = TargetArtifact {
        entries: STEPS.map(|(sequences, rows)| step(sequences, rows)).to_vec(),
        serving: Some(Serving { page: PAGE, exact: true, pools: pools() }),
        ..sample::target(driver, arch, vmfb, CONTEXT, VOCAB)
    };
    let mut manifest = Manifest {
        targets: [("test".to_string(), target)].into(),
        parameters: vec![Parameter::new("bias", Dtype::F32, &[VOCAB])],
        ..sample::manifest(CONTEXT, VOCAB)
    };
    change(&mut manifest);
    writer.finish(&manifest).unwrap()
}

fn entries(manifest: &mut Manifest) -> &mut Vec<Entry> {
    &mut manifest.targets.get_mut("test").unwrap().entries
}

fn options(device: &str) -> LoadOptions {
    LoadOptions { device: device.parse().unwrap(), threads: Some(2), context: None }
}

fn open(device: &str) -> IreeSession {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 8);
    IreeSession::load(&bundle(folder.path(), device, |_| ()), Some(weights), &options(device)).unwrap()
}

#[test]
fn every_device_answers_across_all_sizes() {
    for device in ["local-sync", "local-task", "vulkan"] {
        let mut session = open(device);
        assert_eq!(session.capabilities().prefill, [3, 4, 8]);
        assert_eq!(session.capabilities().decode, [CONTEXT]);
        let all: Vec<u32> = (0..CONTEXT as u32).map(|i| (i * 37 + 11) % VOCAB as u32).collect();
        for prompt in [1, 3, 4, 5, 8, 13, 64, 65, 127, CONTEXT] {
            session.rewind(0).unwrap();
            assert_eq!(session.prefill(&all[..prompt]).unwrap(), answer(&all[..prompt]), "{device} {prompt}");
            for end in prompt + 1..=CONTEXT {
                assert_eq!(session.decode_step(all[end - 1]).unwrap(), answer(&all[..end]), "{device} {end}");
            }
            assert_eq!(session.position(), CONTEXT);
        }
        let mut logits = bias();
        logits[answer(&all) as usize] += 1.0;
        assert_eq!(session.logits().unwrap(), logits);
        assert_eq!(session.logits().unwrap(), logits, "they can be read again");
    }
}

#[test]
fn a_prompt_continues_at_the_position() {
    let mut session = open("local-sync");
    assert_eq!(session.prefill(&[1, 2, 3, 4, 5]).unwrap(), answer(&[1, 2, 3, 4, 5]));
    assert_eq!(session.decode_step(6).unwrap(), answer(&[1, 2, 3, 4, 5, 6]));
    assert_eq!(session.prefill(&[7, 8]).unwrap(), answer(&[1, 2, 3, 4, 5, 6, 7, 8]));
    session.rewind(2).unwrap();
    assert!(matches!(session.logits(), Err(Error::NoLogits)));
    assert_eq!(session.decode_step(9).unwrap(), answer(&[1, 2, 9]), "later tokens are gone");
    assert_eq!(session.position(), 3);
}

#[test]
fn loaded_code_does_not_change_with_its_file() {
    let folder = TempDir::new().unwrap();
    let bundle = bundle(folder.path(), "local-sync", |_| ());
    let (_folder, weights) = weights("bias", &bias(), 0);
    let mut session = IreeSession::load(&bundle, Some(weights), &options("local-sync")).unwrap();
    let vmfb = bundle.manifest().targets["test"].vmfb;
    let other = vec![0; usize::try_from(vmfb.size).unwrap()];
    // Written in place: a mapping would show the new bytes.
    fs::write(bundle.blob_path(&vmfb), other).unwrap();
    assert_eq!(session.prefill(&[1, 2, 3]).unwrap(), answer(&[1, 2, 3]));
    assert_eq!(session.decode_step(4).unwrap(), answer(&[1, 2, 3, 4]));
}

#[test]
fn bad_calls_are_refused_before_they_run() {
    let mut session = open("local-sync");
    assert!(matches!(session.logits(), Err(Error::NoLogits)));
    assert!(matches!(session.prefill(&[]), Err(Error::NoTokens)));
    assert!(matches!(session.prefill(&[1; CONTEXT + 1]), Err(Error::TooLong { .. })));
    assert!(matches!(session.prefill(&[1, 64]), Err(Error::TokenOutOfRange { token: 64, index: 1, .. })));
    assert!(matches!(session.decode_step(u32::MAX), Err(Error::TokenOutOfRange { .. })));
    assert!(matches!(session.rewind(1), Err(Error::Rewind { .. })));
    assert_eq!(session.position(), 0);
    session.prefill(&[1; CONTEXT]).unwrap();
    assert!(matches!(session.decode_step(1), Err(Error::TooLong { .. })));
}

/// Returns the report of an error.
fn refused(device: &str, options: &LoadOptions, change: impl FnOnce(&mut Manifest)) -> String {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 0);
    let result = IreeSession::load(&bundle(folder.path(), device, change), Some(weights), options);
    mlxcel_artifacts::report(&result.err().expect("it should be refused"))
}

#[test]
fn a_bundle_that_cannot_run_here() {
    let sync = options("local-sync");
    let other_context = LoadOptions { context: Some(CONTEXT + 1), ..sync.clone() };
    assert!(
        refused("local-sync", &other_context, |_| ())
            .starts_with("error: context of 151 tokens, expected 1 to 150")
    );
    let no_context = LoadOptions { context: Some(0), ..sync.clone() };
    assert!(refused("local-sync", &no_context, |_| ()).starts_with("error: context of 0 tokens"));

    let other = refused("local-sync", &options("vulkan"), |_| ());
    assert!(other.contains("found test (local), expected one of the driver vulkan"), "{other}");
    let other = refused("local-sync", &sync, |m| m.compiler.version = "3.12.0".into());
    assert!(other.contains("compiled by iree 3.12.0"), "{other}");
    let parameter = refused("local-sync", &sync, |m| m.parameters[0].shape = vec![65]);
    assert!(parameter.contains("bias: f32[64], expected f32[65]"), "{parameter}");
    let name = refused("local-sync", &sync, |m| m.parameters[0].name = "other".into());
    assert!(name.contains("other: missing"), "{name}");
    // A manifest with an entry point that the module lacks.
    let entry = refused("local-sync", &sync, |m| entries(m).push(step(1, 5)));
    assert_eq!(
        entry,
        "error: cannot prepare step_5: not found: no function `step_5` exported by module\n\
         hint: try --device local-sync; if that fails too, compile the bundle again with this version"
    );
}

#[test]
fn a_manifest_with_other_arguments_than_the_module() {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 0);
    let bundle = bundle(folder.path(), "local-sync", |m| {
        let pools = vec![Pool { window: Some(9), ..pools()[0].clone() }];
        let interface = Interface { context: CONTEXT, width: VOCAB, pools: &pools };
        entries(m).iter_mut().for_each(|entry| *entry = Entry::new(entry.role, &interface));
        m.targets.get_mut("test").unwrap().serving.as_mut().unwrap().pools = pools;
    });
    let mut session = IreeSession::load(&bundle, Some(weights), &options("local-sync")).unwrap();
    let error = mlxcel_artifacts::report(&session.prefill(&[1]).unwrap_err());
    assert!(error.contains("expected 7 arguments but passed 8"), "{error}");
    assert_eq!(session.position(), 0);
}

#[test]
fn a_bundle_of_an_older_format() {
    let refused = refused("local-sync", &options("local-sync"), |m| {
        (m.format, m.plan.batch) = (2, Some(1));
        let target = m.targets.get_mut("test").unwrap();
        let interface = Interface { context: CONTEXT, width: VOCAB, pools: &[] };
        target.serving = None;
        target.entries = vec![Entry::new(Role::Decode { cache: CONTEXT }, &interface)];
    });
    assert_eq!(
        refused,
        "error: the bundle has format 2, which no longer runs, expected at least 3\n\
         hint: compile it again with `mlxcel-compile`"
    );
}

/// Returns the answers of the sequences whose last row is selected.
fn answers(entry: &mut EntryPoint, cache: &mut Cache, rows: &[SequenceRows<'_>]) -> Vec<u32> {
    let mut results = entry.run(rows, cache).unwrap();
    let next = entry.take(ResultKind::NextToken, &mut results).unwrap().read::<i32>().unwrap();
    let logits = entry.take(ResultKind::Logits, &mut results).unwrap();
    let count: usize = rows.iter().map(|rows| rows.selected.len()).sum();
    for (row, &id) in next.iter().enumerate() {
        let mut expected = bias();
        expected[id as usize] += 1.0;
        assert_eq!(logits.read_row::<f32>(row).unwrap(), expected);
    }
    next[..count].iter().map(|&id| id as u32).collect()
}

#[test]
fn sequences_share_calls_and_have_pages_in_any_order() {
    for device in ["local-sync", "vulkan"] {
        let folder = TempDir::new().unwrap();
        let (_folder, weights) = weights("bias", &bias(), 0);
        let bundle = bundle(folder.path(), device, |_| ());
        let LoadedModule { mut entries, mut cache, .. } =
            LoadedModule::new(&bundle, Some(weights), &options(device)).unwrap();
        let entry = entries.iter_mut().find(|entry| entry.sizes().sequences == 2).unwrap();
        let tokens =
            |step: usize| -> Vec<u32> { (0..CONTEXT).map(|i| ((i * step + 7) % VOCAB) as u32).collect() };
        let (a, b) = (tokens(37), tokens(11));
        // The second page of `a` comes before its first, and that of `b` lies between them.
        let (pages_a, pages_b) = ([vec![3, 1]], [vec![2]]);
        let (mut at_a, mut at_b) = (0, 0);
        for call in 0..50 {
            // Some sequences fill their rows, others do not.
            let (rows_a, rows_b) = (1 + call % 3, 1 + (call / 20) % 2);
            let (end_a, end_b) = ((at_a + rows_a).min(128), (at_b + rows_b).min(64));
            if (end_a, end_b) == (at_a, at_b) || end_a == at_a || end_b == at_b {
                break;
            }
            let rows = |tokens, position, pages, selected| SequenceRows { tokens, position, pages, selected };
            let (count_a, count_b) = (end_a - at_a, end_b - at_b);
            let of_a = |selected| rows(&a[at_a..end_a], at_a, &pages_a, selected);
            let of_b = |selected| rows(&b[at_b..end_b], at_b, &pages_b, selected);
            let (last_a, last_b) = (count_a - 1..count_a, count_b - 1..count_b);
            let (answer_a, answer_b) = (answer(&a[..end_a]), answer(&b[..end_b]));
            // The same rows again write the same.
            let mut found = |rows: &[SequenceRows<'_>]| answers(entry, &mut cache, rows);
            assert_eq!(found(&[of_a(last_a.clone()), of_b(last_b.clone())]), [answer_a, answer_b], "{call}");
            assert_eq!(found(&[of_b(last_b.clone()), of_a(last_a.clone())]), [answer_b, answer_a], "{call}");
            assert_eq!(found(&[of_a(0..0), of_b(last_b)]), [answer_b], "{call}");
            assert_eq!(found(&[of_a(last_a)]), [answer_a], "{call}");
            (at_a, at_b) = (end_a, end_b);
        }
        assert!(at_a > PAGE + 20 && at_b == PAGE, "{at_a} {at_b}");
    }
}

#[test]
fn a_device_that_is_not_there() {
    let index = refused("vulkan", &options("vulkan:99"), |_| ());
    assert!(
        index.starts_with("error: cannot use the device vulkan:99: out of range: device ordinal 99"),
        "{index}"
    );
    assert!(index.contains("\nhint: there is vulkan:0 ("), "{index}");
    if ffi::devices("cuda").is_err() {
        let cuda = refused("local-sync", &options("cuda"), |m| {
            let target = m.targets.get_mut("test").unwrap();
            (target.driver, target.arch) = (Driver::Cuda, String::new());
        });
        assert!(
            cuda.starts_with("error: cannot use the device cuda: unavailable: CUDA driver library"),
            "{cuda}"
        );
        assert!(cuda.contains("\nhint: install NVIDIA's driver, or compile the bundle again"), "{cuda}");
    }
}

#[test]
fn the_device_is_named() {
    assert_eq!(open("local-sync").capabilities().device, "local-sync");
    assert_eq!(open("local-task").capabilities().device, "local-task, 2 threads");
    assert!(open("vulkan").capabilities().device.starts_with("vulkan"));
}

#[test]
fn auto_takes_vulkan_if_the_bundle_has_no_other_target() {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 0);
    let mut session =
        IreeSession::load(&bundle(folder.path(), "vulkan", |_| ()), Some(weights), &options("auto")).unwrap();
    assert!(session.capabilities().device.starts_with("vulkan"), "{}", session.capabilities().device);
    assert_eq!(session.prefill(&[1, 2]).unwrap(), answer(&[1, 2]));
}

#[test]
fn a_smaller_context_is_enforced() {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 0);
    let options = LoadOptions { context: Some(6), ..options("auto") };
    let mut session =
        IreeSession::load(&bundle(folder.path(), "local-task", |_| ()), Some(weights), &options).unwrap();
    assert_eq!(session.capabilities().context, 6);
    session.prefill(&[1; 6]).unwrap();
    assert!(matches!(session.decode_step(1), Err(Error::TooLong { context: 6, .. })));
}

/// Returns the sizes of the calls for a prompt.
fn cut(sizes: &[CallSizes], mut tokens: usize) -> Vec<usize> {
    let mut calls = vec![];
    while tokens > 0 {
        let rows = sizes[entry_for(sizes, tokens)].rows_of_a_sequence();
        calls.push(rows);
        tokens -= rows.min(tokens);
    }
    calls
}

#[test]
fn a_prompt_is_cut_into_calls() {
    let sizes = |uniform| {
        [(16, 1), (128, 1), (512, 1)].map(|(rows, sequences)| CallSizes {
            rows,
            sequences,
            selected: 1,
            uniform,
        })
    };
    // Padding is computed, so that at least half of a call is used.
    let uniform = |tokens| cut(&sizes(true), tokens);
    assert_eq!(uniform(1), [16], "the smallest");
    assert_eq!(uniform(16), [16]);
    assert_eq!(uniform(17), [16, 16]);
    assert_eq!(uniform(64), [16; 4]);
    assert_eq!(uniform(65), [128]);
    assert_eq!(uniform(128), [128]);
    assert_eq!(uniform(257), [512]);
    assert_eq!(uniform(700), [512, 128, 16, 16, 16, 16]);
    // Padding is skipped.
    let ragged = |tokens| cut(&sizes(false), tokens);
    assert_eq!(ragged(1), [16]);
    assert_eq!(ragged(17), [128]);
    assert_eq!(ragged(129), [512]);
    assert_eq!(ragged(700), [512, 512]);
    assert_eq!(ragged(1030), [512, 512, 16]);
    // A prompt has only the rows of one sequence.
    let two = [CallSizes { rows: 4, sequences: 4, selected: 4, uniform: true }, sizes(true)[0]];
    assert_eq!(cut(&two, 3), [1, 1, 1]);
    assert_eq!(cut(&two, 9), [16]);
}
