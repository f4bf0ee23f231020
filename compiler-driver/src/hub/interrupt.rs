//! Waits for a server on other threads, so that a build is cancelled at once, however long the server is silent.

use std::{
    io::{self, Read},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use mlxcel_artifacts::Cancel;

/// How often the token is looked at.
const POLL: Duration = Duration::from_millis(50);

/// Bytes that are read at once, and how many such pieces wait to be written.
const PIECE_BYTES: usize = 256 << 10;
const PIECES: usize = 8;

/// Runs `work` on a thread and returns its result, or `None` once the build is cancelled. The thread is left then: it
/// ends with its request.
pub(super) fn run<T: Send + 'static>(
    cancel: &Cancel,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || sender.send(work()));
    receive(&receiver, cancel)
}

/// The pieces of a body, which a thread reads.
pub(super) struct Pieces {
    receiver: Receiver<io::Result<Vec<u8>>>,
    cancel: Cancel,
}

impl Pieces {
    /// Starts to read `body`, and no more than `limit` bytes of it.
    pub(super) fn of(body: impl Read + Send + 'static, limit: u64, cancel: &Cancel) -> Self {
        let (sender, receiver) = sync_channel(PIECES);
        thread::spawn(move || {
            let mut body = body.take(limit);
            loop {
                let mut piece = vec![0; PIECE_BYTES];
                let read = body.read(&mut piece).map(|length| {
                    piece.truncate(length);
                    piece
                });
                let is_last = read.as_ref().map_or(true, Vec::is_empty);
                // Nobody waits for the rest of a download that was cancelled.
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        });
        Self { receiver, cancel: cancel.clone() }
    }

    /// Returns the next piece, which is empty at the end, or `None` once the build is cancelled.
    pub(super) fn next(&self) -> Option<io::Result<Vec<u8>>> {
        receive(&self.receiver, &self.cancel)
    }
}

fn receive<T>(receiver: &Receiver<T>, cancel: &Cancel) -> Option<T> {
    loop {
        if cancel.is_cancelled() {
            return None;
        }
        match receiver.recv_timeout(POLL) {
            Ok(value) => return Some(value),
            Err(RecvTimeoutError::Timeout) => {}
            // The thread sends before it ends, unless it panicked, as this one does then.
            Err(RecvTimeoutError::Disconnected) => panic!("a request panicked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_body() {
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|i| i as u8).collect();
        let pieces = Pieces::of(io::Cursor::new(bytes.clone()), 999_999, &Cancel::new());
        let mut read = Vec::new();
        while let Some(Ok(piece)) =
            pieces.next().filter(|piece| !matches!(piece, Ok(bytes) if bytes.is_empty()))
        {
            read.extend(piece);
        }
        assert!(read == bytes[..999_999]);
    }

    #[test]
    fn work_that_hangs_is_left() {
        let cancel = Cancel::new();
        cancel.cancel();
        assert_eq!(run(&cancel, || thread::sleep(Duration::from_secs(3600))), None);
        assert_eq!(run(&Cancel::new(), || 1), Some(1));
    }
}
