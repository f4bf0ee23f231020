//! `cargo xtask programs`: compares a small program with JAX, PyTorch and MLX on the CPU, in turn, on the same data.
//!
//! The program is the emitter's example of logistic regression, which is MLX's: 1,000 examples of 100 features. What each of them
//! returns is compared, so that none is fast by doing something else.

mod cpus;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
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

const PACKAGES: [&str; 4] = ["jax==0.10.2", "torch==2.15.0", "mlx[cpu]==0.32.4", "numpy==2.4.6"];
const PEERS: &str = include_str!("peers.py");
/// The steps that the function `train` of the example takes.
const LOOP: usize = 10_000;
/// The seed of the examples.
const SEED: &str = "seed=0 1";
/// How far parameters may be from ours after all steps. Sums are taken in different orders.
const TOLERANCE: f64 = 1e-3;

/// The file of the measurements.
const RECORD: &str = "measured.jsonl";
/// The name of our program among those of a test.
const OURS: &str = "mlxcel";

/// What is measured: our function, and those that it is compared with.
const TESTS: [(&str, &str, &[&str]); 2] =
    [("step by step", "step", &["jax-step", "torch", "mlx"]), ("one loop", "train", &["jax-loop"])];

/// The options of `cargo xtask programs`.
#[derive(Args)]
pub(crate) struct Programs {
    /// How often each program is measured
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = at_least_one())]
    repeats: usize,
    /// Cores that each program may use. Ours uses fewer if the work is small
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = at_least_one())]
    threads: usize,
    /// The form of the result
    #[arg(short, long, value_enum, default_value = "md")]
    output: Output,
    /// The folder of the bundle, the data and the virtual environment [default: target/programs]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// What a run needs.
struct Bench<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
    python: PathBuf,
    run: PathBuf,
    threads: usize,
    /// The CPUs of every program, as `taskset` takes them.
    cpus: String,
}

/// The speed of a program in a repeat of a test.
#[derive(Serialize)]
struct Rate {
    test: &'static str,
    program: &'static str,
    steps_s: f64,
}

/// Makes the missing files, measures, and prints the result.
pub(crate) fn programs(workspace: &Workspace, programs: &Programs) -> Result<()> {
    let &Programs { repeats, output, .. } = programs;
    setup(workspace)?;
    shell::run_to_stderr(
        &mut workspace.cargo("build --release -p mlxcel-compiler-driver -p mlxcel-runtime --bins"),
    )?;
    let bench = Bench::prepare(workspace, programs)?;
    let measure = |record: &mut Record<Rate>| {
        for repeat in 1..=repeats {
            eprintln!("{repeat} of {repeats}");
            for (test, function, peers) in TESTS {
                record.push(Rate { test, program: OURS, steps_s: bench.ours(function)? })?;
                for &program in peers {
                    record.push(Rate { test, program, steps_s: bench.theirs(program)? })?;
                }
            }
        }
        Ok(())
    };
    recorded(&bench.folder.join(RECORD), measure, |rates| {
        let rows: Vec<_> = TESTS.into_iter().flat_map(|(test, _, peers)| rows(test, peers, rates)).collect();
        shell::print(&match output {
            Output::Md => table(&rows),
            Output::Json => format!("{:#}\n", Value::Array(rows.iter().map(Row::json).collect())),
        })
    })
}

