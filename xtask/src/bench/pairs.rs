//! The same weights for us and for llama.cpp.

use std::{
    fs,
    io::{ErrorKind, Read as _},
    path::{Path, PathBuf},
    process,
};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

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

/// Makes a checkpoint with the shape of a preset and random weights, if it is missing or of another preset. Returns its folder.
pub(super) fn random_checkpoint(workspace: &Workspace, folder: &Path, model: &str) -> Result<PathBuf> {
    let weights = folder.join(format!("{model}-random"));
    let preset = workspace.root.join("models/presets").join(format!("{model}.json"));
    // Where there is no such preset, mlxcel-compile says so.
    let stamp = Stamp::default().with(&fs::read(preset).unwrap_or_default()).text();
    make_atomically(&weights, &stamp, |to| {
        let mut make = workspace.command(workspace.release_binary("mlxcel-compile")?);
        make.args(["random-weights", "--model", model, "--seed", "0", "--out"]).arg(to);
        shell::run_to_stderr(&mut make)
    })?;
    Ok(weights)
}

impl Weights<'_> {
    /// Makes the missing files for the formats in `only`, or for all if it is empty.
    pub(super) fn pairs(&self, workspace: &Workspace, only: &[String]) -> Result<Vec<Pair>> {
        let Self { checkpoint, name, folder, tools: _, context } = self;
        let wanted = |format: &&Format| only.is_empty() || only.iter().any(|name| name == format.ours);
        let mut pairs = Vec::new();
        for &Format { ours, theirs, reads_gguf } in FORMATS.iter().filter(wanted) {
            let gguf = self.gguf(workspace, theirs)?;
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

    /// Makes llama.cpp's file of a type, if it is missing. Returns its path.
    pub(super) fn gguf(&self, workspace: &Workspace, theirs: &str) -> Result<PathBuf> {
        let Self { checkpoint, name, folder, tools, context: _ } = self;
        let bf16 = folder.join(format!("{name}-BF16.gguf"));
        let stamp = self.stamp(workspace)?;
        make_atomically(&bf16, &stamp, |to| {
            // Python imports from the script's folder first, so the script must not have the name of a module it imports.
            let script = folder.join("write_gguf.py");
            fs::write(&script, WRITE_GGUF).with_context(|| script.display().to_string())?;
            let python = llama_cpp::python(workspace, folder)?;
            shell::run_to_stderr(workspace.command(python).arg(script).arg(checkpoint).arg(to))
        })?;
        let gguf = folder.join(format!("{name}-{theirs}.gguf"));
        make_atomically(&gguf, &stamp, |to| {
            let mut quantize = workspace.command(tools.join(QUANTIZE));
            if theirs != MIXED {
                // All matrices have one format, embedding and head too.
                quantize.arg("--pure");
            }
            shell::run_to_stderr(quantize.arg(&bf16).arg(to).arg(theirs))
        })?;
        Ok(gguf)
    }

    /// Returns what the files of weights depend on: bundles are made of the checkpoint as it is now, and so must they be.
    fn stamp(&self, workspace: &Workspace) -> Result<String> {
        let Self { checkpoint, name: _, folder: _, tools: _, context: _ } = self;
        let mut stamp = Stamp::default().with(WRITE_GGUF.as_bytes());
        for version in llama_cpp::versions(workspace)? {
            stamp = stamp.with(version.as_bytes());
        }
        let config = checkpoint.join("config.json");
        stamp = stamp.with(&fs::read(&config).with_context(|| config.display().to_string())?);
        // A checkpoint may have no tokenizer.
        stamp = stamp.with(&fs::read(checkpoint.join("tokenizer.json")).unwrap_or_default());
        let weights = checkpoint.join("model.safetensors");
        Ok(stamp.with(&header(&weights).with_context(|| weights.display().to_string())?).text())
    }
}

/// Returns the header of a file of safetensors, with the time of the last change: its weights may be others under the same names.
fn header(file: &Path) -> Result<Vec<u8>> {
    let mut file = fs::File::open(file)?;
    let changed = file.metadata()?.modified()?.duration_since(std::time::UNIX_EPOCH)?;
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let mut header = changed.as_nanos().to_le_bytes().to_vec();
    file.take(u64::from_le_bytes(length)).read_to_end(&mut header)?;
    Ok(header)
}

/// What a file was made of.
#[derive(Default)]
struct Stamp(Sha256);

impl Stamp {
    /// Adds a part, with its length, so that parts do not run together.
    fn with(mut self, part: &[u8]) -> Self {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    fn text(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Makes a file or folder with an atomic rename, if it is missing or the stamp beside it is another one.
fn make_atomically(path: &Path, stamp: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".stamp");
    let beside = PathBuf::from(beside);
    if path.exists() && fs::read_to_string(&beside).is_ok_and(|found| found == stamp) {
        return Ok(());
    }
    // llama-quantize takes a file name that contains a type's name for the type. Two tasks may share the folder.
    let staged = path.with_file_name(format!("staged-{}.part", process::id()));
    let made = remove(&staged).and_then(|()| make(&staged));
    if made.is_err() {
        // The error of making it is the one to tell.
        _ = remove(&staged);
        return made;
    }
    // Without the stamp first, so that no stamp is beside what it does not describe.
    remove(&beside)?;
    remove(path)?;
    fs::rename(&staged, path).with_context(|| path.display().to_string())?;
    fs::write(&beside, stamp).with_context(|| beside.display().to_string())
}

/// Removes a file or a folder, if there is one.
pub(super) fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context(path.display().to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_again_when_what_it_is_made_of_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a-Q4_0.gguf");
        let make = |stamp: &str, text: &'static str| {
            let mut count = 0;
            make_atomically(&file, stamp, |to| {
                count += 1;
                if text.is_empty() {
                    fs::write(to, "a part")?;
                    bail!("no room");
                }
                Ok(fs::write(to, text)?)
            })
            .map(|()| (count, fs::read_to_string(&file).unwrap()))
        };
        // A file of an earlier version has no stamp.
        fs::write(&file, "old").unwrap();
        assert_eq!(make("1", "new").unwrap(), (1, "new".to_owned()));
        assert_eq!(make("1", "again").unwrap(), (0, "new".to_owned()));
        assert_eq!(make("2", "").unwrap_err().to_string(), "no room");
        // Nothing is left of what failed, and the stamp of the file is its own.
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["a-Q4_0.gguf", "a-Q4_0.gguf.stamp"]);
        assert_eq!(make("1", "again").unwrap(), (0, "new".to_owned()));
        assert_eq!(make("2", "newer").unwrap(), (1, "newer".to_owned()));
    }

    #[test]
    fn stamps_tell_parts_apart() {
        let of =
            |parts: [&str; 2]| parts.iter().fold(Stamp::default(), |s, part| s.with(part.as_bytes())).text();
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
        assert_eq!((of(["ab", "c"]), of(["ab", "c"]).len()), (of(["ab", "c"]), 64));
    }

    #[test]
    fn headers_end_where_tensors_begin() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("model.safetensors");
        fs::write(&file, [&2_u64.to_le_bytes()[..], b"{}weights"].concat()).unwrap();
        assert!(header(&file).unwrap().ends_with(b"{}") && header(&file).unwrap().len() == 18);
        assert!(header(&folder.path().join("none")).is_err());
    }
}
