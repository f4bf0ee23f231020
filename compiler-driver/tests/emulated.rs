//! Bundles for NVIDIA GPUs on a driver without one (`runtime/emulator`): IREE's runtime, its CUDA driver and the compiled code are the
//! real ones, and what they compute is compared with JAX and Hugging Face.

use std::{
    collections::BTreeSet,
    env,
    path::PathBuf,
    process::{Command, Output},
    sync::Mutex,
    time::Instant,
};

use mlxcel_artifacts::CacheType;
use mlxcel_compiler_driver::{Float, Precision, Quant, Request};
use mlxcel_emitter::Isa;

use crate::{
    answers::{Loaded, greedy, side_by_side},
    checkpoints::difference,
    graphs::logistic_regression,
    linked_kernels::compiled,
    oracle::say,
    programs_run::{Built, built, exported},
    real::{self, Fixture, each, fixtures, is_full, program, request, try_built},
};

/// The variables with the fixture of a child process, and its target.
pub(crate) const FIXTURE: &str = "MLXCEL_FIXTURE_ON_EMULATOR";
const TARGET: &str = "MLXCEL_TARGET_ON_EMULATOR";
/// Targets whose kernels differ.
const TARGETS: [&str; 2] = ["cuda", "cuda-sm_90"];
/// The fixtures that run by default, each for a target: one of each family, whose sizes have kernels where the family has such a
/// fixture, and Llama for both targets.
const BY_DEFAULT: [(&str, &str); 29] = [
    ("cohere-bare", TARGETS[1]),
    ("cohere2-layer-types", TARGETS[0]),
    ("ernie4_5-hub", TARGETS[1]),
    ("exaone4-small", TARGETS[0]),
    ("gemma-tied", TARGETS[1]),
    ("gemma2-hub", TARGETS[0]),
    ("gemma3-layer-types", TARGETS[1]),
    ("glm4-hub", TARGETS[0]),
    ("gpt-neox-parallel", TARGETS[1]),
    ("gpt-oss-q4", TARGETS[1]),
    ("gpt2-unscaled", TARGETS[0]),
    ("gqa", TARGETS[0]),
    ("gqa", TARGETS[1]),
    ("granite-tied", TARGETS[1]),
    ("granitemoe-hub", TARGETS[0]),
    ("mistral-window", TARGETS[1]),
    ("mixtral-hub", TARGETS[0]),
    ("olmo2-hub", TARGETS[1]),
    ("olmo3-biases", TARGETS[0]),
    ("olmoe-hub", TARGETS[1]),
    ("phi3-window", TARGETS[0]),
    ("qwen2-moe-q4", TARGETS[0]),
    ("qwen2-tied", TARGETS[1]),
    ("qwen3-moe-hub", TARGETS[0]),
    ("qwen3-tied", TARGETS[1]),
    ("seed-oss-hub", TARGETS[1]),
    ("smollm3-interval", TARGETS[0]),
    ("stablelm-parallel", TARGETS[1]),
    ("starcoder2-window", TARGETS[0]),
];
/// Tokens of an answer by default, of which the first is the prompt's: a step is replayed from its fifth on. Emulated ones take a
/// third of a second each.
const TOKENS: usize = 7;
/// Sequences that no call but the one of 64 takes.
const MANY: usize = 9;
/// How near the best two logits are where either token is right with weights in 4 bits: kernels multiply rows of prompts in bf16,
/// which changed small differences of logits by up to 0.01 (`qwen2-moe-q4`, 2026-11-30).
const NEAR: f32 = 0.02;
/// By how much logits differ at most, as a part of their spread, where products, keys and values are rounded.
const ROUNDED: f32 = 0.02;
/// What a child process says whose answers are exact, so that one which ran no test does not pass.
pub(crate) const EXACT: &str = "exact on the emulator";

/// The folder with the emulator's `libcuda.so`.
pub(crate) fn driver() -> PathBuf {
    let folder = program("mlxcel-run").with_file_name("examples");
    assert!(
        folder.join("libcuda.so").exists(),
        "found no libcuda.so in {}, which the tests of the whole workspace build\n\
         hint: cargo build -p mlxcel-cuda-emulator --examples",
        folder.display()
    );
    folder
}

/// Returns a command whose process finds the emulator where NVIDIA's driver would be.
pub(crate) fn on_emulator(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", driver());
    command
}

