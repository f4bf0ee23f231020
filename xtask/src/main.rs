#![doc = include_str!("../README.md")]

mod bench;
mod check;
mod dist;
mod files;
mod models;
mod parallel;
mod shell;
mod tasks;
mod toolchain;
mod workspace;

use std::{ffi::OsString, io, path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{
    bench::{embeddings, opening, peers, programs, python, quantized, serving, sparse},
    check::{ci, conform, emulate, fuzz, goldens, gpu, lanes, presets, ptxas, ray, tidy},
    dist::{trial, wheel},
    toolchain::{doctor, setup},
    workspace::Workspace,
};

/// Tasks of the workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what builds and tests need
    Setup,
    /// List the parts of the toolchain, and the remedies for missing ones
    Doctor,
    /// Build the programs, compile the demo model for this CPU and generate text
    Demo(tasks::Demo),
    /// Run every test; arguments go to `cargo test`
    Test {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run one test program, without the tests that `cargo xtask test` runs beside it
    #[command(hide = true)]
    TestProgram {
        program: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run mlxcel-compile; see `cargo xtask compile --help`
    #[command(disable_help_flag = true)]
    Compile {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Compile every committed golden with the real iree-compile
    Goldens {
        /// Accept what the emitter emits now, first
        #[arg(long)]
        bless: bool,
    },
    /// Assemble every kernel for GPUs with the real ptxas, against the committed table
    Ptxas {
        /// Write the table
        #[arg(long)]
        bless: bool,
        /// Assemble, or bless, those kernels alone whose PTX has changed, and a sample, as CI does
        #[arg(long)]
        changed: bool,
    },
    /// Run StableHLO's own tests through the whole path, against the committed ledger
    Conform(conform::Conform),
    /// Run code for ARM and older x86-64 CPUs by qemu, and compare its answers
    Emulate(emulate::Emulate),
    /// Run a cluster of Ray on this machine in full, with nodes that are killed
    Ray(ray::Ray),
    /// List the supported model families and their presets
    Models(models::Models),
    /// Compile every preset, and print compile times and sizes
    Presets(presets::Presets),
    /// Check token equality on a GPU: on this machine, or on another one that has nothing installed
    GpuCheck(gpu::GpuCheck),
    /// Compare the speed with llama.cpp, on the same random weights
    Peers(peers::Peers),
    /// Compare quantized checkpoints with the tools that made them: divergence from exact weights, and memory
    Quantized(quantized::Quantized),
    /// Compare mlxcel-serve with llama-server under load, on the same weights
    Serving(serving::Serving),
    /// Compare the speed of embeddings with sentence-transformers, on the same texts
    Embeddings(embeddings::Embeddings),
    /// Compare the speed of a small program with JAX, PyTorch and MLX, on the same data
    Programs(programs::Programs),
    /// Measure what the Python package costs, beside mlxcel-bench on the same bundle
    Python(python::Python),
    /// Compare the speed of a mixture of experts with a dense model that has as many active weights
    Sparse(sparse::Sparse),
    /// Measure what verifying and opening a bundle costs, beside reading it
    Opening(opening::Opening),
    /// Make the files of a release: archives, a Debian package, the wheel, bundles, sums, signatures, an SBOM
    Dist(dist::Dist),
    /// Try the files of a release in a bare Debian 12, as root
    TryDist(trial::TryDist),
    /// Build the Python package as a wheel into target/wheels
    Wheel(wheel::Wheel),
    /// Fuzz every reader of untrusted input
    Fuzz(fuzz::Fuzz),
    /// Check the house rules that a machine can check
    Tidy {
        /// Write the generated tables of the READMEs instead of comparing them
        #[arg(long)]
        fix: bool,
    },
    /// Run everything that has to pass before a change is merged
    Ci,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.task, &Workspace::find()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task, workspace: &Workspace) -> Result<()> {
    match task {
        Task::Setup => setup::setup(workspace),
        Task::Doctor => doctor::doctor(workspace),
        Task::Demo(demo) => tasks::demo(workspace, &demo),
        Task::Test { arguments } => lanes::test(workspace, &arguments),
        Task::TestProgram { program, arguments } => lanes::run_program(&program, &arguments),
        Task::Compile { arguments } => tasks::compile(workspace, &arguments),
        Task::Goldens { bless } => goldens::goldens(workspace, goldens::Scope::All, bless),
        Task::Ptxas { bless, changed } => {
            let scope = if changed { goldens::Scope::Parts } else { goldens::Scope::All };
            ptxas::ptxas(workspace, scope, bless)
        }
        Task::Conform(options) => conform::conform(workspace, &options),
        Task::Emulate(options) => emulate::emulate(workspace, &options),
        Task::Ray(options) => ray::ray(workspace, &options),
        Task::Models(models) => models::models(workspace, &models),
        Task::Presets(presets) => presets::presets(workspace, &presets),
        Task::GpuCheck(check) => gpu::gpu_check(workspace, &check),
        Task::Peers(peers) => peers::peers(workspace, &peers),
        Task::Quantized(quantized) => quantized::quantized(workspace, &quantized),
        Task::Serving(serving) => serving::serving(workspace, &serving),
        Task::Embeddings(embeddings) => embeddings::embeddings(workspace, &embeddings),
        Task::Programs(programs) => programs::programs(workspace, &programs),
        Task::Python(options) => python::python(workspace, &options),
        Task::Sparse(sparse) => sparse::sparse(workspace, &sparse),
        Task::Opening(opening) => opening::opening(workspace, &opening),
        Task::Dist(options) => dist::dist(workspace, &options),
        Task::TryDist(options) => trial::try_dist(workspace, &options),
        Task::Wheel(wheel) => wheel::wheel(workspace, &wheel),
        Task::Fuzz(fuzz) => fuzz::fuzz(workspace, &fuzz),
        Task::Tidy { fix } => tidy::tidy(workspace, fix),
        Task::Ci => ci::ci(workspace),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }

    #[test]
    fn options_of_a_test_program_are_its_own() {
        let words = ["cargo xtask", "test-program", "a b/bundles-0", "--exact", "name", "--", "-h"];
        let parsed = super::Arguments::try_parse_from(words).unwrap();
        let super::Task::TestProgram { program, arguments } = parsed.task else { panic!("another task") };
        assert_eq!(program.to_str(), Some(words[2]));
        assert_eq!(arguments[..2], words[3..5]);
    }

    #[test]
    fn nothing_is_measured_zero_times() {
        for task in ["opening", "programs", "sparse", "peers", "python", "serving", "embeddings"] {
            let parse = |count: &str| {
                super::Arguments::try_parse_from(["cargo xtask", task, "--repeats", count]).map(drop)
            };
            assert!(parse("1").is_ok(), "{task}");
            let error = parse("0").unwrap_err().to_string();
            assert!(error.contains("invalid value '0' for '--repeats <N>'"), "{error}");
        }
    }
}
