//! `mlxcel_engine_submit`, `mlxcel_stream_*` and `mlxcel_answer_*`.

use std::{
    ffi::{CString, c_char},
    ptr,
    sync::{Mutex, TryLockError},
    time::Duration,
};

use mlxcel_runtime::{Answer as WholeAnswer, AnswerPiece, AnswerStream, Next, TokenLogprobs};

use super::{
    engine::{Engine, model},
    pointers::{Error, guard, guard_or, number, put, to_handle},
    requests,
    types::{Event, Logprob, Piece, Request},
};
use crate::{
    errors::Problem,
    handles::{Object as _, object},
};

/// An answer that is read while it grows.
#[derive(Debug)]
pub struct Stream {
    _private: [u8; 0],
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    _private: [u8; 0],
}

/// A stream, with the piece that was read last.
#[derive(Debug)]
pub(crate) struct HeldStream {
    stream: AnswerStream,
    last: Mutex<HeldPiece>,
}

/// What a piece for C points to.
#[derive(Debug, Default)]
pub(crate) struct HeldPiece {
    text: CString,
    top: Vec<Logprob>,
}

/// An answer, with its texts and numbers for C.
#[derive(Debug)]
pub(crate) struct HeldAnswer {
    answer: WholeAnswer,
    text: CString,
    finish_reason: CString,
    logprobs: Vec<f32>,
    top: Vec<Vec<Logprob>>,
}

object!(HeldStream, 4, "a stream");
object!(HeldAnswer, 5, "an answer");

/// Submits a request. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_engine_submit(
    engine: *const Engine,
    request: *const Request,
    stream: *mut *mut Stream,
) -> *mut Error {
    guard(|| {
        let model = model(engine)?;
        let submitted = model.submit(requests::read(&model, request)?)?;
        let held = HeldStream { stream: submitted, last: Mutex::default() };
        let handle = HeldStream::table().add(held);
        put("stream", stream, to_handle(handle)).inspect_err(|_| drop(HeldStream::table().remove(handle)))
    })
}

/// Waits at most `timeout_ms` milliseconds for the next piece. One thread at a time: while one is in this call for a stream,
/// another one gets MLXCEL_CODE_THREAD.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_stream_next(
    stream: *const Stream,
    timeout_ms: u64,
    event: *mut Event,
    piece: *mut Piece,
) -> *mut Error {
    guard(|| {
        let held = HeldStream::table().get(number(stream))?;
        let mut last = match held.last.try_lock() {
            Ok(last) => last,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let text = "found another thread in mlxcel_stream_next for this stream, expected none\n\
                            hint: read a stream on one thread";
                return Err(Problem::Thread(text.into()));
            }
        };
        let (found, next) = match held.stream.next(Duration::from_millis(timeout_ms))? {
            Next::Nothing => (Event::Nothing, None),
            Next::End => (Event::End, None),
            Next::Piece(next) => (Event::Piece, Some(next)),
        };
        if let Some(next) = next {
            put("piece", piece, last.fill(&next))?;
        }
        put("event", event, found)
    })
}

/// Returns a text for C. Zeros within it, which a model can generate, become U+FFFD.
fn text_of(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default())
}

impl HeldPiece {
    /// Takes a piece's text and likely tokens, and returns the piece that points to them.
    pub(crate) fn fill(&mut self, piece: &AnswerPiece) -> Piece {
        self.text = text_of(&piece.text);
        self.top = piece.logprobs.as_ref().map(top_of).unwrap_or_default();
        Piece {
            text: self.text.as_ptr(),
            text_length: self.text.as_bytes().len(),
            token: piece.token.unwrap_or_default(),
            has_token: piece.token.is_some(),
            logprob: piece.logprobs.as_ref().map_or(0.0, |logprobs| logprobs.token),
            top_logprobs: start_of(&self.top),
            top_logprob_count: self.top.len(),
        }
    }
}

/// Returns the most likely tokens in place of one.
fn top_of(logprobs: &TokenLogprobs) -> Vec<Logprob> {
    logprobs.top.iter().map(|&(token, logprob)| Logprob { token, logprob }).collect()
}

