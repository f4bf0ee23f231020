//! Entries for the best tokens, as bundles have them: tokens, logits and the logarithm of the sum of exponentials equal those
//! computed from the logits on the host.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod real;

use std::{
    cmp::Ordering,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use mlxcel_artifacts::{
    BundleWriter, Digest, Driver, Manifest, Packing,
    entry::{Entry, PackStep, Parameter, Role, best_count},
    sample,
};
use mlxcel_compiler_driver::{CompilerLocation, ModelSource, Request, WeightSource};
use mlxcel_runtime::{Cancel, Weights, pack};
use real::{Built, built, fixtures, models, on, request};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use tempfile::TempDir;

/// A bundle, and what iree-compile made it from.
struct Dumped {
    built: Built,
    folder: TempDir,
}

/// The targets of these tests: with kernels, if the machine has some, and without.
fn targets() -> Vec<&'static str> {
    if cfg!(target_arch = "x86_64") { vec!["cpu", "cpu-x86-64-v2"] } else { vec!["cpu"] }
}

impl Dumped {
    fn new(model: &Path, weights: WeightSource) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dump_dir = Some(folder.path().to_path_buf());
        let model = ModelSource::Folder(model.into());
        let request = Request { model, weights, dump_dir, ..request(Path::new("."), &targets()) };
        Self { built: built(&request), folder }
    }

    fn entries(&self, target: &str) -> Vec<Entry> {
        let entries = &self.built.bundle.manifest().targets[target].entries;
        entries.iter().filter(|entry| matches!(entry.role, Role::Best { .. })).cloned().collect()
    }

    /// Returns the logits after each of some prompts.
    fn logits(&self) -> Vec<Vec<f32>> {
        let mut session = self.built.session("local-task").unwrap();
        let vocab = u32::try_from(session.capabilities().vocab).unwrap();
        let mut after = |first: u32| {
            session.rewind(0).unwrap();
            session.prefill(&[first % vocab, 7, first * 31 % vocab]).unwrap();
            session.logits().unwrap()
        };
        (1..14).map(&mut after).collect()
    }

    /// Compiles the target's functions for the best tokens, as a module of their own, and returns its path.
    fn compile(&self, target: &str) -> PathBuf {
        let path = |ending: &str| self.folder.path().join(format!("{target}{ending}"));
        let mlir = fs::read_to_string(path(".mlir")).unwrap();
        let (before, functions) = mlir.split_once("\n  func.func @best_").unwrap();
        let (executables, _) = before.split_once("\n  func.func @step_").unwrap();
        let is_kept = |line: &&str| !line.contains("\"util.global\"");
        let executables: String = executables.split_inclusive('\n').filter(is_kept).collect();
        let module =
            format!("{executables}\n  func.func @best_{functions}").replacen("@model", "@packing", 1);
        fs::write(path("-best.mlir"), module).unwrap();
        let flags = fs::read_to_string(path(".flags")).unwrap();
        let compiler = match CompilerLocation::from_env() {
            CompilerLocation::Executable(path) => path,
            CompilerLocation::Search { toolchain, .. } => {
                toolchain.join("iree/iree/compiler/_mlir_libs/iree-compile")
            }
        };
        let mut command = Command::new(std::path::absolute(compiler).unwrap());
        command.current_dir(self.folder.path()).args(flags.lines());
        let output = command.arg(path("-best.mlir")).arg("-o").arg(path("-best.vmfb")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        path("-best.vmfb")
    }

    /// Runs an entry on rows of logits, of which the first `count` are wanted.
    ///
    /// The functions run as those of a packing module, which computes tensors from others.
    fn run(&self, target: &str, vmfb: &Path, entry: &Entry, (rows, count): (&[Vec<f32>], i32)) -> Found {
        let folder = tempfile::tempdir().unwrap();
        let logits: Vec<u8> = rows.iter().flatten().flat_map(|logit| logit.to_le_bytes()).collect();
        let inputs = [logits, count.to_le_bytes().to_vec()];
        let views = entry.arguments.iter().zip(&inputs).map(|(argument, bytes)| {
            let view = TensorView::new(argument.dtype, argument.shape.clone(), bytes).unwrap();
            (argument.kind.to_string(), view)
        });
        let file = folder.path().join("logits.safetensors");
        safetensors::serialize_to_file(views.collect::<Vec<_>>(), None, &file).unwrap();

        let parameter = |name: String, dtype: Dtype, shape: &[usize]| Parameter::new(name, dtype, shape);
        let parameters: Vec<_> =
            entry.arguments.iter().map(|a| parameter(a.kind.to_string(), a.dtype, &a.shape)).collect();
        let results = entry.results.iter().map(|r| parameter(r.kind.to_string(), r.dtype, &r.shape));
        let step = PackStep {
            entry: Some(entry.name.clone()),
            sources: parameters.iter().map(|parameter| parameter.name.clone()).collect(),
            results: results.collect(),
        };
        let mut writer = BundleWriter::create(&folder.path().join("bundle")).unwrap();
        let vmfb = writer.add_bytes(&fs::read(vmfb).unwrap()).unwrap();
        let packing = Packing {
            build_key: Digest::of(b"key"),
            vmfb,
            weights: None,
            made_from: [].into(),
            steps: vec![step],
        };
        let real = &self.built.bundle.manifest().targets[target];
        let mut artifact = sample::target(Driver::Local, &real.arch, vmfb, 64, 100);
        artifact.cpu_features.clone_from(&real.cpu_features);
        artifact.packing = Some(packing);
        let manifest = Manifest {
            targets: [("cpu".to_owned(), artifact)].into(),
            parameters,
            ..sample::manifest(64, 100)
        };
        let bundle = writer.finish(&manifest).unwrap();
        let weights = Weights::open(&file).unwrap();
        let packed = pack(bundle, Some(weights), &on("local-task"), &Cancel::new(), &mut |_, _| {});
        let (_, bundle) = packed.unwrap();
        Found::read(&fs::read(bundle.packed_weights("cpu").unwrap().unwrap()).unwrap())
    }
}

