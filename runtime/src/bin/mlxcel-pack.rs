//! `mlxcel-pack`: packs a bundle's weights for this machine. The target's name goes to stdout.

#[path = "shared/integer.rs"]
mod integer;
#[path = "shared/origin.rs"]
mod origin;
#[path = "shared/progress.rs"]
mod progress;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, Result};
use clap::Parser;
use indicatif::BinaryBytes;
use mlxcel_artifacts::{Cancel, INTERRUPTED, report};
use mlxcel_runtime::{DeviceSpec, LoadOptions, Weights, pack};

use crate::{integer::integer, origin::Origin, progress::bar};

/// Pack a bundle's weights for this machine, once for all starts
///
/// Packing runs code of the bundle and adds a file to it, so a signed bundle cannot be packed. With --require-signature,
/// only bundles that were compiled on this machine are packed.
#[derive(Parser)]
#[command(name = "mlxcel-pack", version)]
struct Cli {
    /// Folder of the bundle, which receives the packed weights
    bundle: PathBuf,
    /// Checkpoint folder or safetensors file to pack [default: the bundle's weights]
    #[arg(long, value_name = "PATH")]
    weights: Option<PathBuf>,
    /// Device to pack for: auto, local-task, local-sync, cuda, cuda:1, vulkan or vulkan:1
    #[arg(long, default_value = "auto")]
    device: DeviceSpec,
    /// Number of threads of local-task [default: one for each physical core]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser =
        integer::<usize>(1..=u64::MAX, "leave it out for one thread for each physical core"))]
    threads: Option<usize>,
    #[command(flatten)]
    origin: Origin,
}

/// The context of an error of the signature.
const NOT_BUILT_HERE: &str = "the bundle was not compiled here, and its code may run only if it is signed\n\
    hint: ask its maker for a bundle that was packed before it was signed";

fn main() -> ExitCode {
    let cancel = Cancel::on_signals();
    match run(&Cli::parse(), &cancel) {
        Ok(target) => match writeln!(io::stdout(), "{target}") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                _ = writeln!(
                    io::stderr(),
                    "error: cannot write the target's name to stdout: {error}\nhint: df -h shows whether the disk it goes to is full"
                );
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        },
        Err(_) if cancel.is_cancelled() => {
            _ = writeln!(io::stderr(), "interrupted; the bundle is unchanged");
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            // If stderr is gone, there is nowhere to report the error.
            _ = writeln!(io::stderr(), "{}", report(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Packs the weights; returns the name of the target.
fn run(cli: &Cli, cancel: &Cancel) -> Result<String> {
    let bundle = cli.origin.open(&cli.bundle)?;
    // A bundle compiled here may be packed unsigned, because packing comes before signing.
    if !bundle.was_built_here() {
        cli.origin.check(&bundle).context(NOT_BUILT_HERE)?;
    }
    let weights = cli.weights.as_deref().map(Weights::open).transpose()?;
    let options = LoadOptions { device: cli.device, threads: cli.threads, ..LoadOptions::default() };
    cli.origin.note(&bundle)?;
    let (bar, start) = (bar(Some(0), "packing {bar:30} {bytes} of {total_bytes}"), Instant::now());
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
