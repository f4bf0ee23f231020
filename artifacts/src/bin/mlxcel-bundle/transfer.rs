//! Progress of uploads and downloads, on stderr.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use mlxcel_artifacts::TransferEvent;

const BAR: &str = "{msg:30} [{bar:24}] {bytes:>10} of {total_bytes:>10}  {binary_bytes_per_sec}, {eta} left";

/// Does `work`, and shows how it goes where somebody looks.
pub(crate) fn shown<T>(work: impl FnOnce(&mut dyn FnMut(TransferEvent)) -> T) -> T {
    let bar = ProgressBar::no_length();
    bar.set_style(ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar()));
    let done = work(&mut |moved| match moved {
        TransferEvent::File { what, bytes } => {
            bar.set_length(bytes);
            bar.set_position(0);
            bar.reset_elapsed();
            bar.set_message(what);
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        TransferEvent::Bytes(bytes) => bar.set_position(bytes),
        TransferEvent::Again { problem } => bar.suspend(|| eprintln!("warning: once more after {problem}")),
    });
    bar.finish_and_clear();
    done
}
