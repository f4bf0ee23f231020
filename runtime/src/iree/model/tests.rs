//! A model over a module whose answers can be computed by hand.
//!
//! After tokens t₀ … tₙ₋₁ of a sequence it answers `Σ tᵢ · (i + 1) mod VOCAB`. Its logits are `bias`, plus 1 for the answer.

use std::{fmt::Write, fs, ops::ControlFlow, path::Path};

use mlxcel_artifacts::{
    BundleWriter, Cancel, Driver, Manifest, Serving, TargetArtifact,
    entry::{CallSizes, Entry, Interface, PAGE, PagePart, Parameter, Pool, Role},
    sample,
};
use safetensors::Dtype;
use tempfile::TempDir;

use super::*;
use crate::{
    cache_size::CacheSize,
    engine::{Engine, EngineSettings, Request},
    ffi,
    ffi::tests::{compile, weights},
    model::SequenceRows,
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
    let sizes =
        CallSizes { rows: sequences * rows, sequences, selected: sequences, uniform: true, in_place: false };
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
    LoadOptions { device: device.parse().unwrap(), threads: Some(2), ..LoadOptions::default() }
}

fn engine(bundle: &Bundle, weights: Weights, options: &LoadOptions) -> Engine<IreeModel> {
    let model = IreeModel::load(bundle, Some(weights), options).unwrap();
    Engine::new(model, EngineSettings::default()).unwrap()
}

fn open(device: &str) -> Engine<IreeModel> {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 8);
    engine(&bundle(folder.path(), device, |_| ()), weights, &options(device))
}

fn generate(engine: &mut Engine<IreeModel>, prompt: &[u32], max_tokens: usize) -> Result<Vec<u32>, Error> {
    let request = Request { prompt: prompt.to_vec(), max_tokens, ..Request::default() };
    Ok(engine.generate(request, &Cancel::new(), &mut |_| ControlFlow::Continue(()))?.tokens)
}

/// Returns the answer to a prompt up to the end of the context.
fn expected(prompt: &[u32]) -> Vec<u32> {
    let mut text = prompt.to_vec();
    let mut answers = vec![];
    loop {
        answers.push(answer(&text));
        if text.len() == CONTEXT {
            return answers;
        }
        text.push(*answers.last().unwrap());
    }
}

#[test]
fn every_device_answers_across_all_sizes() {
    for device in ["local-sync", "local-task", "vulkan"] {
        let mut engine = open(device);
        let limits = engine.limits();
        let rows: Vec<_> = limits.steps.iter().map(|size| size.rows_of_a_sequence()).collect();
        assert_eq!((rows.as_slice(), limits.context, limits.vocab), (&[1, 3, 4, 8][..], CONTEXT, VOCAB));
        assert_eq!((limits.pools[0].pages, limits.pools[0].page_bytes), (TABLE, 4 * PAGE));
        let all: Vec<u32> = (0..CONTEXT as u32).map(|i| (i * 37 + 11) % VOCAB as u32).collect();
        for prompt in [1, 3, 4, 5, 8, 13, 64, 65, 127, CONTEXT] {
            let found = generate(&mut engine, &all[..prompt], usize::MAX).unwrap();
            assert_eq!(found, expected(&all[..prompt]), "{device} {prompt}");
        }
        let scored = engine.score(&all, CONTEXT - 70).unwrap();
        assert_eq!(scored.len(), 70);
        for (logits, end) in scored.iter().zip(CONTEXT - 69..) {
            let mut expected = bias();
            expected[answer(&all[..end]) as usize] += 1.0;
            assert_eq!(logits, &expected, "{device} {end}");
        }
        assert!(engine.is_idle());
    }
}

