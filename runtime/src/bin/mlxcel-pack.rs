//! `mlxcel-pack`: packs a bundle's weights for this machine, so that no start has to. The target's name goes to stdout.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use mlxcel_artifacts::{Bundle, Cancel, INTERRUPTED, report};
use mlxcel_runtime::{DeviceSpec, Error, LoadOptions, Weights, pack};

/// Pack a bundle's weights for this machine, once for every later start.
#[derive(Parser)]
#[command(name = "mlxcel-pack", version)]
struct Cli {
    /// The bundle's folder; the packed weights go into it
    bundle: PathBuf,
    /// The checkpoint's folder [default: the weights in the bundle]
    #[arg(long, value_name = "FOLDER")]
    weights: Option<PathBuf>,
    /// Pack for what runs on this: auto, local-task, local-sync, cuda or vulkan, or the second one as cuda:1
    #[arg(long, default_value = "auto")]
    device: DeviceSpec,
    /// Threads of the CPU [default: one for each physical core]
    #[arg(short, long, value_name = "N")]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let cancel = Cancel::on_signals();
    match run(&Cli::parse(), &cancel) {
        Ok(target) => match writeln!(io::stdout(), "{target}") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                _ = writeln!(io::stderr(), "error: cannot write the target's name to stdout: {error}");
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        },
        Err(_) if cancel.is_cancelled() => {
            _ = writeln!(io::stderr(), "interrupted; the bundle is as it was");
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            // Nothing is left to tell it to when stderr is gone.
            _ = writeln!(io::stderr(), "{}", report(&error));
            ExitCode::FAILURE
        }
    }
}

/// Packs, and gives the name of the target it was done for.
fn run(cli: &Cli, cancel: &Cancel) -> Result<String, Error> {
    let bundle = Bundle::open_without_weights(&cli.bundle)?;
    let weights = cli.weights.as_deref().map(Weights::in_folder).transpose()?;
    let options = LoadOptions { device: cli.device, threads: cli.threads, context: None };
    let bar = bar();
    let done = pack(bundle, weights, &options, cancel, &mut |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    done.map(|(target, _)| target)
}

/// Shown on a terminal alone.
fn bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0).with_message("packing");
    let style = ProgressStyle::with_template("{msg} {bar:30} {bytes} of {total_bytes}");
    style.map_or(bar.clone(), |style| bar.with_style(style))
}
