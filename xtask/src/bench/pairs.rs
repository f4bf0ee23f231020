//! The same weights for us and for llama.cpp.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use super::llama_cpp;
use crate::{shell, workspace::Workspace};

const WRITE_GGUF: &str = include_str!("write_gguf.py");

/// A format of weights.
struct Format {
    ours: &'static str,
    /// The type of llama.cpp's file.
    theirs: &'static str,
    /// Whether we read llama.cpp's file too, and not the checkpoint.
    reads_gguf: bool,
}

/// Our own formats, then those of files that both read.
const FORMATS: [Format; 6] = [
    Format { ours: "bf16", theirs: "BF16", reads_gguf: false },
    Format { ours: "q8", theirs: "Q8_0", reads_gguf: false },
    Format { ours: "q4", theirs: "Q4_0", reads_gguf: false },
    Format { ours: "gguf-q4_0", theirs: "Q4_0", reads_gguf: true },
    Format { ours: "gguf-q4_k_m", theirs: "Q4_K_M", reads_gguf: true },
    Format { ours: "gguf-q8_0", theirs: "Q8_0", reads_gguf: true },
];

/// The type of files whose tensors have several types.
const MIXED: &str = "Q4_K_M";

/// The program of llama.cpp that quantizes.
pub(super) const QUANTIZE: &str = "llama-quantize";

/// The same weights in one format for both programs.
pub(super) struct Pair {
    pub(super) ours: &'static str,
    pub(super) theirs: &'static str,
    pub(super) bundle: PathBuf,
    pub(super) gguf: PathBuf,
}

/// A checkpoint, and what is made of it.
pub(super) struct Weights<'a> {
    /// The folder of the checkpoint.
    pub(super) checkpoint: &'a Path,
    /// The name of what is made.
    pub(super) name: &'a str,
    /// The folder of what is made.
    pub(super) folder: &'a Path,
    /// The folder of llama.cpp's programs.
    pub(super) tools: &'a Path,
    /// Tokens of context of bundles.
    pub(super) context: usize,
}

/// Refuses names of formats that do not exist.
pub(super) fn check_formats(names: &[String]) -> Result<()> {
    let unknown = names.iter().find(|name| FORMATS.iter().all(|format| format.ours != **name));
    let known: Vec<_> = FORMATS.iter().map(|format| format.ours).collect();
    match unknown {
        Some(name) => bail!("found the format `{name}`, expected one of {}", known.join(", ")),
        None => Ok(()),
    }
}

/// Makes a checkpoint with the shape of a preset and random weights, if it is missing. Returns its folder.
pub(super) fn random_checkpoint(workspace: &Workspace, folder: &Path, model: &str) -> Result<PathBuf> {
    let weights = folder.join(format!("{model}-random"));
    if !weights.exists() {
        let mut make = workspace.command(workspace.release_binary("mlxcel-compile")?);
        make.args(["random-weights", "--model", model, "--seed", "0", "--out"]).arg(&weights);
        shell::run_to_stderr(&mut make)?;
    }
    Ok(weights)
}

impl Weights<'_> {
    /// Makes the missing files for the formats in `only`, or for all if it is empty.
    pub(super) fn pairs(&self, workspace: &Workspace, only: &[String]) -> Result<Vec<Pair>> {
        let Self { checkpoint, name, folder, tools, context } = self;
        let bf16 = folder.join(format!("{name}-BF16.gguf"));
        make_atomically(&bf16, |to| {
            // Python imports from the script's folder first, so the script must not have the name of a module it imports.
            let script = folder.join("write_gguf.py");
            fs::write(&script, WRITE_GGUF).with_context(|| script.display().to_string())?;
            let python = llama_cpp::python(workspace, folder)?;
            shell::run_to_stderr(workspace.command(python).arg(script).arg(checkpoint).arg(to))
        })?;
        let wanted = |format: &&Format| only.is_empty() || only.iter().any(|name| name == format.ours);
        let mut pairs = Vec::new();
        for &Format { ours, theirs, reads_gguf } in FORMATS.iter().filter(wanted) {
            let gguf = folder.join(format!("{name}-{theirs}.gguf"));
            make_atomically(&gguf, |to| {
                let mut quantize = workspace.command(tools.join(QUANTIZE));
                if theirs != MIXED {
                    // All matrices have one format, embedding and head too.
                    quantize.arg("--pure");
                }
                shell::run_to_stderr(quantize.arg(&bf16).arg(to).arg(theirs))
            })?;
            // Compiling again is quick if nothing changed, and necessary otherwise.
            let bundle = folder.join(format!("{name}-{ours}"));
            let mut build = workspace.command(workspace.release_binary("mlxcel-compile")?);
            let model = if reads_gguf { &gguf } else { *checkpoint };
            build.arg("--model").arg(model).args(["--target", "cpu", "--precision", "bf16", "--out"]);
            build.arg(&bundle).args(["--ctx-size", &context.to_string()]);
            if !reads_gguf && ours != "bf16" {
                build.args(["--quant", ours]);
            }
            shell::run_to_stderr(&mut build)?;
            pairs.push(Pair { ours, theirs, bundle, gguf });
        }
        Ok(pairs)
    }
}

/// Makes `file` if it is missing, with an atomic rename.
fn make_atomically(file: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if file.exists() {
        return Ok(());
    }
    // llama-quantize takes a file name that contains a type's name for the type.
    let staged = file.with_file_name("staged.part");
    make(&staged)?;
    fs::rename(&staged, file).with_context(|| file.display().to_string())
}
