//! The whole pipeline against Hugging Face: tiny checkpoints of every family and option are compiled, loaded and run. Tokens
//! and logits must be those recorded in `models/oracle/fixtures`.
//!
//! `MLXCEL_FIXTURES=gemma,phi` runs the fixtures whose names contain one of these words. `MLXCEL_ORACLE=full` runs the
//! product: every fixture, with every entry point, every prompt on Vulkan too.

mod lavapipe;

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, Write},
    sync::Mutex,
    time::Instant,
};

use crate::{
    answers::{Failure, Recorded, after_others, greedy, together, tokens, tokens_and_logits},
    real::{Built, Fixture, OF_PANELS, built, each, fixtures, is_full, models, request, try_built},
};
use mlxcel_compiler_driver::Request;
use mlxcel_runtime::StopReason;

/// Tokens of the only prefill of most fixtures.
const CHUNK: usize = 32;

/// Fixtures that run with every entry point by default, on local-sync too: one for each element type.
const EVERY_ENTRY: [&str; 3] = ["everything", "f16", "gqa"];

/// Those of them that run on Vulkan by default, where the first needs 16-bit floats as words.
///
/// They have one entry point for prompts there, and only the first and the last prompt run: more would take the compiler and
/// Mesa's lavapipe many minutes.
const ON_VULKAN: [&str; 2] = ["f16", "gqa"];

/// Fixtures that also run without kernels by default: together they have every option that kernels know of, and the largest
/// parts that are computed in another way without them.
const WITHOUT_KERNELS: [&str; 6] =
    ["cohere2-hub", "gemma2-hub", "gpt-neox-parallel", "gpt-oss-hub", "gpt2-hub", "qwen2-moe-hub"];

/// Fixtures that only `MLXCEL_ORACLE=full` runs, because others compute with the same options.
///
/// What sets them apart is how config.json spells an option, leaves it out, or which family has it too. For every fixture
/// and without a compiler, `models/tests/expanded.rs` compares the options with transformers, and `models/tests/reference.rs`
/// the names and shapes of all weights. By default run `attention-bias` and `everything` (for all biases), `narrow-heads`
/// (`bf16`), `gemma3-hub` (`deep`), `llama2-old` (`mha`), `everything` (shards, llama3, old spellings), `llama-yarn` and
/// `llama-yarn-exact` (yarn), `cohere-qk-norm` (norms beside a parallel MLP), `qwen2-window` (windows), and each family's
/// other fixtures. Their heads are 4 to 256 wide by default too.
const FULL_ONLY: [&str; 61] = [
    "all-biases",
    "bare",
    "bf16",
    "cohere-bare",
    "cohere2-bare",
    "cohere2-layer-types",
    "deep",
    "ernie4_5-bare",
    "ernie4_5-biases",
    "exaone4-bare",
    "exaone4-small",
    "gemma-bare",
    "gemma-biases",
    "gemma3-bare",
    "gemma3-layer-types",
    "glm4-bare",
    "glm4-no-biases",
    "gpt-neox-bare",
    "gpt-oss-bare",
    "gpt-oss-one",
    "gpt-oss-q4",
    "gpt-oss-wide",
    "gpt2-unscaled",
    "granite-bare",
    "granite-biases",
    "granitemoe-one",
    "llama-dynamic",
    "llama-yarn-mscale",
    "mha",
    "mistral-bare",
    "mistral-nemo",
    "mixtral-bare",
    "mlp-bias",
    "norm-epsilon",
    "olmo2-bare",
    "olmo2-biases",
    "olmo3-bare",
    "olmo3-biases",
    "peaked",
    "phi3-bare",
    "phi3-window",
    "qwen2-layer-types",
    "qwen2-moe-q4",
    "qwen2-tied",
    "qwen3-biases",
    "qwen3-moe-bare",
    "qwen3-moe-saved",
    "rope-linear",
    "rope-linear-old",
    "rope-llama3",
    "rope-llama3-old",
    "rope-theta",
    "seed-oss-bare",
    "seed-oss-biases",
    "sharded",
    "smollm3-bare",
    "smollm3-interval",
    "stablelm-bare",
    "stablelm-biases",
    "starcoder2-bare",
    "starcoder2-no-biases",
];

