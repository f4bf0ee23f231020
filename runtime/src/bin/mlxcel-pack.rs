//! `mlxcel-pack`: packs a bundle's weights for this machine. The target's name goes to stdout.

#[path = "shared/integer.rs"]
mod integer;
#[path = "shared/origin.rs"]
mod origin;
#[path = "shared/progress.rs"]
mod progress;

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, Result};
use clap::Parser;
use indicatif::BinaryBytes;
use mlxcel_artifacts::{Cancel, INTERRUPTED, parse_arguments, report};
use mlxcel_runtime::{Calibrate, DeviceSpec, LoadOptions, Weights, pack};

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
    /// Round weights by this text in UTF-8, so that the products of its tokens lose little. The bundle must be compiled with
    /// --calibrate. Repeating an interrupted run goes on where it ended
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
    /// Folder of the files that keep what --calibrate has collected, until packing is complete [default: a folder of their
    /// own beside the bundle]
    #[arg(long, value_name = "FOLDER", requires = "calibrate")]
    keep_in: Option<PathBuf>,
    #[command(flatten)]
    origin: Origin,
}

/// The context of an error of the signature.
const NOT_BUILT_HERE: &str = "the bundle was not compiled here, and its code may run only if it is signed\n\
    hint: ask its maker for a bundle that was packed before it was signed";

fn main() -> ExitCode {
    let cancel = Cancel::on_signals();
    match run(&parse_arguments::<Cli>(env::args_os()), &cancel) {
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

/// Reads the text to calibrate by.
fn read_text(path: &Path) -> Result<String> {
    let shown = path.display();
    let bytes = fs::read(path)
        .with_context(|| format!("cannot read {shown}\nhint: name a text file with --calibrate"))?;
    let not_text = || {
        format!(
            "{shown} is not UTF-8, expected a text\nhint: iconv -t UTF-8 converts texts in other encodings"
        )
    };
    String::from_utf8(bytes).with_context(not_text)
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
    let text = cli.calibrate.as_deref().map(read_text).transpose()?;
    let collecting = bar(Some(0), "calibrating {bar:30} {pos} of {len} calls");
    let mut collected = |done: usize, total: usize| {
        collecting.set_length(total as u64);
        collecting.set_position(done as u64);
    };
    let keep_in = cli.keep_in.clone();
    let calibrate = text.as_deref().map(|text| Calibrate { text, keep_in, progress: &mut collected });
    let (bar, start) = (bar(Some(0), "packing {bar:30} {bytes} of {total_bytes}"), Instant::now());
    let mut bytes = 0;
    let done = pack(bundle, weights, &options, calibrate, cancel, &mut |done, total| {
        bytes = total as u64;
        bar.set_length(bytes);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    collecting.finish_and_clear();
    let (target, _) = done?;
    let took = start.elapsed().as_secs_f64();
    _ = writeln!(io::stderr(), "{target}: packed in {took:.1} s, {}", BinaryBytes(bytes));
    Ok(target)
}
