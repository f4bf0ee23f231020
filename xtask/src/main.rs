//! The workspace's own tasks: `cargo xtask <task>`.
//!
//! This crate is thin. It installs what the others need, starts them with the toolchain in their environment, and checks
//! what only the workspace as a whole can be checked for. It depends on none of the other crates, and builds before
//! anything is installed.
//!
//! Start at [`parts::PARTS`], the list that `setup` and `doctor` share; [`ci`] is what has to pass.

mod apt;
mod check;
mod ci;
mod doctor;
mod fuzz;
mod goldens;
mod gpu_check;
mod invariants;
mod looks;
mod models;
mod opening;
mod parts;
mod peers;
mod presets;
mod readme;
mod setup;
mod shell;
mod sparse;
mod tasks;
mod tidy;
mod wheels;
mod workspace;

use std::{io, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Tasks of the workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install everything the build needs; does nothing when it is there.
    Setup,
    /// List every part of the toolchain and what to do about those that are missing.
    Doctor,
    /// Set up, build, compile the demo model for this CPU and let it write.
    Demo(tasks::Demo),
    /// Set up and run every test; arguments go to `cargo test`.
    Test {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Set up and run mlxcel-compile; see `cargo xtask compile --help`.
    #[command(disable_help_flag = true)]
    Compile {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Put every committed golden through the real iree-compile.
    Goldens {
        /// Take over what the emitter emits now, first.
        #[arg(long)]
        bless: bool,
    },
    /// List the families of models that are supported, and their presets.
    Models(models::Models),
    /// Compile every preset, and print what each took and how large it is.
    Presets(presets::Presets),
    /// Check on a GPU what only a GPU can show: this machine's, or another's that needs nothing installed.
    GpuCheck(gpu_check::GpuCheck),
    /// Measure this workspace and llama.cpp in turn on the same random weights, and print the ratios.
    Peers(peers::Peers),
    /// Measure a mixture of experts beside a dense model that reads as many weights for a token.
    Sparse(sparse::Sparse),
    /// Measure what verifying and opening a bundle cost, beside reading it.
    Opening(opening::Opening),
    /// Feed hostile bytes to everything that reads what may come from elsewhere.
    Fuzz(fuzz::Fuzz),
    /// Check the house rules that a machine can check.
    Tidy {
        /// Write the generated parts of README.md anew instead of comparing them.
        #[arg(long)]
        fix: bool,
    },
    /// Everything that has to pass before a change goes in.
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
        Task::Test { arguments } => tasks::test(workspace, &arguments),
        Task::Compile { arguments } => tasks::compile(workspace, &arguments),
        Task::Goldens { bless } => goldens::goldens(workspace, bless),
        Task::Models(models) => models::models(workspace, &models),
        Task::Presets(presets) => presets::presets(workspace, &presets),
        Task::GpuCheck(check) => gpu_check::gpu_check(workspace, &check),
        Task::Peers(peers) => peers::peers(workspace, &peers),
        Task::Sparse(sparse) => sparse::sparse(workspace, &sparse),
        Task::Opening(opening) => opening::opening(workspace, &opening),
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
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
