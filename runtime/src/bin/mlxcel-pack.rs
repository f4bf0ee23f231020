//! `mlxcel-pack`: packs a bundle's weights for this machine, so that no start has to. The target's name goes to stdout.

#[path = "shared/whole.rs"]
mod whole;

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};

use clap::Parser;
use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};
use mlxcel_artifacts::{Bundle, Cancel, INTERRUPTED, report};
use mlxcel_runtime::{DeviceSpec, Error, LoadOptions, Weights, pack};

use crate::whole::whole;

/// Pack a bundle's weights for this machine, once for every later start.
#[derive(Parser)]
#[command(name = "mlxcel-pack", version)]
struct Cli {
    /// The bundle's folder; the packed weights go into it
    bundle: PathBuf,
    /// The checkpoint's folder, or a safetensors file [default: the weights in the bundle]
    #[arg(long, value_name = "PATH")]
    weights: Option<PathBuf>,
    /// Pack for what runs on this: auto, local-task, local-sync, cuda or vulkan, or the second one as cuda:1
    #[arg(long, default_value = "auto")]
    device: DeviceSpec,
    /// Threads of the CPU [default: one for each physical core]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser =
        whole::<usize>(1..=u64::MAX, "leave it out for one thread for each physical core"))]
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
    let weights = cli.weights.as_deref().map(Weights::at).transpose()?;
    let options = LoadOptions { device: cli.device, threads: cli.threads, context: None };
    let (bar, start) = (bar(), Instant::now());
    let mut bytes = 0;
    let done = pack(bundle, weights, &options, cancel, &mut |done, total| {
        bytes = total as u64;
        bar.set_length(bytes);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let (target, _) = done?;
    let took = start.elapsed().as_secs_f64();
    _ = writeln!(io::stderr(), "{target}: packed in {took:.1} s, {}", BinaryBytes(bytes));
    Ok(target)
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