#[test]
fn the_cache_has_the_size_asked_for() {
    let folder = TempDir::new().unwrap();
    let bundle = bundle(folder.path(), "local-sync", |_| ());
    let load = |cache| {
        let (_folder, weights) = weights("bias", &bias(), 0);
        IreeModel::load(&bundle, Some(weights), &LoadOptions { cache, ..options("local-sync") })
    };
    let pages = |cache| load(cache).unwrap().limits().pools[0].pages;
    assert_eq!(pages(CacheSize::Sequences(5)), 5 * TABLE);
    assert_eq!(pages(CacheSize::Bytes(4 * 64 * 100)), 99);
    let error = load(CacheSize::Bytes(300)).err().unwrap().to_string();
    assert!(error.starts_with("a cache of 300 B, expected at least 512 B, for a page"), "{error}");
    // Where requests do not fit the cache, they are refused one by one.
    let (_folder, weights) = weights("bias", &bias(), 0);
    let cache = CacheSize::Bytes(4 * 64 * 3);
    let mut engine = engine(&bundle, weights, &LoadOptions { cache, ..options("local-sync") });
    let error = generate(&mut engine, &[1; 129], 1).unwrap_err().to_string();
    assert!(error.starts_with("the request needs 3 pages, expected at most 2\nhint: "), "{error}");
    assert_eq!(generate(&mut engine, &[1; 128], 1).unwrap(), [answer(&[1; 128])]);
}

#[test]
fn loaded_code_does_not_change_with_its_file() {
    let folder = TempDir::new().unwrap();
    let bundle = bundle(folder.path(), "local-sync", |_| ());
    let (_folder, weights) = weights("bias", &bias(), 0);
    let mut engine = engine(&bundle, weights, &options("local-sync"));
    let vmfb = bundle.manifest().targets["test"].vmfb;
    let other = vec![0; usize::try_from(vmfb.size).unwrap()];
    // Written in place: a mapping would show the new bytes.
    fs::write(bundle.blob_path(&vmfb), other).unwrap();
    assert_eq!(generate(&mut engine, &[1, 2, 3], 9).unwrap(), expected(&[1, 2, 3])[..9]);
}

#[test]
fn bad_requests_are_refused_before_they_run() {
    let mut engine = open("local-sync");
    let mut refused = |prompt: &[u32]| generate(&mut engine, prompt, 1).unwrap_err();
    assert!(matches!(refused(&[]), Error::NoTokens));
    assert!(matches!(refused(&[1; CONTEXT + 1]), Error::TooLong { tokens: 151, context: CONTEXT }));
    assert!(matches!(refused(&[1, 64]), Error::TokenOutOfRange { token: 64, index: 1, .. }));
    assert!(matches!(refused(&[u32::MAX]), Error::TokenOutOfRange { .. }));
    assert!(matches!(engine.runner().logits(0), Err(Error::NoLogits)));
    assert_eq!(generate(&mut engine, &[1; CONTEXT], 9).unwrap(), [answer(&[1; CONTEXT])]);
}

#[test]
fn a_step_has_its_turn() {
    let mut engine = open("local-task");
    let pages = [1, 2, 3];
    let batch = |token| {
        let rows = SequenceRows { tokens: vec![token], start: 0, pages: vec![&pages], selected: vec![0] };
        Batch { size: 3, sequences: vec![rows] }
    };
    let model = engine.runner();
    let report = |error| mlxcel_artifacts::report(&error);
    assert!(report(model.end().unwrap_err()).starts_with("error: cannot run a step: none was begun\n"));
    model.begin(&batch(5)).unwrap();
    assert!(!model.begin_next(&batch(0)).unwrap(), "a CPU begins none ahead");
    assert_eq!(model.end().unwrap(), [SelectedRow { token: 5 }]);
    // What was left is dropped.
    model.begin(&batch(9)).unwrap();
    model.begin(&batch(6)).unwrap();
    assert_eq!(model.end().unwrap(), [SelectedRow { token: 6 }]);
    // Dropping the model waits for the last one.
    model.begin(&batch(7)).unwrap();
}

/// Returns the report of an error.
fn refused(device: &str, options: &LoadOptions, change: impl FnOnce(&mut Manifest)) -> String {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 0);
    let result = IreeModel::load(&bundle(folder.path(), device, change), Some(weights), options);
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
    let mut engine = engine(&bundle, weights, &options("local-sync"));
    let error = mlxcel_artifacts::report(&generate(&mut engine, &[1], 1).unwrap_err());
    assert!(error.contains("expected 7 arguments but passed 8"), "{error}");
    assert!(engine.is_idle());
}