/// Calls a function on the emulator, and returns what mlxcel-run says.
fn run(built: &Built, arguments: &[&str]) -> String {
    let mut command = on_emulator(program("mlxcel-run"));
    command.arg(built.bundle.path()).args(["--device", "cuda"]).args(arguments);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    assert!(status.success(), "{text}");
    text
}

#[test]
fn steps_of_a_program_for_gpus_are_jaxs() {
    let built = built(&exported("adam.jax"), |request| request.targets = vec!["cuda".into()]).unwrap();
    let [inputs, expected] =
        ["adam-0.npz", "adam-1000.npz"].map(|name| format!("@{}", exported(name).display()));
    let tolerance = ["--rtol", "1e-5", "--atol", "1e-5"];
    let arguments = ["--input", &inputs, "--repeat", "1000", "--expected", &expected];
    let text = run(&built, &[&arguments[..], &tolerance].concat());
    assert!(text.contains("main on cuda, Emulator: 1000 calls, "), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("ok    ")).count(), 8, "{text}");
}

/// NVML knows nothing of this GPU, so it is CUDA that tells what it can do.
#[test]
fn code_for_another_gpu_is_refused() {
    let built = built(&exported("adam.jax"), |request| request.targets = vec!["cuda-sm_120".into()]).unwrap();
    let mut command = on_emulator(program("mlxcel-run"));
    let inputs = format!("@{}", exported("adam-0.npz").display());
    command.arg(built.bundle.path()).args(["--device", "cuda", "--input", &inputs]);
    let Output { status, stderr, .. } = command.output().unwrap();
    let text = String::from_utf8_lossy(&stderr);
    let reason = "cuda-sm_120: compute capability is 9.0, expected 12.0 or higher";
    assert!(!status.success() && text.contains(reason), "{text}");
}

#[test]
fn a_block_of_pytorch_for_gpus_is_pytorchs() {
    let names = std::fs::read_to_string(exported("torch_block.txt")).unwrap();
    let bind = names.lines().enumerate().map(|(index, name)| (format!("states[{index}]"), name.to_owned()));
    let built = built(&exported("torch_block.jax"), |request| {
        request.targets = vec!["cuda".into()];
        request.parameters = Some(exported("torch_block.safetensors"));
        request.bind = bind.collect();
    })
    .unwrap();
    let [inputs, expected] =
        ["in", "out"].map(|name| format!("@{}", exported(&format!("torch_block-{name}.npz")).display()));
    let text =
        run(&built, &["--input", &inputs, "--expected", &expected, "--rtol", "1e-5", "--atol", "1e-5"]);
    assert!(text.contains("ok    result[0]: within "), "{text}");
}

#[test]
fn a_scan_for_gpus_is_jaxs() {
    let built = built(&exported("scan.jax"), |request| request.targets = vec!["cuda".into()]).unwrap();
    let [inputs, expected] =
        ["in", "out"].map(|name| format!("@{}", exported(&format!("kernel-{name}.npz")).display()));
    let text =
        run(&built, &["--input", &inputs, "--expected", &expected, "--rtol", "1e-5", "--atol", "1e-5"]);
    assert_eq!(text.lines().filter(|line| line.starts_with("ok    ")).count(), 2, "{text}");
}

#[test]
fn a_kernel_for_gpus_computes_what_jax_computes() {
    let folder = tempfile::tempdir().unwrap();
    let ptx = folder.path().join("kernel.ptx");
    let flags = [Isa::Sm80.clang_flags(), vec!["-S".to_owned()]].concat();
    let ptx = compiled(&exported("linear_recurrence.cu.c"), "nvptx64-nvidia-cuda", &flags, ptx);
    let built = built(&exported("kernel.jax"), |request| {
        (request.targets, request.kernels) = (vec!["cuda".into()], vec![ptx]);
    })
    .unwrap();
    let [inputs, expected] =
        ["in", "out"].map(|name| format!("@{}", exported(&format!("kernel-{name}.npz")).display()));
    let text =
        run(&built, &["--input", &inputs, "--expected", &expected, "--rtol", "1e-5", "--atol", "1e-5"]);
    assert_eq!(text.lines().filter(|line| line.starts_with("ok    ")).count(), 2, "{text}");
}

/// Returns the request for a fixture in `f32` on a GPU, which the test and its child process share. What has weights that 4 bits
/// hold is quantized.
pub(crate) fn for_gpu(fixture: &Fixture, target: &str) -> Request {
    Request {
        precision: Precision::Float(Float::F32),
        quant: if is_in_4_bits(fixture) { Quant::Q4 } else { Quant::None },
        chunk: Some(32),
        ..request(&fixture.folder, &[target])
    }
}

