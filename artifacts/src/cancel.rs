//! Giving long work up between two pieces of it.

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

/// The exit status of a program that was ended by Ctrl-C or a request to end, as a shell has it after SIGINT.
pub const INTERRUPTED: u8 = 130;

/// How long after a request to end another one is a second one.
const IMPATIENT: Duration = Duration::from_secs(1);

/// A switch that ends long work, a build or a generation, soon after it is turned on. Clones are the same switch.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A switch that is off.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns it on.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Turns it off, for the next piece of work.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it is on.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// A switch that Ctrl-C and requests to end the program turn on. A second one ends it at once, should the work hang, if it
    /// comes a while after the first: programs that end others often tell them twice, and work that is given up has files to
    /// remove.
    ///
    /// Where signals cannot be handled they end the program at once, which leaves nothing behind that looks whole.
    #[must_use]
    pub fn on_signals() -> Self {
        let cancel = Self::new();
        let turned = cancel.clone();
        if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) {
            thread::spawn(move || {
                let mut first = Instant::now();
                for _ in signals.forever() {
                    if !turned.is_cancelled() {
                        first = Instant::now();
                        turned.cancel();
                    } else if first.elapsed() > IMPATIENT {
                        low_level::exit(INTERRUPTED.into());
                    }
                }
            });
        }
        cancel
    }

    /// What the switch turns, for the handler of a signal.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// `stream`, which fails once the switch is on: copies of gigabytes end with it.
    pub fn watch<S>(&self, stream: S) -> Watched<S> {
        Watched { cancel: self.clone(), stream }
    }
}

/// A stream that fails once a [`Cancel`] is turned on.
#[derive(Debug)]
pub struct Watched<S> {
    cancel: Cancel,
    stream: S,
}

impl<S> Watched<S> {
    fn check(&self) -> io::Result<()> {
        // Not `Interrupted`: that one is tried again.
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
    fn a_watched_stream_ends_with_the_work() {
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
