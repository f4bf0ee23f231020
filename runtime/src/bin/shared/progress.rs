//! Progress bars, for every program.

use std::io::{self, IsTerminal as _};

use indicatif::{ProgressBar, ProgressStyle};

/// Makes a progress bar of a known length or without one, which is hidden unless stderr is a terminal.
pub(crate) fn bar(length: Option<u64>, template: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    let style = ProgressStyle::with_template(template);
    style.map_or(bar.clone(), |style| bar.with_style(style))
}
