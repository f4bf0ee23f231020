//! `cargo xtask gpu-check`: compares generated tokens on a GPU with the expected ones.
//!
//! The machine with the GPU needs neither compiler nor cargo: a folder carries executables, bundles, expected tokens and
//! `run.sh`, which runs all cases.

mod predictions;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    io::ErrorKind,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::Value;

use self::predictions::Prediction;
use crate::{shell, toolchain::setup::setup, workspace::Workspace};

const SCRIPT: &str = include_str!("run.sh");
const MODEL: &str = "llama-3.2-1b";
/// The weights and the prompt of the comparison at full shape.
///
/// Other weights may have near ties, where another order of additions gives another token. Here the smallest gap between
/// the best two logits of the 48 steps is 6.5e-3.
const SEED: u64 = 0;
const PROMPT: &str = "1,2,3,4,5,6,7,8";
/// Fixtures of the oracle: grouped heads, bf16, f16, more layers, rope scaling, every option at once; head sizes without a
/// kernel, a window, soft caps, sinks with experts without kernels and with them, one expert per token, a tensor that layers
/// share, and experts in 4 bits.
const FIXTURES: [&str; 15] = [
    "gqa",
    "bf16",
    "f16",
    "deep",
    "rope-llama3",
    "everything",
    "odd-sizes",
    "mistral-window",
    "gemma2-hub",
    "gpt-oss-hub",
    "gpt-oss-q4",
    "gpt-oss-wide",
    "mixtral-one",
    "phi4-mini",
    "qwen2-moe-q4",
];
/// Those that are also compiled for [`OVERLAPPED`]: one for each kind of attention and of product.
const OVERLAPPED_FIXTURES: [&str; 5] = ["gqa", "bf16", "everything", "gemma2-hub", "qwen2-moe-q4"];
/// The end of the names of fixtures whose weights `--quant q4` keeps as they are.
const IN_4_BITS: &str = "-q4";
/// How near the best two logits of these are where either token is right: kernels multiply rows of prompts in bf16, which changed
/// small differences of logits by up to 0.01 (`qwen2-moe-q4`, 2026-11-30).
const NEAR: f64 = 0.02;
/// The target whose kernels overlap, where the GPU has it.
const OVERLAPPED: &str = "cuda-sm_90";
/// The variants of the model of full shape, and their flags.
const FULL: [(&str, [&str; 4]); 4] = [
    ("f32", ["--precision", "f32", "--quant", "none"]),
    ("bf16", ["--precision", "bf16", "--quant", "none"]),
    ("q8", ["--precision", "bf16", "--quant", "q8"]),
    ("q4", ["--precision", "bf16", "--quant", "q4"]),
];
/// The largest size of the folder, which may be copied over slow networks: half of that as a compressed archive.
const LIMIT: u64 = 96 << 20;

/// The options of `cargo xtask gpu-check`.
#[derive(Args)]
pub(crate) struct GpuCheck {
    /// Only write the folder, to be copied to a machine with a GPU and checked there by `FOLDER/run.sh`
    #[arg(long, value_name = "FOLDER")]
    pack: Option<PathBuf>,
}

/// Writes the folder. Without `--pack`, runs the check on this machine.
pub(crate) fn gpu_check(workspace: &Workspace, check: &GpuCheck) -> Result<()> {
    let folder = match &check.pack {
        Some(folder) => std::env::current_dir()?.join(folder),
        None => workspace.root.join("target/gpu-check"),
    };
    setup(workspace)?;
    pack(workspace, &folder)?;
    if check.pack.is_some() {
        return shell::print(&format!("{}\n", folder.display()));
    }
    Err(shell::exec(&mut workspace.command(folder.join("run.sh"))))
}

fn pack(workspace: &Workspace, folder: &Path) -> Result<()> {
    shell::run_to_stderr(&mut workspace.cargo(
        "build --release -p mlxcel-compiler-driver -p mlxcel-runtime --bin mlxcel-compile --bin mlxcel-run \
         --bin mlxcel-bench \
         --example random-weights",
    ))?;
    clear(folder)?;
    fs::create_dir_all(folder.join("bundles")).with_context(|| folder.display().to_string())?;
    let mut cases = String::new();
    // The CPU's code is a baseline to compare with.
    let cpu = if cfg!(target_arch = "aarch64") { "cpu-aarch64" } else { "cpu-x86-64-v3" };
    let both = format!("cuda,{cpu}");
    let mut add = |name: &str, model: &str, targets: &str| {
        let quant = if model.ends_with(IN_4_BITS) { "q4" } else { "none" };
        compile(
            workspace,
            &folder.join("bundles").join(name),
            &["--model", model, "--precision", "f32", "--quant", quant],
            targets,
        )?;
        let near = if model.ends_with(IN_4_BITS) { NEAR } else { 0.0 };
        cases += &cases_of(name, &read(&workspace.root.join(model).join("expected.json"))?, near)?;
        anyhow::Ok(())
    };
    add("demo", "models/demo", &both)?;
    for fixture in FIXTURES {
        add(fixture, &format!("models/oracle/fixtures/{fixture}"), &both)?;
    }
    for fixture in OVERLAPPED_FIXTURES {
        add(&overlapped(fixture), &format!("models/oracle/fixtures/{fixture}"), OVERLAPPED)?;
    }
    for (name, options) in FULL {
        let arguments = [&["--model", MODEL, "--weights", "none"], &options[..]].concat();
        let bundle = folder.join("bundles").join(format!("{MODEL}-{name}"));
        compile(workspace, &bundle, &arguments, &both)?;
        compile(
            workspace,
            &bundle.with_file_name(overlapped(&format!("{MODEL}-{name}"))),
            &arguments,
            OVERLAPPED,
        )?;
    }
    write(&folder.join("cases.txt"), &cases)?;
    let script = folder.join("run.sh");
    let predictions = predictions::read(&workspace.root)?;
    write(&script, &script_for(SEED, PROMPT, &predictions))?;
    write_predictions(&folder.join("predictions"), &predictions)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    for name in ["mlxcel-run", "mlxcel-bench", "examples/random-weights"] {
        let from = workspace.release_binary(name)?;
        let to = folder.join(Path::new(name).file_name().unwrap_or(name.as_ref()));
        fs::copy(&from, &to).with_context(|| to.display().to_string())?;
    }
    let bytes = size(folder)?;
    if bytes > LIMIT {
        bail!(
            "{0}: found {bytes} bytes, expected at most {LIMIT}\nhint: du -a {0} | sort -n | tail, and raise LIMIT in {1} if all of it is needed",
            folder.display(),
            file!()
        );
    }
    eprintln!("{} cases, {:.1} MiB", cases.lines().count() + 1, bytes as f64 / f64::from(1 << 20));
    Ok(())
}

