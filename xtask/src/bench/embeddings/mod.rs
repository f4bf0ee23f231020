//! `cargo xtask embeddings`: compares the speed of embeddings with sentence-transformers, in turn, on the same texts.
//!
//! sentence-transformers is installed into a virtual environment, which takes several gigabytes. Later runs use it again.

mod sentences;

use std::{fs, path::PathBuf, time::Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    ratio::in_turn,
    record::{Record, recorded},
    stats::{Output, at_least_one, median, number, sorted, spread},
};
use crate::{
    shell,
    toolchain::{
        setup::setup,
        venv::{self, Packages},
    },
    workspace::Workspace,
};

const PACKAGES: [&str; 3] = ["sentence-transformers==6.2.0", "transformers==5.23.0", "torch==2.15.0"];
const EMBED: &str = include_str!("embed.py");
/// The texts of a batch of sentence-transformers, which is its default.
const BATCH: usize = 32;
/// The file of the measurements.
const RECORD: &str = "measured.jsonl";
/// What every difference of two elements has to be below.
const TOLERANCE: f32 = 1e-4;

/// The options of `cargo xtask embeddings`.
#[derive(Args)]
pub(crate) struct Embeddings {
    /// The encoder's checkpoint [default: all-MiniLM-L6-v2 of the toolchain]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Sentences to embed
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = at_least_one())]
    texts: usize,
    /// How often both are measured
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = at_least_one())]
    repeats: usize,
    /// Threads of both programs
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = at_least_one())]
    threads: usize,
    /// The form of the result
    #[arg(short, long, value_enum, default_value = "md")]
    output: Output,
    /// The folder of texts, bundles and the virtual environment [default: target/embeddings]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// What a run needs.
struct Bench {
    run: PathBuf,
    python: PathBuf,
    script: PathBuf,
    checkpoint: PathBuf,
    bundle: PathBuf,
    lines: PathBuf,
    vectors: PathBuf,
    record: PathBuf,
    texts: usize,
    threads: String,
}

/// The results of both programs in a repeat.
#[derive(Serialize)]
struct Pair {
    /// Texts per second.
    ours: f64,
    theirs: f64,
    largest_difference: f32,
}

/// Makes the missing files, measures, and prints the result.
pub(crate) fn embeddings(workspace: &Workspace, embeddings: &Embeddings) -> Result<()> {
    let &Embeddings { texts, repeats, threads, output, .. } = embeddings;
    setup(workspace)?;
    shell::run_to_stderr(
        &mut workspace.cargo("build --release -p mlxcel-compiler-driver -p mlxcel-runtime --bins"),
    )?;
    let bench = Bench::prepare(workspace, embeddings)?;
    let measure = |record: &mut Record<Pair>| {
        for repeat in 1..=repeats {
            eprintln!("{repeat} of {repeats}");
            let ((ours, found), (theirs, expected)) =
                in_turn(repeat, || bench.ours(workspace), || bench.theirs(workspace))?;
            let largest_difference = check(&found, &expected)?;
            let [ours, theirs] = [ours, theirs].map(|seconds| texts as f64 / seconds);
            record.push(Pair { ours, theirs, largest_difference })?;
        }
        Ok(())
    };
    recorded(&bench.record, measure, |pairs| {
        let measured = Measured(pairs);
        shell::print(&match output {
            Output::Md => measured.table(texts, threads),
            Output::Json => format!("{}\n", measured.json(texts, threads)),
        })
    })
}

