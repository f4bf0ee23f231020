//! The lines of a file of requests.

use std::{
    io::{self, BufRead, BufReader, Read},
    sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel},
    thread,
    time::Duration,
};

use mlxcel_artifacts::Digest;
use mlxcel_runtime::Cancel;

/// The most bytes of a line.
pub(super) const LONGEST: usize = 64 << 20;

/// Lines that are read ahead of a pipe's.
const AHEAD: usize = 8;

/// The time between two looks at Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// A line that is not blank.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    /// Its number in the file, from 1.
    pub(super) number: u64,
    /// Its bytes without the line break; cut off after [`LONGEST`].
    pub(super) text: Vec<u8>,
    /// True if it is longer than [`LONGEST`].
    pub(super) is_too_long: bool,
}

impl Line {
    /// Returns a short digest of the text.
    pub(super) fn digest(&self) -> u64 {
        let hex = Digest::of(&self.text).hex();
        u64::from_str_radix(&hex[..16], 16).unwrap_or_default()
    }
}

/// The lines of a file, read one by one.
pub(super) struct Lines {
    input: Box<dyn BufRead + Send>,
    number: u64,
}

impl Lines {
    /// Starts before the first line.
    pub(super) fn new(input: impl Read + Send + 'static) -> Self {
        Self { input: Box::new(BufReader::new(input)), number: 0 }
    }

    /// Reads a line, also a blank one; `None` at the end.
    fn read(&mut self) -> io::Result<Option<Line>> {
        let mut text = Vec::new();
        let limit = LONGEST as u64 + 2;
        if self.input.by_ref().take(limit).read_until(b'\n', &mut text)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let is_whole = text.last() == Some(&b'\n');
        if !is_whole && text.len() as u64 == limit {
            self.input.skip_until(b'\n')?;
        }
        for end in [b'\n', b'\r'] {
            text.pop_if(|last| *last == end);
        }
        let is_too_long = text.len() > LONGEST;
        text.truncate(LONGEST);
        Ok(Some(Line { number: self.number, text, is_too_long }))
    }
}

impl Iterator for Lines {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.read().transpose()? {
                Ok(line) if line.text.trim_ascii().is_empty() => {}
                found => return Some(found),
            }
        }
    }
}

/// Where requests come from.
pub(super) enum Requests {
    /// A file, whose next line is always there.
    File(Lines),
    /// A pipe, whose writer may wait for an answer before it writes the next line.
    Pipe(Receiver<io::Result<Line>>),
}

/// What comes next.
pub(super) enum Next {
    Line(Line),
    /// Nothing yet.
    Later,
    End,
}

impl Requests {
    /// Reads a pipe on a thread of its own.
    pub(super) fn pipe(mut lines: Lines) -> Self {
        let (sender, receiver) = sync_channel(AHEAD);
        thread::spawn(move || lines.try_for_each(|line| sender.send(line)));
        Self::Pipe(receiver)
    }

    /// Returns the next line. A pipe is waited for only if `wait` is true, and until `cancel` is set.
    pub(super) fn next(&mut self, wait: bool, cancel: &Cancel) -> io::Result<Next> {
        let found = match self {
            Self::File(lines) => lines.next(),
            Self::Pipe(receiver) if wait => loop {
                match receiver.recv_timeout(PATIENCE) {
                    Ok(line) => break Some(line),
                    Err(RecvTimeoutError::Disconnected) => break None,
                    Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => return Ok(Next::Later),
                    Err(RecvTimeoutError::Timeout) => {}
                }
            },
            Self::Pipe(receiver) => match receiver.try_recv() {
                Ok(line) => Some(line),
                Err(TryRecvError::Disconnected) => None,
                Err(TryRecvError::Empty) => return Ok(Next::Later),
            },
        };
        found.transpose().map(|line| line.map_or(Next::End, Next::Line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_count_and_are_skipped() {
        let lines = Lines::new(&b"\n{1}\r\n  \t\n\xff\n\r\n{2}"[..]);
        let found: Vec<(u64, Vec<u8>)> =
            lines.map(Result::unwrap).map(|line| (line.number, line.text)).collect();
        assert_eq!(found, [(2, b"{1}".to_vec()), (4, b"\xff".to_vec()), (6, b"{2}".to_vec())]);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_off() {
        for length in [LONGEST, LONGEST + 1, LONGEST + 2, LONGEST + 3, LONGEST + (1 << 20)] {
            let input = io::repeat(b'x').take(length as u64).chain(&b"\r\nnext\n"[..]);
            let found: Vec<Line> = Lines::new(input).map(Result::unwrap).collect();
            assert_eq!((found.len(), found[0].text.len()), (2, LONGEST), "{length}");
            assert_eq!(found[0].is_too_long, length > LONGEST);
            assert_eq!((found[1].number, &found[1].text[..]), (2, &b"next"[..]));
        }
    }

    #[test]
    fn a_digest_is_of_the_text() {
        let digests: Vec<u64> = Lines::new(&b"a\na\r\nb"[..]).map(|line| line.unwrap().digest()).collect();
        assert_eq!(digests[0], digests[1]);
        assert_ne!(digests[0], digests[2]);
    }

    #[test]
    fn a_pipe_is_not_waited_for_while_requests_run() {
        let (read, mut write) = io::pipe().unwrap();
        let mut requests = Requests::pipe(Lines::new(read));
        let cancel = Cancel::new();
        assert!(matches!(requests.next(false, &cancel), Ok(Next::Later)));
        io::Write::write_all(&mut write, b"{}\n").unwrap();
        assert!(matches!(requests.next(true, &cancel), Ok(Next::Line(line)) if line.number == 1));
        cancel.cancel();
        assert!(matches!(requests.next(true, &cancel), Ok(Next::Later)));
        drop(write);
        assert!(matches!(requests.next(true, &Cancel::new()), Ok(Next::End)));
    }
}
