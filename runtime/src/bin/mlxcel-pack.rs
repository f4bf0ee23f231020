//! `mlxcel-pack`: packs a bundle's weights for this machine, so that no start has to. The target's name goes to stdout.

#[path = "shared/integer.rs"]
mod integer;
#[path = "shared/origin.rs"]
mod origin;

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, Result};
use clap::Parser;
use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};
use mlxcel_artifacts::{Bundle, Cancel, INTERRUPTED, report};
use mlxcel_runtime::{DeviceSpec, LoadOptions, Weights, pack};

use crate::{integer::integer, origin::Origin};

/// Pack a bundle's weights for this machine, once for every later start.
///
/// Packing runs code of the bundle and changes it. A signed bundle is not changed any more, so that --require-signature
/// leaves those to be packed that were compiled on this machine.
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
        integer::<usize>(1..=u64::MAX, "leave it out for one thread for each physical core"))]
    threads: Option<usize>,
    #[command(flatten)]
    origin: Origin,
}

/// Why a bundle would have to be signed.
const NOT_FROM_HERE: &str = "the bundle was not compiled here, and its code may run only if it is signed\n\
    hint: get it packed: whoever made it packs it before signing";

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
            _ = writeln!(io::stderr(), "{}", report(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Packs, and gives the name of the target it was done for.
fn run(cli: &Cli, cancel: &Cancel) -> Result<String> {
    let bundle = Bundle::open_without_weights(&cli.bundle)?;
    // What was compiled here is packed before its owner can sign it.
    if !bundle.is_from_here() {
        cli.origin.check(&bundle).context(NOT_FROM_HERE)?;
    }
    let weights = cli.weights.as_deref().map(Weights::open).transpose()?;
    let options = LoadOptions { device: cli.device, threads: cli.threads, context: None };
    cli.origin.note(&bundle)?;
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