#[test]
fn every_fixture_answers_as_hugging_face_does() {
    let full = is_full();
    let only = env::var("MLXCEL_FIXTURES").unwrap_or_default();
    let is_chosen = |fixture: &Fixture| match only.as_str() {
        "" => full || !FULL_ONLY.contains(&fixture.name.as_str()),
        words => words.split(',').any(|word| fixture.name.contains(word)),
    };
    let chosen: Vec<_> = Fixture::all_in(&fixtures()).unwrap().into_iter().filter(is_chosen).collect();
    assert!(!chosen.is_empty(), "no fixture is called {only}");
    let failures = Mutex::new(Vec::new());
    each(&chosen, |fixture| {
        let start = Instant::now();
        let end = answers(fixture, Scope::of(fixture));
        if full {
            let words = if end.is_ok() { "exact" } else { "FAILED" };
            say(&format!("{}: {words} after {:.0} s", fixture.name, start.elapsed().as_secs_f32()));
        }
        if let Err(Failure(words)) = end {
            failures.lock().unwrap().push(format!("{}: {words}", fixture.name));
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), chosen.len(), failures.join("\n"));
}

/// Writes a line to stderr at once, which tests that pass do not show otherwise.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// How much of a fixture runs.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// One prefill size on local-task.
    Default,
    /// All entry points on CPUs, and one prefill size on Vulkan.
    EveryEntry,
    /// All entry points on every device, with every prompt, and without kernels.
    Full,
}

impl Scope {
    fn of(fixture: &Fixture) -> Self {
        match EVERY_ENTRY.contains(&fixture.name.as_str()) {
            _ if is_full() => Self::Full,
            true => Self::EveryEntry,
            false => Self::Default,
        }
    }

    fn has_vulkan(self, fixture: &Fixture) -> bool {
        match self {
            Self::Default => false,
            Self::EveryEntry => ON_VULKAN.contains(&fixture.name.as_str()),
            Self::Full => fixture.on_vulkan,
        }
    }

    /// Builds the fixture's bundle. Entry points are the same for all families, and one prefill size compiles in half the
    /// time.
    fn built(self, fixture: &Fixture, targets: &[&str]) -> Result<Built, Failure> {
        let has_one_size = match self {
            Self::Default => true,
            Self::EveryEntry => targets == ["vulkan"],
            Self::Full => false,
        };
        let (chunk, pack_elements) = (has_one_size.then_some(CHUNK), has_one_size.then_some(OF_PANELS));
        try_built(&Request { chunk, pack_elements, ..request(&fixture.folder, targets) }).map_err(Failure)
    }
}

/// Compiles one fixture and compares its answers on every device of the scope.
fn answers(fixture: &Fixture, scope: Scope) -> Result<(), Failure> {
    let prompts: Vec<&Recorded> = fixture.prompts.iter().collect();
    let built = scope.built(fixture, &["cpu"])?;
    let mut engine = built.engine("local-task")?;
    prompts.iter().try_for_each(|recorded| tokens_and_logits(&mut engine, recorded))?;
    after_others(&mut engine, prompts[prompts.len() - 1])?;
    together(&mut engine, &prompts)?;
    if scope != Scope::Default {
        let mut engine = built.engine("local-sync")?;
        tokens(&mut engine, &prompts)?;
        together(&mut engine, &prompts)?;
    }
    if scope == Scope::Full || WITHOUT_KERNELS.contains(&fixture.name.as_str()) {
        let mut engine = scope.built(fixture, &["cpu-x86-64-v2"])?.engine("local-task")?;
        tokens(&mut engine, &prompts)?;
        together(&mut engine, &prompts)?;
    }
    if scope.has_vulkan(fixture) { lavapipe::answers(fixture, scope) } else { Ok(()) }
}

/// Compares the tokens and logits of a quantized checkpoint with what its tool's numbers give, with and without kernels.
pub(crate) fn answers_of_quantized(fixture: &Fixture) -> Result<(), Failure> {
    let prompts: Vec<&Recorded> = fixture.prompts.iter().collect();
    let mut engine = Scope::Default.built(fixture, &["cpu"])?.engine("local-task")?;
    prompts.iter().try_for_each(|recorded| tokens_and_logits(&mut engine, recorded))?;
    if is_full() {
        let mut engine = Scope::Default.built(fixture, &["cpu-x86-64-v2"])?.engine("local-task")?;
        tokens(&mut engine, &prompts)?;
    }
    Ok(())
}

