//! `cargo xtask presets`: compiles every preset, and prints a row of the table after each.
//!
//! Bundle and store are in a temporary folder that is removed after every preset. So nothing comes from the store, and the
//! disk holds the files of one model at a time.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{models::preset_names, shell, tasks::build_compiler, workspace::Workspace};

/// The parameter count of each preset. A test of mlxcel-models keeps it true.
const PARAMETERS: &str = "models/tests/fixtures/parameters.txt";
const TARGETS: &str = "compiler-driver/targets";

/// The options of `cargo xtask presets`.
#[derive(Args)]
pub(crate) struct Presets {
    /// The targets, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "cpu,cuda")]
    target: Vec<String>,
    /// Only the presets with these names or parts of names, separated by commas
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<String>,
    /// An mlxcel-compile executable [default: the workspace's, built first]
    #[arg(long, value_name = "FILE")]
    compiler: Option<PathBuf>,
}

/// Compiles the presets one by one. Fails at the end if one of them failed.
pub(crate) fn presets(workspace: &Workspace, presets: &Presets) -> Result<()> {
    for target in &presets.target {
        if !workspace.root.join(TARGETS).join(format!("{target}.toml")).is_file() {
            bail!("found no {TARGETS}/{target}.toml, expected a file for each target");
        }
    }
    let names = chosen(preset_names(&workspace.root)?, &presets.only)?;
    let parameters = parameters(&workspace.root)?;
    let compiler = match &presets.compiler {
        Some(compiler) => std::env::current_dir()?.join(compiler),
        None => build_compiler(workspace)?,
    };
    let table = Table::of(&names, &presets.target);
    shell::print(&table.header(&presets.target))?;
    let mut failed = 0;
    for (index, name) in names.iter().enumerate() {
        eprintln!("{} of {}: {name}", index + 1, names.len());
        let result = compile(workspace, &compiler, name, &presets.target)?;
        failed += usize::from(result.is_err());
        let count = parameters.iter().find(|(preset, _)| preset == name).map_or("-", |(_, count)| count);
        shell::print(&table.row(name, count, &result))?;
    }
    if failed > 0 {
        let repeat = "hint: cargo xtask compile --model PRESET --weights none --target TARGET repeats one";
        bail!("{failed} of {} presets failed\n{repeat}", names.len());
    }
    Ok(())
}

/// Returns the presets that `parts` choose, or all if there are none. A whole name chooses only its preset.
fn chosen(names: Vec<String>, parts: &[String]) -> Result<Vec<String>> {
    let chooses = |part: &str, name: &str| {
        name == part || name.contains(part) && !names.iter().any(|other| other == part)
    };
    if let Some(part) = parts.iter().find(|part| !names.iter().any(|name| chooses(part, name))) {
        bail!("found no preset with `{part}` in its name, expected one\nhint: cargo xtask models");
    }
    let is_chosen = |name: &String| parts.is_empty() || parts.iter().any(|part| chooses(part, name));
    Ok(names.iter().filter(|name| is_chosen(name)).cloned().collect())
}

/// Compile time and size for each target, or the error.
type Outcome = Result<Vec<String>, String>;

/// Compiles one preset and removes its files.
fn compile(workspace: &Workspace, compiler: &Path, name: &str, targets: &[String]) -> Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("mlxcel-presets-").tempdir()?;
    let mut command = workspace.command(compiler);
    command.args(["--model", name, "--weights", "none", "--target", &targets.join(",")]);
    command.arg("--store").arg(folder.path().join("store")).arg("--out").arg(folder.path().join("bundle"));
    // A compiler that fails leaves its input in the temporary folder.
    command.env("TMPDIR", folder.path());
    let outcome = watch(&mut command, targets)?;
    folder.close()?;
    Ok(outcome)
}

/// A program that is ended when it is dropped, so that none runs on after an error.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, unless there was an error.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Runs mlxcel-compile, and copies its lines to stderr.
fn watch(command: &mut Command, targets: &[String]) -> Result<Outcome> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| shell::command_line(command))?;
    let mut running = Running(child);
    let mut lines = Vec::new();
    let parts = running.0.stderr.take().map(BufReader::new).into_iter().flat_map(|text| text.split(b'\n'));
    for line in parts {
        // Names of files need not be UTF-8.
        let line = String::from_utf8_lossy(&line?).into_owned();
        // Hints name files that are removed by then.
        if !line.starts_with("hint: ") {
            eprintln!("  {line}");
        }
        lines.push(line);
    }
    let status = running.0.wait()?;
    Ok(outcome(&lines, status.success(), targets)
        .map_err(|error| error.unwrap_or_else(|| status.to_string())))
}

/// Reads compile time and size of each target, or the error, from mlxcel-compile's lines.
fn outcome(lines: &[String], succeeded: bool, targets: &[String]) -> Result<Vec<String>, Option<String>> {
    if !succeeded {
        return Err(lines.iter().find_map(|line| line.strip_prefix("error: ")).map(str::to_owned));
    }
    let of = |target: &String| {
        let said = lines.iter().find_map(|line| line.strip_prefix(target)?.strip_prefix(": compiled in "));
        said.map(str::to_owned)
            .ok_or_else(|| Some(format!("found no line of mlxcel-compile for {target}, expected one")))
    };
    targets.iter().map(of).collect()
}

