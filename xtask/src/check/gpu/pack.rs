//! Writes the folder: programs, bundles, expected tokens, predictions and scripts.

use std::{
    collections::BTreeSet, fmt::Write as _, fs, io::ErrorKind, os::unix::fs::PermissionsExt as _, path::Path,
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{
    kit::{Kit, VARIANTS, name_of},
    predictions::{self, Prediction},
};
use crate::{shell, workspace::Workspace};

/// The scripts of a folder, by their names, with places for what differs from kit to kit.
pub(super) const SCRIPTS: [(&str, &str); 3] = [
    ("run.sh", include_str!("run.sh")),
    ("diagnose.sh", include_str!("diagnose.sh")),
    ("peers.sh", include_str!("peers.sh")),
];
/// The programs that they start with Python.
const PYTHON: [(&str, &str); 2] =
    [("peers.py", include_str!("peers.py")), ("write_gguf.py", include_str!("../../bench/write_gguf.py"))];
/// The weights and the prompt of the comparison at full shape.
///
/// Other weights may have near ties, where another order of additions gives another token. Here the smallest gap between
/// the best two logits of the 48 steps is 6.5e-3.
const SEED: u64 = 0;
const PROMPT: &str = "1,2,3,4,5,6,7,8";
/// The end of the names of fixtures whose weights `--quant q4` keeps as they are.
pub(super) const IN_4_BITS: &str = "-q4";
/// How near the best two logits of these are where either token is right: kernels multiply rows of prompts in bf16, which changed
/// small differences of logits by up to 0.01 (`qwen2-moe-q4`, 2026-11-30).
const NEAR: f64 = 0.02;
/// The target whose kernels overlap, where the GPU has it.
const OVERLAPPED: &str = "cuda-sm_90";

/// Writes a folder that has everything of `kit`.
pub(super) fn pack(workspace: &Workspace, folder: &Path, kit: &Kit) -> Result<()> {
    let (what, programs) = kit.build();
    shell::run_to_stderr(&mut workspace.cargo(&format!(
        "build {what} --bin mlxcel-compile --bin mlxcel-run --bin mlxcel-bench --example random-weights"
    )))?;
    let programs = workspace.target()?.join(programs);
    clear(folder)?;
    fs::create_dir_all(folder.join("bundles")).with_context(|| folder.display().to_string())?;
    if let Some(config) = kit.config {
        let model = folder.join(kit.source());
        fs::create_dir_all(&model).with_context(|| model.display().to_string())?;
        write(&model.join("config.json"), config)?;
    }
    let cases = compile_all(workspace, &programs.join("mlxcel-compile"), folder, kit)?;
    write(&folder.join("cases.txt"), &cases)?;
    let predictions = predictions::read(&workspace.root)?;
    write_predictions(&folder.join("predictions"), &predictions)?;
    for name in ["mlxcel-run", "mlxcel-bench", "examples/random-weights"] {
        let from = programs.join(name);
        let to = folder.join(Path::new(name).file_name().unwrap_or(name.as_ref()));
        fs::copy(&from, &to).with_context(|| to.display().to_string())?;
    }
    write_scripts(folder, kit, PROMPT, &predictions)?;
    eprintln!("{} cases, {:.1} MiB", cases.lines().count() + 1, size(folder)? as f64 / f64::from(1 << 20));
    Ok(())
}

/// Compiles the bundles of a folder. Returns the lines of the cases.
fn compile_all(workspace: &Workspace, compiler: &Path, folder: &Path, kit: &Kit) -> Result<String> {
    let compile = |name: &str, arguments: &[&str], targets: &str| {
        let mut command = workspace.command(compiler);
        let bundle = folder.join("bundles").join(name);
        shell::run_to_stderr(command.args(arguments).args(["--target", targets, "--out"]).arg(bundle))
    };
    let mut cases = String::new();
    // The CPU's code is a baseline to compare with.
    let cpu = if cfg!(target_arch = "aarch64") { "cpu-aarch64" } else { "cpu-x86-64-v3" };
    let both = format!("cuda,{cpu}");
    let mut add = |case: &str, name: &str, targets: &str| {
        let model = format!("models/{case}");
        let (quant, near) = if case.ends_with(IN_4_BITS) { ("q4", NEAR) } else { ("none", 0.0) };
        compile(name, &["--model", &model, "--precision", "f32", "--quant", quant], targets)?;
        let expected = read(&workspace.root.join(&model).join("expected.json"))?;
        cases += &cases_of(name, &expected, near, kit)?;
        anyhow::Ok(())
    };
    for case in kit.cases {
        add(case, name_of(case), &both)?;
    }
    for case in kit.overlapped {
        add(case, &overlapped(name_of(case)), OVERLAPPED)?;
    }
    let source = folder.join(kit.source());
    let source = if kit.config.is_some() { source.to_string_lossy() } else { kit.model.into() };
    for (variant, options) in VARIANTS {
        let arguments = [&["--model", &*source, "--weights", "none"], &options[..]].concat();
        let name = format!("{}-{variant}", kit.model);
        // A rehearsal has the CPU's answer to one variant alone, as a check has.
        let targets = if kit.is_rehearsal && variant != "f32" { "cuda" } else { &*both };
        compile(&name, &arguments, targets)?;
        compile(&overlapped(&name), &arguments, OVERLAPPED)?;
    }
    Ok(cases)
}

/// Removes what an earlier version left: a bundle that has no case any more would be carried along, and results would be those of
/// other code. The script goes first, so that a folder that is not complete has none.
pub(super) fn clear(folder: &Path) -> Result<()> {
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
    let rest = ["cases.txt", "bundles", "model", "predictions", "results"];
    SCRIPTS.iter().map(|(name, _)| *name).chain(rest).try_for_each(remove)
}

/// Writes the scripts. `run.sh` comes last, and is what can be started.
pub(super) fn write_scripts(
    folder: &Path,
    kit: &Kit,
    prompt: &str,
    predictions: &[Prediction],
) -> Result<()> {
    for (name, text) in PYTHON {
        write(&folder.join(name), text)?;
    }
    for (name, text) in SCRIPTS.iter().rev() {
        write(&folder.join(name), &filled(text, kit, prompt, predictions))?;
    }
    let script = folder.join(SCRIPTS[0].0);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
        .with_context(|| script.display().to_string())
}

/// Returns a script for a kit, with a prompt for the model of full shape.
pub(super) fn filled(script: &str, kit: &Kit, prompt: &str, predictions: &[Prediction]) -> String {
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
    let places = [
        ("@SEED@", SEED.to_string()),
        ("@PROMPT@", prompt.to_owned()),
        ("@FULL@", VARIANTS.map(measure).join("\n  ")),
        ("@MODEL@", kit.model.to_owned()),
        ("@SOURCE@", kit.source().to_owned()),
        ("@SECONDS@", kit.seconds.to_string()),
        ("@DISK_MIB@", kit.disk_mib.to_string()),
        ("@GPU_MIB@", kit.gpu_mib.to_string()),
        ("@REHEARSAL@", if kit.is_rehearsal { "yes" } else { "" }.to_owned()),
    ];
    places.iter().fold(script.to_owned(), |text, (place, value)| text.replace(place, value))
}

/// Writes what kernels of each variant should take, for the script and for whoever reads its results.
pub(super) fn write_predictions(folder: &Path, predictions: &[Prediction]) -> Result<()> {
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

/// Returns a line for each case of a kit: bundle, prompt ids and expected ids, up to where the best two logits are nearer than
/// `near`. Reads the formats of the demo and of the oracle.
pub(super) fn cases_of(bundle: &str, expected: &str, near: f64, kit: &Kit) -> Result<String> {
    let json: Value = serde_json::from_str(expected).with_context(|| format!("expected.json of {bundle}"))?;
    let cases = json.get("cases").or_else(|| json.get("prompts")).and_then(Value::as_array);
    let mut lines = String::new();
    for case in cases.into_iter().flatten().take(kit.prompts) {
        let prompt = ids(case.get("prompt_tokens").or_else(|| case.get("prompt")));
        let (Some(prompt), Some(tokens)) = (prompt, ids(case.get("tokens"))) else {
            bail!("expected.json of {bundle}: found a case without prompt or tokens, expected both");
        };
        let best = case.get("best").and_then(Value::as_array);
        let first = best.and_then(|steps| steps.iter().position(|best| gap(best) < near));
        let tokens = &tokens[..first.unwrap_or(tokens.len()).min(kit.tokens)];
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

pub(super) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

pub(super) fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