/// Returns whether `--quant q4` keeps the weights of a fixture as they are.
fn is_in_4_bits(fixture: &Fixture) -> bool {
    fixture.name.ends_with("-q4")
}

/// Compares the answers of a fixture with a test, in a process that finds the emulator.
pub(crate) fn answers(fixture: &Fixture, target: &str, request: &Request, test: &str) -> Result<(), String> {
    // Here, so that the child finds the code in the store.
    drop(try_built(request)?);
    let mut command = on_emulator(env::current_exe().unwrap());
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(FIXTURE, &fixture.name)
        .env(TARGET, target);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let words = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    if status.success() && words.contains(EXACT) { Ok(()) } else { Err(words) }
}

/// Some fixtures by default, those that `MLXCEL_FIXTURES` names, or all of them if `MLXCEL_ORACLE=full` asks for it.
#[test]
fn models_for_gpus_answer_as_hugging_face_does() {
    let only = env::var("MLXCEL_FIXTURES").unwrap_or_default();
    let is_chosen = |fixture: &Fixture, target: &str| match only.as_str() {
        "" => is_full() || BY_DEFAULT.contains(&(fixture.name.as_str(), target)),
        words => words.split(',').any(|word| fixture.name.contains(word)),
    };
    let all = Fixture::all_in(&fixtures()).unwrap();
    let on_each = |fixture| TARGETS.map(|target| (fixture, target));
    let chosen = all.iter().flat_map(on_each).filter(|(fixture, target)| is_chosen(fixture, target));
    let chosen: Vec<_> = chosen.collect();
    // Each of those by default is there, and of all some are.
    let least = if only.is_empty() { BY_DEFAULT.len() } else { 1 };
    assert!(chosen.len() >= least, "found {} fixtures of {only:?}, expected {least}", chosen.len());
    let failures = Mutex::new(Vec::new());
    each(&chosen, |(fixture, target)| {
        let start = Instant::now();
        let end = answers(fixture, target, &for_gpu(fixture, target), "emulated::one_fixture");
        let name = format!("{} for {target}", fixture.name);
        if chosen.len() > BY_DEFAULT.len() {
            let words = if end.is_ok() { "exact" } else { "FAILED" };
            say(&format!("{name}: {words} on the emulator after {:.0} s", start.elapsed().as_secs_f32()));
        }
        if let Err(words) = end {
            failures.lock().unwrap().push(format!("{name}: {words}"));
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), chosen.len(), failures.join("\n"));
}

#[test]
#[ignore = "a part of a fixture's comparison, which starts it"]
fn one_fixture() {
    let fixture = Fixture::find(&env::var(FIXTURE).unwrap());
    let built = real::built(&for_gpu(&fixture, &env::var(TARGET).unwrap()));
    let mut engine = built.engine("cuda").unwrap();
    let near = if is_in_4_bits(&fixture) { NEAR } else { 0.0 };
    let (prompts, most) = if is_full() { (vec![0, 2], usize::MAX) } else { (vec![2], TOKENS) };
    for recorded in prompts.into_iter().map(|index| &fixture.prompts[index]) {
        let count = recorded.certain(near).min(most);
        let found = greedy(&mut engine, &recorded.prompt, count).unwrap();
        assert_eq!(found.tokens, recorded.tokens[..count], "after a prompt of {}", recorded.prompt.len());
    }
    eprintln!("{EXACT}");
}

#[test]
fn the_default_has_every_family() {
    let all = Fixture::all_in(&fixtures()).unwrap();
    let families = |of: &mut dyn Iterator<Item = &Fixture>| -> BTreeSet<String> {
        of.map(|fixture| fixture.family.clone()).collect()
    };
    let is_default = |fixture: &&Fixture| BY_DEFAULT.iter().any(|(name, _)| *name == fixture.name);
    assert_eq!(families(&mut all.iter().filter(is_default)), families(&mut all.iter()));
}

/// Returns the request for a fixture whose inputs of products, or whose keys and values, have other types than `f32`.
fn rounded(fixture: &Fixture, target: &str) -> Request {
    let (float, cache) = match fixture.name.as_str() {
        "bf16" => (Float::Bf16, CacheType::Float(Float::F16)),
        "f16" => (Float::F16, CacheType::Float(Float::Bf16)),
        // Its heads have 32 dimensions, as groups do.
        "one-head" => (Float::F32, CacheType::Q8),
        other => panic!("{other}: expected a fixture with other types"),
    };
    Request { precision: Precision::Float(float), cache_type: Some(cache), ..for_gpu(fixture, target) }
}

/// The weights are as they are stored.
#[test]
fn models_of_other_types_answer_nearly_as_hugging_face_does() {
    let chosen = [("bf16", TARGETS[0]), ("f16", TARGETS[1]), ("one-head", TARGETS[0])];
    each(&chosen, |(name, target)| {
        let fixture = Fixture::find(name);
        answers(&fixture, target, &rounded(&fixture, target), "emulated::one_rounded_fixture").unwrap();
    });
}

#[test]
#[ignore = "a part of a fixture's comparison, which starts it"]
fn one_rounded_fixture() {
    let fixture = Fixture::find(&env::var(FIXTURE).unwrap());
    let built = real::built(&rounded(&fixture, &env::var(TARGET).unwrap()));
    let mut engine = built.engine("cuda").unwrap();
    check_nearly(&mut engine, &fixture, TOKENS, NEAR);
}

/// Checks the logits after a longer prompt, and the tokens after a short one up to where the best two logits are nearer than `near`,
/// of a model that rounds. Says so as a child process does.
pub(crate) fn check_nearly(engine: &mut Loaded, fixture: &Fixture, most: usize, near: f32) {
    let [short, long] = [0, 2].map(|index| &fixture.prompts[index]);
    let part = difference([long], most, engine).unwrap();
    assert!(part <= ROUNDED, "logits differ by {part} of their spread, expected at most {ROUNDED}");
    let count = short.certain(near).min(most);
    let found = greedy(engine, &short.prompt, count).unwrap();
    assert_eq!(found.tokens, short.tokens[..count], "after a prompt of {}", short.prompt.len());
    eprintln!("{EXACT}");
}

/// Returns a request for a fixture with the calls that bundles have by default, of up to 64 sequences.
fn with_all_calls(fixture: &Fixture, target: &str) -> Request {
    Request { chunk: None, ..for_gpu(fixture, target) }
}

#[test]
fn sequences_share_steps_of_gpus() {
    let (fixture, target) = (Fixture::find("gqa"), TARGETS[1]);
    let test = "emulated::several_sequences";
    answers(&fixture, target, &with_all_calls(&fixture, target), test).unwrap();
}

#[test]
#[ignore = "a part of a fixture's comparison, which starts it"]
fn several_sequences() {
    let fixture = Fixture::find(&env::var(FIXTURE).unwrap());
    let built = real::built(&with_all_calls(&fixture, &env::var(TARGET).unwrap()));
    let mut engine = built.engine("cuda").unwrap();
    let [short, long] = [0, 2].map(|index| (&fixture.prompts[index], TOKENS));
    side_by_side(&mut engine, &[short, long]).unwrap();
    // More than the first call of several takes.
    side_by_side(&mut engine, &[short; MANY]).unwrap();
    eprintln!("{EXACT}");
}

#[test]
fn logistic_regression_for_gpus_is_that_of_cpus() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("logistic.mlir"), logistic_regression::module().unwrap()).unwrap();
    let targets = ["cuda", "cpu"].map(str::to_owned).to_vec();
    let built = built(at("logistic.mlir").as_ref(), |request| request.targets = targets).unwrap();
    let [data, cpu] = ["data.npz", "cpu.npz"].map(|name| format!("@{}", at(name)));
    let tolerance = ["--rtol", "1e-5", "--atol", "1e-6"];
    let on_cpu = |arguments: &[&str]| {
        let mut command = Command::new(program("mlxcel-run"));
        command.arg(built.bundle.path()).args(["--device", "local-sync"]).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let examples = ["--function", "data", "--input", "seed=0 1"];
    on_cpu(&[&examples[..], &["--output", &data]].concat());
    let text = run(&built, &[&examples[..], &["--expected", &data], &tolerance].concat());
    assert_eq!(text.lines().filter(|line| line.starts_with("ok    ")).count(), 3, "{text}");
    let steps = ["--function", "step", "--repeat", "20", "--input", &data];
    on_cpu(&[&steps[..], &["--output", &cpu]].concat());
    let text = run(&built, &[&steps[..], &["--expected", &cpu], &tolerance].concat());
    assert!(text.contains("ok    w: within ") && text.contains("20 calls"), "{text}");
}