/// Reads the presets and their parameter counts.
fn parameters(root: &Path) -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(root.join(PARAMETERS)).context(PARAMETERS)?;
    let split = |line: &str| line.split_once(' ').map(|(name, count)| (name.to_owned(), count.to_owned()));
    Ok(text.lines().filter_map(split).collect())
}

/// The widths of the columns, fixed before the first row is known.
struct Table {
    name: usize,
    targets: Vec<usize>,
}

impl Table {
    /// The widest cell of a target.
    const CELL: &str = "1000.0 s, 1000.0 KiB";
    const COUNT: usize = "100000000000".len();

    fn of(names: &[String], targets: &[String]) -> Self {
        Self {
            name: names.iter().map(String::len).max().unwrap_or_default().max("preset".len()),
            targets: targets.iter().map(|target| target.len().max(Self::CELL.len())).collect(),
        }
    }

    fn header(&self, targets: &[String]) -> String {
        self.row("preset", "parameters", &Ok(targets.to_vec()))
    }

    fn row(&self, name: &str, count: &str, outcome: &Outcome) -> String {
        let cells = match outcome {
            Ok(cells) => {
                let padded = cells.iter().zip(&self.targets).map(|(cell, width)| format!("{cell:width$}"));
                padded.collect::<Vec<_>>().join("  ")
            }
            Err(reason) => format!("failed: {reason}"),
        };
        let line =
            format!("{name:width$}  {count:>digits$}  {cells}", width = self.name, digits = Self::COUNT);
        format!("{}\n", line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn presets_are_chosen_by_name() {
        let choose = |parts: &[&str]| {
            let parts: Vec<_> = parts.iter().map(|&part| part.to_owned()).collect();
            chosen(words("gpt2,gpt2-xl,olmo-2-1b,olmo-3-7b"), &parts).map(|names| names.join(","))
        };
        assert_eq!(choose(&[]).unwrap(), "gpt2,gpt2-xl,olmo-2-1b,olmo-3-7b");
        assert_eq!(choose(&["gpt2"]).unwrap(), "gpt2");
        assert_eq!(choose(&["olmo", "xl"]).unwrap(), "gpt2-xl,olmo-2-1b,olmo-3-7b");
        assert_eq!(
            choose(&["gpt2", "gpt4"]).unwrap_err().to_string(),
            "found no preset with `gpt4` in its name, expected one\nhint: cargo xtask models"
        );
    }

    #[test]
    fn times_and_sizes_are_read_from_the_compiler() {
        let lines: Vec<String> = [
            "warning: something",
            "emitted 367.6 KiB of MLIR in 0.1 s",
            "cpu packing: compiled in 3.0 s, 19.8 KiB",
            "cpu: compiled in 14.1 s, 409.5 KiB",
            "cuda: compiled in 20.5 s, 1.5 MiB",
        ]
        .map(str::to_owned)
        .to_vec();
        let found = outcome(&lines, true, &words("cuda,cpu"));
        assert_eq!(found.unwrap(), ["20.5 s, 1.5 MiB", "14.1 s, 409.5 KiB"]);
        let found = outcome(&lines, true, &words("cuda,vulkan"));
        assert_eq!(found.unwrap_err().unwrap(), "found no line of mlxcel-compile for vulkan, expected one");
        let lines = words("emitted,error: cannot emit x: y,hint: z");
        assert_eq!(outcome(&lines, false, &[]).unwrap_err().unwrap(), "cannot emit x: y");
        assert_eq!(outcome(&[], false, &[]), Err(None));
    }

    #[test]
    fn the_compiler_runs_to_its_end() {
        let run = |script: &str| {
            let mut command = Command::new("sh");
            watch(command.args(["-c", script]), &words("cpu")).unwrap()
        };
        assert_eq!(run("echo x; echo cpu: compiled in 1.0 s, 2.0 KiB >&2").unwrap(), ["1.0 s, 2.0 KiB"]);
        assert_eq!(run("echo error: no room >&2; exit 1").unwrap_err(), "no room");
        assert_eq!(run("kill -KILL $$").unwrap_err(), "signal: 9 (SIGKILL)");
        // Not UTF-8.
        let bytes = r"printf 'reading \377\ncpu: compiled in 1.0 s, 2.0 KiB\n' >&2";
        assert_eq!(run(bytes).unwrap(), ["1.0 s, 2.0 KiB"]);
    }

    #[test]
    fn a_program_does_not_outlive_its_watch() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = PathBuf::from(format!("/proc/{}", child.id()));
        assert!(process.exists());
        drop(Running(child));
        assert!(!process.exists());
    }

    #[test]
    fn rows_line_up() {
        let targets = words("cpu,cuda");
        let table = Table::of(&words("gpt2,smollm2-135m"), &targets);
        let rows = [
            table.header(&targets),
            table.row("gpt2", "124439808", &Ok(words("9.1 s; 0.4 MiB,11.0 s; 0.5 MiB"))),
            table.row("smollm2-135m", "134515008", &Err("no room".into())),
        ];
        insta::assert_snapshot!(rows.concat(), @r"
        preset          parameters  cpu                   cuda
        gpt2             124439808  9.1 s; 0.4 MiB        11.0 s; 0.5 MiB
        smollm2-135m     134515008  failed: no room
        ");
    }

    #[test]
    fn every_preset_has_parameters() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let with: Vec<_> = parameters(root).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(with, preset_names(root).unwrap());
    }
}
