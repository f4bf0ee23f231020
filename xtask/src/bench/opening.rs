//! `cargo xtask opening`: measures what verifying and opening a bundle cost, beside reading it.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use super::stats::{at_least_one, spread};
use crate::{shell, toolchain::setup::setup_for_build, workspace::Workspace};

/// The size of the largest tokenizers of models of this size.
const TOKENIZER_BYTES: usize = 17 << 20;

/// The options of `cargo xtask opening`.
#[derive(Args)]
pub(crate) struct Opening {
    /// The preset whose shape the random weights have
    #[arg(long, default_value = "llama-3.2-1b")]
    model: String,
    /// How often each measurement is repeated
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = at_least_one())]
    repeats: usize,
}

/// Makes the bundle, measures, and prints the table.
pub(crate) fn opening(workspace: &Workspace, opening: &Opening) -> Result<()> {
    setup_for_build(workspace)?;
    shell::run_to_stderr(&mut workspace.cargo(
        "build --release -p mlxcel-compiler-driver -p mlxcel-runtime -p mlxcel-artifacts --bins --example opening",
    ))?;
    let bundle = bundle(workspace, opening)?;
    // The store does not remember verified files that were just written.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let mut command: Command = workspace.command(workspace.release_binary("examples/opening")?);
    let text = shell::output(command.arg(&bundle).arg(opening.repeats.to_string()))?;
    let times = times(&text, opening.repeats).with_context(|| shell::command_line(&command))?;
    shell::print(&table(&times))
}

/// The times of five steps in milliseconds.
type Times = [f64; 5];

/// What a column of the table is made of.
type Column = fn(&Times) -> f64;

/// Reads a line for each repeat.
fn times(text: &str, repeats: usize) -> Result<Vec<Times>> {
    let of = |line: &str| -> Result<Times> {
        let numbers: Result<Vec<f64>, _> = line.split(' ').map(str::parse).collect();
        let numbers: Option<Times> = numbers.ok().and_then(|numbers| numbers.try_into().ok());
        numbers.with_context(|| format!("found the line {line:?}, expected five times"))
    };
    let times = text.lines().map(of).collect::<Result<Vec<_>>>()?;
    ensure!(times.len() == repeats, "found {} lines, expected {repeats}", times.len());
    Ok(times)
}

/// Formats at least one repeat as a table.
fn table(times: &[Times]) -> String {
    // A plain read has one thread, and verifying one for each CPU, so that it can be the quicker one.
    let columns: [(&str, Column); 7] = [
        ("read from the disk with one thread, ms", |times| times[0]),
        ("verify from the disk, ms", |times| times[1]),
        ("verify / read with one thread", |times| times[1] / times[0]),
        ("read from the cache with one thread, ms", |times| times[2]),
        ("verify from the cache, ms", |times| times[3]),
        ("verify / read with one thread", |times| times[3] / times[2]),
        ("open a verified one, ms", |times| times[4]),
    ];
    let rows = columns.map(|(head, column)| {
        let [low, median, high] = spread(times.iter().map(column).collect());
        [head.to_owned(), format!("{median:.2}"), format!("{low:.2} to {high:.2}")]
    });
    shell::markdown_table(["", "median", "lowest to highest"], rows.to_vec())
}

/// Compiles the preset with random weights and a tokenizer of realistic size.
fn bundle(workspace: &Workspace, opening: &Opening) -> Result<PathBuf> {
    let folder = workspace.root.join("target/opening").join(&opening.model);
    let write = || {
        fs::create_dir_all(&folder)?;
        let preset = workspace.root.join("models/presets").join(format!("{}.json", opening.model));
        fs::copy(preset, folder.join("config.json"))?;
        fs::write(
            folder.join("tokenizer.json"),
            format!("{{\"padding\": \"{}\"}}", "x".repeat(TOKENIZER_BYTES)),
        )
    };
    write().with_context(|| folder.display().to_string())?;
    let bundle = folder.join("bundle");
    let mut build = workspace.command(workspace.release_binary("mlxcel-compile")?);
    build.arg("--model").arg(&folder).args([
        "--target",
        "cpu",
        "--weights",
        "random:0",
        "--precision",
        "bf16",
    ]);
    shell::run_to_stderr(build.arg("--out").arg(&bundle))?;
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_left_out() {
        let times = |text, repeats| super::times(text, repeats).map_err(|error| error.to_string());
        let found = times("8.00 4.00 2.00 1.00 0.50\n8.00 2.00 2.00 3.00 0.70\n", 2).unwrap();
        assert_eq!(found, [[8.0, 4.0, 2.0, 1.0, 0.5], [8.0, 2.0, 2.0, 3.0, 0.7]]);
        let table = table(&found);
        assert!(
            table.contains("| verify / read with one thread            | 0.38    | 0.25 to 0.50 |"),
            "{table}"
        );
        for line in ["1 2 3 4", "1 2 3 4 x", "1 2 3 4 5 6"] {
            let expected = format!("found the line {line:?}, expected five times");
            assert_eq!(times(line, 1).unwrap_err(), expected);
        }
        assert_eq!(times("", 1).unwrap_err(), "found 0 lines, expected 1");
    }
}
