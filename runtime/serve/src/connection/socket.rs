//! A socket with limits on how long it waits for the client.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until},
};

use super::activity::{Activity, Phase};
use crate::limits::Limits;

/// The time for which what a client still sends is read and dropped. Closing at once would make the client's kernel
/// forget an answer that it has and the client has not read.
const LINGER: Duration = Duration::from_secs(2);

/// A socket.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    limits: Limits,
    activity: Arc<Activity>,
    reading: Deadline,
    /// The phase that the deadline of reads is for.
    awaited: Option<Phase>,
    writing: Deadline,
    has_received: bool,
    /// Whether the end of what is written is sent.
    is_shut: bool,
}

/// A moment at which waiting ends, if there is one.
#[derive(Debug, Default)]
struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    is_set: bool,
}

impl Deadline {
    /// Sets it, if it is not set.
    fn set(&mut self, after: Duration) {
        if !std::mem::replace(&mut self.is_set, true) {
            let at = Instant::now() + after;
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(at),
                None => self.timer = Some(Box::pin(sleep_until(at))),
            }
        }
    }

    fn clear(&mut self) {
        self.is_set = false;
    }

    /// Returns whether it has passed, and wakes the task if it has not.
    fn has_passed(&mut self, context: &mut Context<'_>) -> bool {
        let timer = self.timer.as_mut().filter(|_| self.is_set);
        timer.is_some_and(|timer| timer.as_mut().poll(context).is_ready())
    }
}

impl Socket {
    pub(super) fn new(stream: TcpStream, limits: Limits, activity: Arc<Activity>) -> Self {
        let mut reading = Deadline::default();
        reading.set(limits.head);
        Self {
            stream,
            limits,
            activity,
            reading,
            awaited: Some(Phase::Head),
            writing: Deadline::default(),
            has_received: false,
            is_shut: false,
        }
    }

    /// Notes what is awaited now. A deadline stays while it does.
    fn expect(&mut self, phase: Phase) {
        if self.awaited.replace(phase) != Some(phase) {
            self.reading.clear();
        }
        match phase {
            Phase::Head => self.reading.set(self.limits.head),
            Phase::Idle => self.reading.set(self.limits.idle),
            // Who reads a body has a deadline of its own.
            Phase::Busy => {}
        }
    }

    /// Passes on what became of a write, or fails if none succeeds for too long.
    fn wrote<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing.clear();
            return written;
        }
        self.writing.set(self.limits.write);
        if self.writing.has_passed(context) {
            Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
        } else {
            written
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, buffer) {
            if buffer.filled().len() > before {
                self.has_received = true;
                self.activity.receive();
            }
            return Poll::Ready(read);
        }
        let phase = self.activity.watch(context.waker());
        self.expect(phase);
        if self.reading.has_passed(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.wrote(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.is_shut = true;
            self.reading.clear();
            self.reading.set(LINGER);
        }
        let is_mid_head = self.has_received && self.activity.phase() == Phase::Head;
        if !self.activity.has_unread() && !is_mid_head {
            return Poll::Ready(Ok(()));
        }
        let mut dropped = [0; 4096];
        while !self.reading.has_passed(context) {
            let mut buffer = ReadBuf::new(&mut dropped);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
