//! Cancellation of long work.

use std::{
    io::{self, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
    low_level,
};

/// The exit status of a program that Ctrl-C or a signal interrupted: 128 + SIGINT, as in shells.
pub const INTERRUPTED: u8 = 130;

/// A second signal within this time of the first is ignored.
const DEBOUNCE: Duration = Duration::from_secs(1);

/// A token that cancels long work, such as a build or a generation. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Creates a token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests cancellation.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Withdraws the request, for the next piece of work.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Returns whether cancellation was requested.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a token that SIGINT, SIGTERM and SIGHUP cancel. A later signal ends the program at once.
    ///
    /// Ignores a second signal right after the first: supervisors often send two, and cancelled work has files to
    /// remove. If no handler can be installed, the first signal ends the program.
    #[must_use]
    pub fn on_signals() -> Self {
        let cancel = Self::new();
        let token = cancel.clone();
        if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) {
            thread::spawn(move || {
                let mut first = Instant::now();
                for _ in signals.forever() {
                    if !token.is_cancelled() {
                        first = Instant::now();
                        token.cancel();
                    } else if first.elapsed() > DEBOUNCE {
                        low_level::exit(INTERRUPTED.into());
                    }
                }
            });
        }
        cancel
    }

    /// Returns the flag behind the token, for signal handlers.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Wraps a stream so that reads and writes fail once the token is cancelled.
    pub fn watch<S>(&self, stream: S) -> Watched<S> {
        Watched { cancel: self.clone(), stream }
    }
}

/// A stream that fails once a [`Cancel`] token is cancelled.
#[derive(Debug)]
pub struct Watched<S> {
    cancel: Cancel,
    stream: S,
}

impl<S> Watched<S> {
    fn check(&self) -> io::Result<()> {
        // Not `Interrupted`, which callers retry.
        if self.cancel.is_cancelled() { Err(io::Error::other("cancelled")) } else { Ok(()) }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.stream.read(buffer)
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_stream_fails_after_cancellation() {
        let cancel = Cancel::new();
        let mut reader = cancel.watch(io::repeat(7));
        let mut writer = cancel.watch(Vec::new());
        let mut bytes = [0; 3];
        reader.read_exact(&mut bytes).unwrap();
        writer.write_all(&bytes).unwrap();
        cancel.cancel();
        assert_eq!(reader.read(&mut bytes).unwrap_err().to_string(), "cancelled");
        assert_eq!(writer.write(&bytes).unwrap_err().to_string(), "cancelled");
        assert_eq!(writer.stream, [7, 7, 7]);
    }
}
