//! Tells an event loop of Python which streams have news.

use std::{
    io::{self, Read as _, Write as _},
    os::{fd::AsRawFd as _, unix::net::UnixStream},
    sync::{Mutex, PoisonError},
};

use pyo3::prelude::*;

/// A socket that is readable while streams have news. An event loop watches it, so that one turn of the loop serves all
/// streams that an engine's step has given a token.
#[pyclass(frozen, module = "mlxcel._native")]
pub(crate) struct Notifier {
    reader: UnixStream,
    writer: UnixStream,
    news: Mutex<News>,
}

#[derive(Default)]
struct News {
    streams: Vec<u64>,
    /// Whether the loop was woken and has not come yet.
    is_woken: bool,
}

impl Notifier {
    /// Notes news of a stream, on any thread.
    pub(crate) fn notify(&self, stream: u64) {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.streams.push(stream);
        if !news.is_woken {
            news.is_woken = true;
            // If nobody reads any more, there is nobody to wake.
            _ = (&self.writer).write(&[0]);
        }
    }
}

#[pymethods]
impl Notifier {
    #[new]
    fn new() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self { reader, writer, news: Mutex::default() })
    }

    /// Returns the file descriptor to watch.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// Returns the streams with news, and takes note that they were told.
    fn take(&self) -> Vec<u64> {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        _ = (&self.reader).read(&mut [0; 8]);
        news.is_woken = false;
        std::mem::take(&mut news.streams)
    }
}
