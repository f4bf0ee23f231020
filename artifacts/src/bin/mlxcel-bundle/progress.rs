//! A progress bar for transfers, on stderr.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use mlxcel_artifacts::TransferEvent;

const BAR: &str = "{msg:30} [{bar:24}] {bytes:>10} of {total_bytes:>10}  {binary_bytes_per_sec}, {eta} left";

/// Runs `transfer` and shows its progress if stderr is a terminal.
pub(crate) fn with_progress<T>(transfer: impl FnOnce(&mut dyn FnMut(TransferEvent)) -> T) -> T {
    let bar = ProgressBar::no_length();
    bar.set_style(ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar()));
    let result = transfer(&mut |event| match event {
        TransferEvent::Started { what, bytes } => {
            bar.set_length(bytes);
            bar.set_position(0);
            bar.reset_elapsed();
            bar.set_message(what);
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        TransferEvent::Progress(bytes) => bar.set_position(bytes),
        TransferEvent::Retrying { problem } => bar.suspend(|| eprintln!("warning: retrying after {problem}")),
    });
    bar.finish_and_clear();
    result
}