impl Bench {
    /// Writes the texts, compiles the bundle and installs sentence-transformers.
    fn prepare(workspace: &Workspace, embeddings: &Embeddings) -> Result<Self> {
        let here = std::env::current_dir()?;
        let checkpoint = match &embeddings.model {
            Some(folder) => here.join(folder),
            None => workspace.toolchain.join("minilm"),
        };
        if !checkpoint.join("modules.json").is_file() {
            bail!(
                "found no modules.json in {}, expected a checkpoint of sentence-transformers\nhint: cargo xtask setup fetches the default one",
                checkpoint.display()
            );
        }
        let folder = match &embeddings.folder {
            Some(folder) => here.join(folder),
            None => workspace.root.join("target/embeddings"),
        };
        let (script, lines) = (folder.join("embed.py"), folder.join("lines.txt"));
        let write = || {
            fs::create_dir_all(&folder)?;
            fs::write(&script, EMBED)?;
            fs::write(&lines, sentences::sentences(embeddings.texts).join("\n"))
        };
        write().with_context(|| folder.display().to_string())?;
        let name = checkpoint.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bundle = folder.join(format!("{name}.bundle"));
        let mut compile = workspace.command(workspace.release_binary("mlxcel-compile")?);
        compile.arg("--model").arg(&checkpoint).args(["--target", "cpu", "--out"]).arg(&bundle);
        shell::run_to_stderr(&mut compile)?;
        Ok(Self {
            run: workspace.release_binary("mlxcel-run")?,
            python: venv::python(workspace, &folder.join("venv"), Packages::Named(&PACKAGES))?,
            script,
            checkpoint,
            bundle,
            lines,
            vectors: folder.join("vectors.f32"),
            record: folder.join(RECORD),
            texts: embeddings.texts,
            threads: embeddings.threads.to_string(),
        })
    }

    /// Returns the seconds of sentence-transformers, and its vectors one after the other.
    fn theirs(&self, workspace: &Workspace) -> Result<(f64, Vec<f32>)> {
        let mut command = workspace.command(&self.python);
        command.arg(&self.script).arg(&self.checkpoint).arg(&self.lines);
        command.args([BATCH.to_string().as_str(), &self.threads]).arg(&self.vectors);
        // Libraries beside PyTorch start threads of their own, tokenizers some of Rayon, and the checkpoint is a folder.
        command.env("OMP_NUM_THREADS", &self.threads).env("RAYON_NUM_THREADS", &self.threads);
        command.env("HF_HUB_OFFLINE", "1");
        let text = shell::output(&mut command)?;
        let row: Value = serde_json::from_str(text.trim()).with_context(|| shell::command_line(&command))?;
        let bytes = fs::read(&self.vectors).with_context(|| self.vectors.display().to_string())?;
        let (numbers, _) = bytes.as_chunks();
        Ok((number(&row, "seconds")?, numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()))
    }

    /// Returns the seconds of mlxcel-run without loading, and its vectors one after the other.
    fn ours(&self, workspace: &Workspace) -> Result<(f64, Vec<f32>)> {
        #[derive(Deserialize)]
        struct Line {
            embedding: Vec<f32>,
            timings: Timings,
        }
        #[derive(Deserialize)]
        struct Timings {
            load_ms: f64,
        }
        let mut command = workspace.command(&self.run);
        command.arg(&self.bundle).args(["--embed", "--json", "--device", "local-task", "-t", &self.threads]);
        command.arg("-f").arg(&self.lines).env("RAYON_NUM_THREADS", &self.threads);
        let start = Instant::now();
        let text = shell::output(&mut command)?;
        let wall = start.elapsed().as_secs_f64();
        let parsed = text.lines().map(serde_json::from_str::<Line>).collect::<Result<Vec<_>, _>>();
        let lines = parsed.with_context(|| shell::command_line(&command))?;
        ensure!(lines.len() == self.texts, "found {} vectors, expected {}", lines.len(), self.texts);
        let load = lines.first().map_or(0.0, |line| line.timings.load_ms / 1e3);
        Ok((wall - load, lines.into_iter().flat_map(|line| line.embedding).collect()))
    }
}

/// Returns the largest difference of two elements, which has to be small.
fn check(found: &[f32], expected: &[f32]) -> Result<f32> {
    let difference = largest_difference(found, expected)?;
    // Not `difference >= TOLERANCE`, which is false for NaN.
    let is_close = difference < TOLERANCE;
    ensure!(is_close, "found elements that differ by {difference:e}, expected less than {TOLERANCE:e}");
    Ok(difference)
}

