//! How fast bundles of quantized checkpoints are packed and start, beside one that quantizes by itself: all of one shape.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::tools::{Bench, Tool};
use crate::{
    bench::{
        llama_cpp,
        pairs::{QUANTIZE, Weights, random_checkpoint, remove},
        record::recorded,
        stats::{Output, spread},
    },
    files::copy_folder,
    shell,
};

const MODEL: &str = "llama-3.2-1b";
const CONTEXT: usize = 4096;

/// The file of the measurements.
const RECORD: &str = "measured-start.jsonl";

/// A checkpoint, and its bundles.
struct Candidate {
    name: &'static str,
    checkpoint: PathBuf,
    stored_bytes: u64,
    /// A bundle with packed weights.
    packed: PathBuf,
    /// One without weights.
    bare: PathBuf,
}

/// What is measured of all checkpoints in a repeat.
#[derive(Serialize)]
struct Row {
    checkpoint: &'static str,
    stored_bytes: u64,
    /// Seconds of a process that packs the checkpoint.
    pack_s: f64,
    /// Seconds of a process that reads one token and generates one.
    start_s: f64,
}

/// Measures, and prints the result.
pub(super) fn measure(bench: &Bench<'_>, repeats: usize, output: Output) -> Result<()> {
    let candidates = candidates(bench)?;
    for candidate in &candidates {
        // It fills the page cache.
        candidate.start(bench)?;
    }
    recorded(
        &bench.folder.join(RECORD),
        |record| {
            for repeat in 1..=repeats {
                eprintln!("{repeat} of {repeats}");
                for candidate in &candidates {
                    let &Candidate { name, stored_bytes, .. } = candidate;
                    let (pack_s, start_s) = (candidate.pack(bench)?, candidate.start(bench)?);
                    record.push(Row { checkpoint: name, stored_bytes, pack_s, start_s })?;
                }
            }
            Ok(())
        },
        |rows| {
            shell::print(&match output {
                Output::Md => table(rows),
                Output::Json => format!("{:#}\n", serde_json::to_value(rows)?),
            })
        },
    )
}

/// Makes the checkpoints and their bundles. The first one is ours, which is not quantized.
fn candidates(bench: &Bench<'_>) -> Result<[Candidate; 3]> {
    let Bench { workspace, folder } = bench;
    let plain = random_checkpoint(workspace, folder, MODEL)?;
    let tools = llama_cpp::tools(workspace, folder, &[QUANTIZE])?;
    let weights = Weights { checkpoint: &plain, name: MODEL, folder, tools: &tools, context: CONTEXT };
    let gguf = weights.gguf(workspace, "Q4_K_M")?;
    let of_mlx = folder.join("start-mlx");
    let mlx = of_mlx.join("quantized");
    // Quantizing takes a while, and gives the same.
    if !mlx.join("config.json").exists() {
        bench.tool(Tool::Mlx, "mlx-4bit", [&plain, &of_mlx], None, |_| ())?;
    }
    let all = [("q4 of bf16", plain, "q4"), ("gguf-q4_k_m", gguf, "auto"), ("mlx-4bit", mlx, "auto")];
    let candidate = |(name, checkpoint, quant): (&'static str, PathBuf, &str)| -> Result<Candidate> {
        let context = CONTEXT.to_string();
        let options = ["--precision", "bf16", "--quant", quant, "--ctx-size", &context];
        let to = |what: &str| folder.join(format!("start-{}-{what}", name.replace(' ', "-")));
        let packed = bench.bundle(&checkpoint, to("packed"), &options)?;
        let bare = [options.as_slice(), &["--weights", "none"]].concat();
        let bare = bench.bundle(&checkpoint, to("bare"), &bare)?;
        Ok(Candidate { name, stored_bytes: size(&checkpoint)?, checkpoint, packed, bare })
    };
    let [ours, gguf, mlx] = all.map(candidate);
    Ok([ours?, gguf?, mlx?])
}

/// Returns the bytes of a file, or of the files of a folder.
fn size(path: &Path) -> Result<u64> {
    let size = || {
        if path.is_file() {
            return Ok(path.metadata()?.len());
        }
        fs::read_dir(path)?.map(|entry| Ok(entry?.metadata()?.len())).sum::<std::io::Result<u64>>()
    };
    size().with_context(|| path.display().to_string())
}

impl Candidate {
    /// Returns the seconds of a process that packs the checkpoint.
    fn pack(&self, bench: &Bench<'_>) -> Result<f64> {
        // Packing changes a bundle.
        let copy = bench.folder.join("start-copy");
        remove(&copy)?;
        copy_folder(&self.bare, &copy)?;
        let mut pack = bench.command("mlxcel-pack")?;
        pack.arg(&copy).arg("--weights").arg(&self.checkpoint).args(["--device", "local-task"]);
        let start = Instant::now();
        shell::output(&mut pack)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Returns the seconds of a process that generates one token after one, so that it computes as little as it can.
    fn start(&self, bench: &Bench<'_>) -> Result<f64> {
        let mut run = bench.command("mlxcel-run")?;
        run.arg(&self.packed).args(["--tokens", "1", "-n", "1", "--ignore-eos", "--json"]);
        run.args(["--device", "local-task"]);
        let start = Instant::now();
        shell::output(&mut run)?;
        Ok(start.elapsed().as_secs_f64())
    }
}

/// Formats at least one repeat as a table, with starts as a ratio to that of the first checkpoint in the same repeat.
fn table(rows: &[Row]) -> String {
    let head = ["checkpoint", "GB", "packs, s", "MB/s", "starts, s", "of the first", "lowest to highest"];
    let first: Vec<_> = rows.iter().filter(|row| row.checkpoint == rows[0].checkpoint).collect();
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.checkpoint) {
            names.push(row.checkpoint);
        }
    }
    let line = |name: &&str| {
        let of: Vec<_> = rows.iter().filter(|row| row.checkpoint == *name).collect();
        let middle = |value: fn(&Row) -> f64| spread(of.iter().map(|row| value(row)).collect())[1];
        #[expect(clippy::cast_precision_loss, reason = "bytes of a file")]
        let bytes = of[0].stored_bytes as f64;
        let (pack_s, start_s) = (middle(|row| row.pack_s), middle(|row| row.start_s));
        let ratios = of.iter().zip(&first).map(|(row, first)| row.start_s / first.start_s);
        let [low, ratio, high] = spread(ratios.collect());
        [
            (*name).to_owned(),
            format!("{:.2}", bytes / 1e9),
            format!("{pack_s:.2}"),
            format!("{:.0}", bytes / 1e6 / pack_s),
            format!("{start_s:.3}"),
            format!("{ratio:.2}"),
            format!("{low:.2} to {high:.2}"),
        ]
    };
    shell::markdown_table(head, names.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_beside_the_first_of_the_same_repeat() {
        let row =
            |checkpoint, pack_s, start_s| Row { checkpoint, stored_bytes: 800_000_000, pack_s, start_s };
        // The run ended before the last one was measured.
        let rows = [row("q4", 4.0, 0.2), row("mlx-4bit", 2.0, 0.3), row("q4", 5.0, 0.4)];
        insta::assert_snapshot!(table(&rows), @"
        | checkpoint  | GB    | packs, s  | MB/s  | starts, s  | of the first  | lowest to highest |
        |---          |---    |---        |---    |---         |---            |---|
        | q4          | 0.80  | 4.50      | 178   | 0.300      | 1.00          | 1.00 to 1.00 |
        | mlx-4bit    | 0.80  | 2.00      | 400   | 0.300      | 1.50          | 1.50 to 1.50 |
        ");
    }
}
