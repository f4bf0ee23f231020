//! Requests without limits, and streams that fail.

use std::{sync::mpsc, time::Duration};

use super::{
    answer_text::AnswerText,
    options::AnswerOptions,
    request::Prompt,
    stream::{AnswerReader, AnswerStream, Next},
};
use crate::{
    engine::{EngineSettings, EngineThread, Request},
    scripted::ScriptedModel,
    text::tokenizer::test_tokenizers::byte_fallback,
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The start of the error of a step that fails.
const FAILED: &str = "a step of 1 request failed";

#[test]
fn an_answer_without_a_limit_has_what_there_is_room_for() {
    let most = |max_tokens, is_message, room| {
        let prompt = Prompt { tokens: vec![1; 10], is_message };
        let options = AnswerOptions { max_tokens, ..AnswerOptions::default() };
        options.request(prompt, &[], None, room).unwrap().max_tokens
    };
    assert_eq!([most(None, true, 54), most(None, true, usize::MAX)], [54, usize::MAX]);
    assert_eq!([most(None, false, 54), most(None, false, 300)], [54, 128]);
    // What is asked for stays, and is refused where it does not fit.
    assert_eq!(most(Some(70), true, 54), 70);
}

#[test]
fn a_message_of_a_format_keeps_its_space() {
    // The decoder drops the space at the start of a text.
    let prompt = |is_message| Prompt { tokens: vec![256], is_message };
    let text = |is_message, has_format| {
        let before = prompt(is_message).before(has_format);
        byte_fallback().stream(&before, &[]).unwrap().push(257).unwrap().text
    };
    assert_eq!([text(true, false), text(true, true)], ["is", " is"]);
    assert_eq!([text(false, false), text(false, true)], [" is", " is"]);
}

/// Begins an answer that has two tokens before its step fails.
fn failing() -> (EngineThread, AnswerStream) {
    let load = || Ok(ScriptedModel::answering(100, 4, 1, &[1, 2, 3]).failing([2]));
    let engine = EngineThread::start(load, EngineSettings::default()).unwrap();
    let request = Request { prompt: vec![0], max_tokens: 9, ..Request::default() };
    let reader = AnswerReader::new(AnswerText::new(None, vec![]), false);
    let stream = AnswerStream::start(&engine.client(), reader, request).unwrap();
    (engine, stream)
}

/// Watches a stream. Returns what is told.
fn watch(stream: &AnswerStream, only_end: bool) -> mpsc::Receiver<()> {
    let (sender, told) = mpsc::channel();
    stream.watch(only_end, Box::new(move || _ = sender.send(())));
    told
}

#[test]
fn a_stream_that_failed_ends() {
    let (_engine, stream) = failing();
    for expected in [1, 2] {
        let Next::Piece(piece) = stream.next(PATIENCE).unwrap() else { panic!("found no piece") };
        assert_eq!(piece.token, Some(expected));
    }
    let error = stream.next(PATIENCE).unwrap_err().to_string();
    assert!(error.starts_with(FAILED), "{error}");
    assert_eq!([(); 2].map(|()| stream.next(PATIENCE).unwrap()), [Next::End, Next::End]);
    assert_eq!(stream.poll().unwrap(), (vec![], true));
    assert_eq!(stream.answer(), None);
}

#[test]
fn pieces_before_an_error_are_read_before_it() {
    let (_engine, stream) = failing();
    watch(&stream, true).recv_timeout(PATIENCE).unwrap();
    // The error has come, and nothing was read.
    let told = watch(&stream, false);
    told.recv_timeout(PATIENCE).unwrap();
    let (pieces, has_ended) = stream.poll().unwrap();
    assert_eq!(pieces.iter().map(|piece| piece.token).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert!(!has_ended);
    // There is something to read again.
    told.recv_timeout(PATIENCE).unwrap();
    let error = stream.poll().unwrap_err().to_string();
    assert!(error.starts_with(FAILED), "{error}");
    assert_eq!(stream.poll().unwrap(), (vec![], true));
    assert_eq!(stream.next(PATIENCE).unwrap(), Next::End);
}

#[test]
fn who_waits_for_the_end_alone_reads_the_error_at_once() {
    let (_engine, stream) = failing();
    watch(&stream, true).recv_timeout(PATIENCE).unwrap();
    let error = stream.poll().unwrap_err().to_string();
    assert!(error.starts_with(FAILED), "{error}");
    assert_eq!(stream.poll().unwrap(), (vec![], true));
}