/// Compares one fixture's answers on Vulkan, in this process.
fn on_vulkan(fixture: &Fixture, scope: Scope) -> Result<(), Failure> {
    let mut prompts: Vec<&Recorded> = fixture.prompts.iter().collect();
    let last = prompts[prompts.len() - 1];
    if scope != Scope::Full {
        prompts = vec![prompts[0], last];
    }
    let mut engine = scope.built(fixture, &["vulkan"])?.engine("vulkan")?;
    tokens(&mut engine, &prompts)?;
    if scope == Scope::Full {
        after_others(&mut engine, last)?;
    }
    together(&mut engine, &prompts)
}

#[test]
fn the_default_has_every_family() {
    let all = Fixture::all_in(&fixtures()).unwrap();
    let named = || EVERY_ENTRY.iter().chain(&WITHOUT_KERNELS).chain(&FULL_ONLY);
    for name in named() {
        assert!(all.iter().any(|fixture| fixture.name == *name), "no fixture is called {name}");
    }
    let is_default = |fixture: &&Fixture| !FULL_ONLY.contains(&fixture.name.as_str());
    let families = |of: &mut dyn Iterator<Item = &Fixture>| -> BTreeSet<String> {
        of.map(|fixture| fixture.family.clone()).collect()
    };
    assert_eq!(families(&mut all.iter().filter(is_default)), families(&mut all.iter()));
    assert!(EVERY_ENTRY.iter().chain(&WITHOUT_KERNELS).all(|name| !FULL_ONLY.contains(name)));
}

#[test]
fn a_context_that_is_just_long_enough() {
    let fixture = Fixture::find("gqa");
    // The last token of an answer is not appended.
    let context = |recorded: &Recorded| recorded.prompt.len() + recorded.tokens.len() - 1;
    for recorded in [&fixture.prompts[1], &fixture.prompts[2], fixture.prompts.last().unwrap()] {
        let mut request = request(&fixture.folder, &["cpu"]);
        request.context = Some(context(recorded));
        let built = built(&request);
        let mut engine = built.engine("local-task").unwrap();
        assert_eq!(engine.limits().context, context(recorded));
        // The answer goes on until the context is full, which is one token after the last one asked for elsewhere.
        let found = greedy(&mut engine, &recorded.prompt, usize::MAX).unwrap();
        assert_eq!((&found.tokens[..40], found.tokens.len()), (&recorded.tokens[..], 40));
        assert_eq!(found.stop_reason, StopReason::Context);
        // Nothing is left of what filled it.
        let short = &fixture.prompts[0];
        let fits = context(recorded) - short.prompt.len();
        let found = greedy(&mut engine, &short.prompt, fits.min(40)).unwrap();
        assert_eq!(found.tokens, short.tokens[..fits.min(40)]);
    }
}

#[test]
fn no_fixture_is_lost() {
    let readme = fs::read_to_string(models().join("oracle/README.md")).unwrap();
    let listed = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let listed: BTreeSet<String> = listed.map(Into::into).collect();
    let found = Fixture::all_in(&fixtures()).unwrap().into_iter().map(|fixture| fixture.name);
    let encoders = fs::read_dir(models().join("oracle/encoders")).unwrap();
    let encoders = encoders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(found.chain(encoders).collect::<BTreeSet<_>>(), listed);
    assert!(listed.len() >= 24, "{listed:?}");
}

#[test]
fn fixtures_that_test_nothing_fail() {
    let folder = tempfile::tempdir().unwrap();
    let refused = || {
        let error = Fixture::all_in(folder.path()).unwrap_err();
        error.replace(&folder.path().display().to_string(), "…")
    };
    assert_eq!(refused(), "…: no fixtures");
    fs::create_dir(folder.path().join("case")).unwrap();
    assert_eq!(refused(), "…/case/expected.json: No such file or directory (os error 2)");
    for text in [r#"{"prompts": []}"#, r#"{"prompts": [{"prompt": [1], "tokens": [], "best": []}]}"#] {
        fs::write(folder.path().join("case/expected.json"), text).unwrap();
        assert_eq!(
            refused(),
            "…/case/expected.json: expected prompts with 40 tokens and 40 steps of logits each"
        );
    }
}
