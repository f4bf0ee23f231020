//! Progress of a build on stderr: a line for each finished step and, on a terminal, a spinner.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use mlxcel_compiler_driver::Event;

const BAR: &str = "{msg:30} [{bar:24}] {bytes:>10} of {total_bytes:>10}  {binary_bytes_per_sec}, {eta} left";

/// Shows the events of a build.
#[derive(Default)]
pub(crate) struct ProgressView {
    /// A spinner, or the bar of a download.
    spinner: Option<ProgressBar>,
    /// The file that the bar is about.
    download: Option<String>,
    /// Labels of the compilations under way.
    compiling: Vec<String>,
}

impl ProgressView {
    /// Shows an event.
    pub(crate) fn show(&mut self, event: Event) {
        match event {
            Event::Warning(text) => self.print(&format!("warning: {text}")),
            Event::Emitted { bytes, took } => {
                self.print(&format!("emitted {} of MLIR in {}", size(bytes as u64), seconds(took)));
            }
            Event::Compiling { target } => {
                self.compiling.push(target);
                self.spin_compiling();
            }
            Event::Compiled { target, took, bytes } => {
                self.print(&format!("{target}: compiled in {}, {}", seconds(took), size(bytes)));
                self.compiling.retain(|other| *other != target);
                self.spin_compiling();
            }
            Event::Cached { target, bytes } => {
                self.print(&format!("{target}: from the store, {}", size(bytes)));
            }
            Event::Downloading { file, received, size } => self.show_download(&file, received, size),
            Event::Downloaded { file, bytes, took } => {
                self.print(&format!("{file}: downloaded in {}, {}", seconds(took), size(bytes)));
            }
            Event::Checking { file } => self.spin(format!("checking {file}")),
            Event::Fetched { model, commit, cached, downloaded } => {
                let short = commit.get(..12).unwrap_or(&commit);
                self.print(&format!(
                    "{model} at {short}: downloaded {downloaded} of {} files",
                    cached + downloaded
                ));
            }
            Event::Weights { file } => self.spin(format!("adding {file}")),
        }
    }

    /// Removes the spinner.
    pub(crate) fn clear(&mut self) {
        self.download = None;
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    fn print(&mut self, line: &str) {
        self.clear();
        _ = writeln!(io::stderr(), "{line}");
    }

    fn spin_compiling(&mut self) {
        if !self.compiling.is_empty() {
            self.spin(format!("compiling for {}", self.compiling.join(", ")));
        }
    }

    /// Moves the bar of a download. It begins where an earlier one stopped.
    fn show_download(&mut self, file: &str, received: u64, size: u64) {
        if self.download.as_deref() != Some(file) && io::stderr().is_terminal() {
            self.clear();
            let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(size).with_style(style).with_message(file.to_owned());
            bar.set_position(received);
            bar.reset_eta();
            bar.enable_steady_tick(Duration::from_millis(200));
            (self.spinner, self.download) = (Some(bar), Some(file.to_owned()));
        }
        if let (Some(bar), true) = (&self.spinner, self.download.is_some()) {
            bar.set_position(received);
        }
    }

    fn spin(&mut self, message: String) {
        self.clear();
        if io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
            let spinner = ProgressBar::new_spinner().with_message(message);
            let spinner = style.map_or(spinner.clone(), |style| spinner.with_style(style));
            spinner.enable_steady_tick(Duration::from_millis(100));
            self.spinner = Some(spinner);
        }
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

fn size(bytes: u64) -> String {
    let (kib, mib) = (bytes as f64 / 1024.0, bytes as f64 / f64::from(1 << 20));
    if mib >= 1.0 { format!("{mib:.1} MiB") } else { format!("{kib:.1} KiB") }
}