/// The results of an entry.
struct Found {
    tokens: Vec<i32>,
    logits: Vec<f32>,
    log_sums: Vec<f32>,
}

impl Found {
    fn read(file: &[u8]) -> Self {
        let tensors = SafeTensors::deserialize(file).unwrap();
        let words = |name: &str| -> Vec<[u8; 4]> {
            tensors.tensor(name).unwrap().data().chunks(4).map(|word| word.try_into().unwrap()).collect()
        };
        Self {
            tokens: words("best_tokens").into_iter().map(i32::from_le_bytes).collect(),
            logits: words("best_logits").into_iter().map(f32::from_le_bytes).collect(),
            log_sums: words("log_sum_exp").into_iter().map(f32::from_le_bytes).collect(),
        }
    }
}

/// Returns the best ids, and the logarithm of the sum of exponentials.
fn expected(logits: &[f32]) -> (Vec<usize>, f64) {
    let value = |id: usize| if logits[id].is_nan() { f32::NEG_INFINITY } else { logits[id] };
    let mut ids: Vec<usize> = (0..logits.len()).collect();
    // Stable, so that of equal logits the lower id comes first.
    ids.sort_by(|&a, &b| value(b).partial_cmp(&value(a)).unwrap_or(Ordering::Equal));
    ids.truncate(64);
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    (ids, sum.ln())
}

/// Compares the results of all entries with those of the host.
fn check(name: &str, model: &Dumped, logits: &[Vec<f32>]) {
    let vocab = logits[0].len();
    // Ties of all logits, of some, and a NaN.
    let mut rows = vec![vec![1.5; vocab], (0..vocab).map(|id| (id * 7 % 5) as f32).collect()];
    rows.push(rows[1].iter().enumerate().map(|(id, &x)| if id == 3 { f32::NAN } else { x }).collect());
    rows.extend_from_slice(logits);
    for target in targets() {
        let vmfb = model.compile(target);
        let entries = model.entries(target);
        assert!(entries.len() > 1, "{name} for {target}");
        for entry in entries {
            let Role::Best { rows: size } = entry.role else { continue };
            // A call with padding, if there is room for it.
            let count = rows.len().min(size.saturating_sub(2)).max(1);
            let mut given: Vec<_> = rows.iter().cycle().take(size).cloned().collect();
            given[count..].fill(vec![f32::NAN; vocab]);
            let found = model.run(target, &vmfb, &entry, (&given, i32::try_from(count).unwrap()));
            let best = best_count(vocab);
            for (index, row) in given[..count].iter().enumerate() {
                let what = format!("{name} for {target}, {} row {index}", entry.name);
                let (ids, log_sum) = expected(row);
                let places = index * best..(index + 1) * best;
                for ((&id, place), &logit) in ids.iter().zip(places.clone()).zip(&found.logits[places]) {
                    assert_eq!(usize::try_from(found.tokens[place]), Ok(id), "{what}");
                    let expected = if row[id].is_nan() { f32::NEG_INFINITY } else { row[id] };
                    assert_eq!(logit.to_bits(), expected.to_bits(), "{what}");
                }
                let found = f64::from(found.log_sums[index]);
                let near = (found - log_sum).abs() < 1e-6 + log_sum.abs() * 1e-6;
                assert!(near || found.is_nan() && log_sum.is_nan(), "{what}: {found}, expected {log_sum}");
            }
        }
    }
}

#[test]
fn of_the_demo() {
    let model = Dumped::new(&models().join("demo"), WeightSource::Model);
    check("demo", &model, &model.logits());
}

/// Logits with a cap.
#[test]
fn of_a_fixture() {
    let model = Dumped::new(&fixtures().join("gemma2-hub"), WeightSource::Model);
    check("gemma2-hub", &model, &model.logits());
}

#[test]
fn of_a_vocabulary_below_64() {
    let folder = tempfile::tempdir().unwrap();
    let config = fs::read_to_string(models().join("demo/config.json")).unwrap();
    let config = config.replace("\"vocab_size\": 1536", "\"vocab_size\": 40");
    fs::write(folder.path().join("config.json"), config).unwrap();
    let model = Dumped::new(folder.path(), WeightSource::None);
    let row = |step: usize| (0..40).map(|id| (id * step % 41) as f32 * 0.3 - 5.0).collect();
    check("40 tokens", &model, &[row(1), row(7), row(40)]);
}