#[test]
fn a_bundle_of_an_older_format() {
    let refused = refused("local-sync", &options("local-sync"), |m| {
        m.format = 2;
        m.plan.as_mut().unwrap().batch = Some(1);
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
    let next = entry.function().take(ResultKind::NextToken, &mut results).unwrap().read::<i32>().unwrap();
    let logits = entry.function().take(ResultKind::Logits, &mut results).unwrap();
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
        let model = IreeModel::load(&bundle, Some(weights), &options(device)).unwrap();
        let IreeModel { mut entries, mut cache, .. } = model;
        let entry = entries.iter_mut().find(|entry| entry.sizes().sequences == 2).unwrap();
        let tokens =
            |step: usize| -> Vec<u32> { (0..CONTEXT).map(|i| ((i * step + 7) % VOCAB) as u32).collect() };
        let (a, b) = (tokens(37), tokens(11));
        // The second page of `a` comes before its first, and that of `b` lies between them.
        let (pages_a, pages_b) = ([3, 1], [2]);
        let (mut at_a, mut at_b) = (0, 0);
        for call in 0..50 {
            // Some sequences fill their rows, others do not.
            let (rows_a, rows_b) = (1 + call % 3, 1 + (call / 20) % 2);
            let (end_a, end_b) = ((at_a + rows_a).min(128), (at_b + rows_b).min(64));
            if (end_a, end_b) == (at_a, at_b) || end_a == at_a || end_b == at_b {
                break;
            }
            let rows = |tokens: &[u32], start, pages, selected| SequenceRows {
                tokens: tokens.to_vec(),
                start,
                pages,
                selected,
            };
            let (count_a, count_b) = (end_a - at_a, end_b - at_b);
            let of_a = |selected| rows(&a[at_a..end_a], at_a, vec![&pages_a], selected);
            let of_b = |selected| rows(&b[at_b..end_b], at_b, vec![&pages_b], selected);
            let (last_a, last_b) = (vec![count_a - 1], vec![count_b - 1]);
            let (answer_a, answer_b) = (answer(&a[..end_a]), answer(&b[..end_b]));
            // The same rows again write the same.
            let mut found = |rows: &[SequenceRows<'_>]| answers(entry, &mut cache, rows);
            assert_eq!(found(&[of_a(last_a.clone()), of_b(last_b.clone())]), [answer_a, answer_b], "{call}");
            assert_eq!(found(&[of_b(last_b.clone()), of_a(last_a.clone())]), [answer_b, answer_a], "{call}");
            assert_eq!(found(&[of_a(vec![]), of_b(last_b)]), [answer_b], "{call}");
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
    assert_eq!(open("local-sync").device().name, "local-sync");
    assert_eq!(open("local-task").device().name, "local-task, 2 threads");
    assert!(open("vulkan").device().name.starts_with("vulkan"));
}

#[test]
fn auto_takes_vulkan_if_the_bundle_has_no_other_target() {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 0);
    let mut engine = engine(&bundle(folder.path(), "vulkan", |_| ()), weights, &options("auto"));
    assert!(engine.device().name.starts_with("vulkan"), "{}", engine.device().name);
    assert_eq!(generate(&mut engine, &[1, 2], 1).unwrap(), [answer(&[1, 2])]);
}

#[test]
fn a_smaller_context_is_enforced() {
    let folder = TempDir::new().unwrap();
    let (_folder, weights) = weights("bias", &bias(), 0);
    let options = LoadOptions { context: Some(6), ..options("auto") };
    let mut engine = engine(&bundle(folder.path(), "local-task", |_| ()), weights, &options);
    assert_eq!(engine.limits().context, 6);
    assert_eq!(generate(&mut engine, &[1; 4], 99).unwrap(), expected(&[1; 4])[..3]);
    assert!(matches!(generate(&mut engine, &[1; 7], 1), Err(Error::TooLong { context: 6, .. })));
}

#[test]
fn an_id_past_the_vocabulary_is_an_answer_of_one_row() {
    let rows = |ids: &[i32], selected| {
        let rows = selected_rows(ids, selected, VOCAB)?;
        Some(rows.iter().map(|row| row.token).collect::<Vec<_>>())
    };
    // The second row has a logit that is NaN.
    assert_eq!(rows(&[3, 64, 0], 3), Some(vec![3, 64, 0]));
    assert_eq!(rows(&[3, 65, 0], 3), None);
    assert_eq!(rows(&[3, -1, 0], 3), None);
    assert_eq!(rows(&[3, -1, 0], 1), Some(vec![3]));
    assert_eq!(rows(&[3], 2), None);
}