impl<'a> Bench<'a> {
    /// Compiles the example, makes the data and installs the others.
    fn prepare(workspace: &'a Workspace, programs: &Programs) -> Result<Self> {
        let folder = match &programs.folder {
            Some(folder) => std::env::current_dir()?.join(folder),
            None => workspace.root.join("target/programs"),
        };
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        shell::output(workspace.command("taskset").arg("--version"))
            .context("found no taskset, expected one in PATH\nhint: apt-get install util-linux")?;
        let mut example = workspace.cargo("run --quiet -p mlxcel-emitter --example logistic_regression");
        let program = folder.join("logistic_regression.mlir");
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| path.display().to_string())
        };
        write("logistic_regression.mlir", &shell::output(&mut example)?)?;
        write("peers.py", PEERS)?;
        let mut compile = workspace.command(workspace.release_binary("mlxcel-compile")?);
        compile.arg(program).args(["--target", "cpu", "--out"]).arg(folder.join("bundle"));
        shell::run_to_stderr(&mut compile)?;
        let bench = Self {
            workspace,
            python: venv::python(workspace, &folder.join("venv"), Packages::Named(&PACKAGES))?,
            run: workspace.release_binary("mlxcel-run")?,
            threads: programs.threads,
            cpus: cpus::list(programs.threads)?,
            folder,
        };
        bench.call("data", &["--input", SEED, "--output", "@data.npz"])?;
        Ok(bench)
    }

    /// Returns a command that runs a program on as many cores as it may have threads.
    fn command(&self, program: &Path) -> Command {
        let mut command = self.workspace.command("taskset");
        command.args(["--cpu-list", &self.cpus]).arg(program);
        command.current_dir(&self.folder);
        command
    }

    /// Calls a function, and returns the microseconds of a call.
    fn call(&self, function: &str, arguments: &[&str]) -> Result<f64> {
        let mut command = self.command(&self.run);
        command.args(["bundle", "--function", function]).args(arguments);
        let (_, told) = shell::outputs(&mut command)?;
        let micros =
            told.lines().find_map(|line| line.strip_suffix(" µs each")?.rsplit(' ').next()?.parse().ok());
        micros.with_context(|| {
            format!("{}: found no time of a call in:\n{told}", shell::command_line(&command))
        })
    }

    /// Returns our steps per second, and leaves the parameters in ours.npz.
    fn ours(&self, function: &str) -> Result<f64> {
        let steps = LOOP.to_string();
        let (calls, steps) = if function == "step" { (steps.as_str(), 1) } else { ("1", LOOP) };
        let inputs = ["--input", "@data.npz", "--output", "@ours.npz", "--repeat", calls];
        Ok(1e6 * steps as f64 / self.call(function, &inputs)?)
    }

    /// Returns the steps per second of another program, whose parameters must be ours.
    fn theirs(&self, peer: &str) -> Result<f64> {
        let mut command = self.command(&self.python);
        command.args([
            "peers.py",
            peer,
            "data.npz",
            &LOOP.to_string(),
            &self.threads.to_string(),
            "ours.npz",
        ]);
        // Libraries start threads of their own.
        command.env("OMP_NUM_THREADS", self.threads.to_string());
        let text = shell::output(&mut command)?;
        let row: Value = serde_json::from_str(text.trim()).with_context(|| shell::command_line(&command))?;
        let difference = number(&row, "difference")?;
        // Not `difference > TOLERANCE`, which is false for NaN.
        let is_close = difference <= TOLERANCE;
        ensure!(
            is_close,
            "{peer}: found parameters that differ by {difference:e} of the largest, expected {TOLERANCE:e}"
        );
        Ok(LOOP as f64 / number(&row, "seconds")?)
    }
}

/// A test beside another program.
struct Row {
    test: &'static str,
    beside: &'static str,
    /// Steps per second, the medians.
    ours: f64,
    theirs: f64,
    /// How many times faster ours is: lowest, median and highest of the repeats.
    ratio: [f64; 3],
}

impl Row {
    fn json(&self) -> Value {
        let Self { test, beside, ours, theirs, ratio: [low, ratio, high] } = self;
        json!({
            "test": test, "beside": beside, "ours_steps_s": ours, "theirs_steps_s": theirs,
            "ratio": ratio, "lowest_ratio": low, "highest_ratio": high,
        })
    }
}

/// Compares a test's programs with ours, those that were measured.
fn rows(test: &'static str, peers: &[&'static str], rates: &[Rate]) -> Vec<Row> {
    let all = |name: &str| -> Vec<f64> {
        let own = rates.iter().filter(|rate| rate.test == test && rate.program == name);
        own.map(|rate| rate.steps_s).collect()
    };
    let ours = all(OURS);
    let middle = |rates: &[f64]| median(&sorted(rates.iter().copied()));
    let of = |&beside: &&'static str| {
        let theirs = all(beside);
        let ratios: Vec<_> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
        (!ratios.is_empty()).then(|| Row {
            test,
            beside,
            ours: middle(&ours),
            theirs: middle(&theirs),
            ratio: spread(ratios),
        })
    };
    peers.iter().filter_map(of).collect()
}

fn table(rows: &[Row]) -> String {
    let head = ["test", "ours", "beside", "theirs", "unit", "ratio", "lowest to highest"];
    let row = |row: &Row| {
        let Row { test, beside, ours, theirs, ratio: [low, ratio, high] } = row;
        [
            (*test).to_owned(),
            format!("{ours:.0}"),
            (*beside).to_owned(),
            format!("{theirs:.0}"),
            "steps/s".to_owned(),
            format!("{ratio:.2}"),
            format!("{low:.2} to {high:.2}"),
        ]
    };
    shell::markdown_table(head, rows.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_neighboring_runs() {
        let (test, _, peers) = TESTS[0];
        let all = [
            (OURS, [300.0, 400.0, 100.0]),
            ("torch", [200.0, 200.0, 100.0]),
            ("jax-step", [100.0, 100.0, 100.0]),
        ];
        let of = |(program, rates): (_, [f64; 3])| rates.map(|steps_s| Rate { test, program, steps_s });
        let rates: Vec<_> = all.into_iter().flat_map(of).collect();
        // The run ended before mlx was measured.
        insta::assert_snapshot!(table(&rows(test, peers, &rates)), @"
        | test          | ours  | beside    | theirs  | unit     | ratio  | lowest to highest |
        |---            |---    |---        |---      |---       |---     |---|
        | step by step  | 300   | jax-step  | 100     | steps/s  | 3.00   | 1.00 to 4.00 |
        | step by step  | 300   | torch     | 200     | steps/s  | 1.50   | 1.00 to 2.00 |
        ");
        assert_eq!(rows(test, peers, &rates)[1].json()["ratio"], json!(1.5));
        assert!(rows("one loop", peers, &rates).is_empty());
    }
}