/// Removes what an earlier version left: a bundle that has no case any more would be carried along, and results would be those of
/// other code. The script goes first, so that a folder that is not complete has none.
fn clear(folder: &Path) -> Result<()> {
    let remove = |name: &str| {
        let path = folder.join(name);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).context(path.display().to_string())
            }
            _ => Ok(()),
        }
    };
    ["run.sh", "cases.txt", "bundles", "predictions", "results"].into_iter().try_for_each(remove)
}

/// Returns `run.sh` for the comparison at full shape with this seed and prompt.
fn script_for(seed: u64, prompt: &str, predictions: &[Prediction]) -> String {
    let measure = |(name, _): (&str, _)| {
        let rate = |step: &str, tokens: f64, target: &str| {
            let us = predictions::of_step(predictions, name, step, target);
            us.map_or("-".to_owned(), |us| format!("{:.0}", tokens * 1e6 / us))
        };
        let rates =
            |target: &str| format!("{} {}", rate("step_512", 512.0, target), rate("step_1", 1.0, target));
        let (plain, early) = (rates("cuda"), rates(OVERLAPPED));
        format!("measure {name} {plain}\n  measure {} {early}", overlapped(name))
    };
    let full = FULL.map(measure).join("\n  ");
    SCRIPT.replace("@SEED@", &seed.to_string()).replace("@PROMPT@", prompt).replace("@FULL@", &full)
}

/// Writes what kernels of each variant should take, for the script and for whoever reads its results.
fn write_predictions(folder: &Path, predictions: &[Prediction]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let variants: BTreeSet<_> = predictions.iter().map(|row| row.variant.as_str()).collect();
    variants.into_iter().try_for_each(|variant| {
        write(&folder.join(format!("{variant}.txt")), &predictions::lines(predictions, variant))?;
        write(&folder.join(format!("{variant}.json")), &predictions::json(predictions, variant))
    })
}

/// Returns the name of a bundle whose kernels overlap, as `run.sh` knows it.
fn overlapped(name: &str) -> String {
    format!("{name}-sm_90")
}

/// Compiles a bundle for these targets.
fn compile(workspace: &Workspace, bundle: &Path, arguments: &[&str], targets: &str) -> Result<()> {
    let mut command = workspace.command(workspace.release_binary("mlxcel-compile")?);
    shell::run_to_stderr(command.args(arguments).args(["--target", targets, "--out"]).arg(bundle))
}

/// Returns a line for each case: bundle, prompt ids and expected ids, up to where the best two logits are nearer than `near`. Reads
/// the formats of the demo and of the oracle.
fn cases_of(bundle: &str, expected: &str, near: f64) -> Result<String> {
    let json: Value = serde_json::from_str(expected).with_context(|| format!("expected.json of {bundle}"))?;
    let cases = json.get("cases").or_else(|| json.get("prompts")).and_then(Value::as_array);
    let mut lines = String::new();
    for case in cases.into_iter().flatten() {
        let prompt = ids(case.get("prompt_tokens").or_else(|| case.get("prompt")));
        let (Some(prompt), Some(tokens)) = (prompt, ids(case.get("tokens"))) else {
            bail!("expected.json of {bundle}: found a case without prompt or tokens, expected both");
        };
        let best = case.get("best").and_then(Value::as_array);
        let first = best.and_then(|steps| steps.iter().position(|best| gap(best) < near));
        let tokens = &tokens[..first.unwrap_or(tokens.len())];
        if !tokens.is_empty() {
            writeln!(lines, "{bundle} {} {}", prompt.join(","), tokens.join(","))?;
        }
    }
    if lines.is_empty() {
        bail!("expected.json of {bundle}: found no case, expected at least one");
    }
    Ok(lines)
}

/// Returns how far the best two logits of a step are from each other, `[[id, logit], …]`.
fn gap(best: &Value) -> f64 {
    let logit = |index: usize| best.pointer(&format!("/{index}/1")).and_then(Value::as_f64);
    logit(0).zip(logit(1)).map_or(f64::INFINITY, |(first, second)| first - second)
}

/// Returns ids as `--tokens` takes them.
fn ids(value: Option<&Value>) -> Option<Vec<String>> {
    value?.as_array()?.iter().map(|id| Some(id.as_u64()?.to_string())).collect()
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