/// Returns the address of a list's elements; null if it has none.
fn start_of<T>(list: &[T]) -> *const T {
    if list.is_empty() { ptr::null() } else { list.as_ptr() }
}

/// Ends the request of a stream. What has come can still be read. Any thread, also while another one waits.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_stream_cancel(stream: *const Stream) -> *mut Error {
    guard(|| {
        HeldStream::table().get(number(stream))?.stream.cancel();
        Ok(())
    })
}

/// Returns the whole answer; before its end an error. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_stream_answer(stream: *const Stream, answer: *mut *mut Answer) -> *mut Error {
    guard(|| {
        let whole = HeldStream::table().get(number(stream))?.stream.answer();
        let text = "found an answer that is not complete, expected its end\nhint: read the stream to its end";
        hold(whole.ok_or_else(|| Problem::Argument(text.into()))?, answer)
    })
}

/// Closes a stream, which ends its request. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_stream_close(stream: *mut Stream) {
    drop(HeldStream::table().remove(number(stream)));
}

/// Gives an answer to C.
pub(crate) fn hold(answer: WholeAnswer, to: *mut *mut Answer) -> Result<(), Problem> {
    let text = text_of(&answer.text);
    let finish_reason = text_of(answer.stop_reason.name());
    let logprobs = answer.logprobs.iter().map(|logprobs| logprobs.token).collect();
    let top = answer.logprobs.iter().map(top_of).collect();
    let handle = HeldAnswer::table().add(HeldAnswer { answer, text, finish_reason, logprobs, top });
    put("answer", to, to_handle(handle)).inspect_err(|_| drop(HeldAnswer::table().remove(handle)))
}

/// Returns the text of an answer with a zero at its end, and sets `length`, which may be NULL, to its bytes without it. NULL
/// for a bad handle. Valid until the answer is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_answer_text(answer: *const Answer, length: *mut usize) -> *const c_char {
    guard_or(ptr::null(), || {
        let held = HeldAnswer::table().get(number(answer))?;
        if !length.is_null() {
            put("length", length, held.text.as_bytes().len())?;
        }
        Ok(held.text.as_ptr())
    })
}

/// Returns the tokens of an answer, and sets `count` to their number. NULL for a bad handle. Valid until the answer is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_answer_tokens(answer: *const Answer, count: *mut usize) -> *const u32 {
    guard_or(ptr::null(), || {
        let held = HeldAnswer::table().get(number(answer))?;
        put("count", count, held.answer.tokens.len())?;
        Ok(held.answer.tokens.as_ptr())
    })
}

/// Returns the log-probabilities of an answer's tokens, and sets `count` to their number: that of the tokens, or 0 if the request
/// did not ask for `logprobs`. NULL for none, and for a bad handle. Valid until the answer is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_answer_logprobs(answer: *const Answer, count: *mut usize) -> *const f32 {
    guard_or(ptr::null(), || {
        let held = HeldAnswer::table().get(number(answer))?;
        put("count", count, held.logprobs.len())?;
        Ok(start_of(&held.logprobs))
    })
}

/// Returns the most likely tokens in place of an answer's token `index`, best first, and sets `count` to their number: what the
/// request has as `top_logprobs`. NULL for none, and for a bad handle or index. Valid until the answer is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_answer_top_logprobs(
    answer: *const Answer,
    index: usize,
    count: *mut usize,
) -> *const Logprob {
    guard_or(ptr::null(), || {
        let held = HeldAnswer::table().get(number(answer))?;
        let top = held.top.get(index).map(Vec::as_slice).unwrap_or_default();
        put("count", count, top.len())?;
        Ok(start_of(top))
    })
}

/// Returns why an answer ended: "eos", "stop", "length", "context" or "cancelled". NULL for a bad handle. Valid until the answer
/// is closed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_answer_finish_reason(answer: *const Answer) -> *const c_char {
    guard_or(ptr::null(), || Ok(HeldAnswer::table().get(number(answer))?.finish_reason.as_ptr()))
}

/// Closes an answer. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_answer_close(answer: *mut Answer) {
    drop(HeldAnswer::table().remove(number(answer)));
}
