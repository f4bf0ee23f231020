//! What a run has done so far.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::progress::bar;

/// The numbers of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Requests that got their answer.
    pub(super) answered: u64,
    /// Requests that got an error.
    pub(super) failed: u64,
    /// Requests whose answer was there.
    pub(super) skipped: u64,
    /// Tokens generated.
    pub(super) tokens: u64,
    /// True if Ctrl-C ended the run.
    pub(super) is_cancelled: bool,
}

/// A bar on stderr, which is hidden unless that is a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    /// Starts the bar of so many requests; `None` if they are not known.
    pub(super) fn start(count: Option<u64>) -> Self {
        let template = match count {
            Some(_) => "{bar:30} {pos} of {len} requests · {msg}",
            None => "{spinner} {pos} requests · {msg}",
        };
        Self { bar: bar(count, template), start: Instant::now() }
    }

    /// Shows the numbers so far, with tokens of answers that are not complete.
    pub(super) fn show(&self, totals: &Totals, running: u64) {
        if !self.bar.is_hidden() {
            let Totals { answered, failed, skipped, tokens, .. } = totals;
            self.bar.set_position(answered + failed + skipped);
            self.bar.set_message(rate(tokens + running, self.start.elapsed()));
        }
    }

    /// Removes the bar. Returns the time that it was there.
    pub(super) fn end(self) -> Duration {
        self.bar.finish_and_clear();
        self.start.elapsed()
    }
}

/// Renders the line at the end. `device` and `load` are of a model that was needed.
pub(super) fn summary(totals: &Totals, model: Option<(&str, Duration)>, took: Duration) -> String {
    let Totals { answered, failed, skipped, tokens, .. } = totals;
    let model = model.map(|(device, load)| format!("{device} · load {:.2} s · ", load.as_secs_f64()));
    let (model, s) = (model.unwrap_or_default(), if *tokens == 1 { "" } else { "s" });
    let (time, rate) = (took.as_secs_f64(), rate(*tokens, took));
    let hint =
        if *failed > 0 { "\nhint: the answer of a line that failed has the reason as `error`" } else { "" };
    format!(
        "{model}{answered} answered, {failed} failed, {skipped} skipped · {tokens} token{s} in {time:.2} s, {rate}{hint}"
    )
}

fn rate(tokens: u64, time: Duration) -> String {
    if time.is_zero() {
        return "- tok/s".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = tokens as f64 / time.as_secs_f64();
    format!("{rate:.1} tok/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_at_the_end() {
        let totals = Totals { answered: 3, failed: 1, skipped: 2, tokens: 96, is_cancelled: false };
        let model = Some(("scripted", Duration::from_millis(1500)));
        insta::assert_snapshot!(summary(&totals, model, Duration::from_secs(3)), @r"
        scripted · load 1.50 s · 3 answered, 1 failed, 2 skipped · 96 tokens in 3.00 s, 32.0 tok/s
        hint: the answer of a line that failed has the reason as `error`
        ");
        let skipped = Totals { skipped: 4, ..Totals::default() };
        insta::assert_snapshot!(summary(&skipped, None, Duration::ZERO), @"0 answered, 0 failed, 4 skipped · 0 tokens in 0.00 s, - tok/s");
    }
}