/// Returns the largest difference of two elements; NaN if one is.
fn largest_difference(found: &[f32], expected: &[f32]) -> Result<f32> {
    let (count, wanted) = (found.len(), expected.len());
    ensure!(count == wanted, "found {count} elements, expected {wanted}, as sentence-transformers has");
    let differences = found.iter().zip(expected).map(|(x, y)| (x - y).abs());
    Ok(differences.fold(0.0, |most: f32, x| if most.is_nan() || x <= most { most } else { x }))
}

/// At least one repeat.
struct Measured<'a>(&'a [Pair]);

impl Measured<'_> {
    /// Returns the lowest, the median and the highest ratio of neighboring runs.
    fn ratio(&self) -> [f64; 3] {
        spread(self.0.iter().map(|pair| pair.ours / pair.theirs).collect())
    }

    fn medians(&self) -> [f64; 2] {
        let values: [fn(&Pair) -> f64; 2] = [|pair| pair.ours, |pair| pair.theirs];
        values.map(|value| median(&sorted(self.0.iter().map(value))))
    }

    /// Returns the largest difference of all repeats, of which none is NaN.
    fn largest_difference(&self) -> f32 {
        self.0.iter().map(|pair| pair.largest_difference).fold(0.0, f32::max)
    }

    fn table(&self, texts: usize, threads: usize) -> String {
        let ([ours, theirs], [low, ratio, high]) = (self.medians(), self.ratio());
        let head = [
            "texts",
            "threads",
            "ours",
            "sentence-transformers",
            "unit",
            "ratio",
            "lowest to highest",
            "largest difference",
        ];
        let row = [
            texts.to_string(),
            threads.to_string(),
            format!("{ours:.1}"),
            format!("{theirs:.1}"),
            "texts/s".to_owned(),
            format!("{ratio:.2}"),
            format!("{low:.2} to {high:.2}"),
            format!("{:.1e}", self.largest_difference()),
        ];
        shell::markdown_table(head, vec![row])
    }

    fn json(&self, texts: usize, threads: usize) -> Value {
        let ([ours, theirs], [low, ratio, high]) = (self.medians(), self.ratio());
        json!([{
            "texts": texts,
            "threads": threads,
            "batch": BATCH,
            "ours_texts_s": ours,
            "sentence_transformers_texts_s": theirs,
            "ratio": ratio,
            "lowest_ratio": low,
            "highest_ratio": high,
            "largest_difference": self.largest_difference(),
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_neighboring_runs() {
        let pairs = [(300.0, 200.0, 1e-7), (400.0, 200.0, 2e-7), (100.0, 100.0, 0.0)]
            .map(|(ours, theirs, largest_difference)| Pair { ours, theirs, largest_difference });
        let measured = Measured(&pairs);
        insta::assert_snapshot!(measured.table(2000, 2), @"
        | texts  | threads  | ours   | sentence-transformers  | unit     | ratio  | lowest to highest  | largest difference |
        |---     |---       |---     |---                     |---       |---     |---                 |---|
        | 2000   | 2        | 300.0  | 200.0                  | texts/s  | 1.50   | 1.00 to 2.00       | 2.0e-7 |
        ");
        assert_eq!(measured.json(2000, 2)[0]["ratio"], json!(1.5));
    }

    #[test]
    fn vectors_that_differ_or_are_no_numbers_are_refused() {
        assert_eq!(check(&[1.0, 2.0], &[1.0, 2.0]).unwrap(), 0.0);
        for wrong in [2.001, f32::NAN, f32::INFINITY] {
            let error = check(&[1.0, wrong], &[1.0, 2.0]).unwrap_err().to_string();
            assert!(error.starts_with("found elements that differ by "), "{error}");
            assert!(check(&[1.0, 2.0], &[1.0, wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_largest_difference_is_found() {
        assert_eq!(largest_difference(&[1.0, 2.0, 3.0], &[1.0, 2.5, 3.25]).unwrap(), 0.5);
        assert!(largest_difference(&[f32::NAN, 1.0], &[1.0, 1.0]).unwrap().is_nan());
        let error = largest_difference(&[1.0], &[1.0, 2.0]).unwrap_err().to_string();
        assert_eq!(error, "found 1 elements, expected 2, as sentence-transformers has");
    }
}
