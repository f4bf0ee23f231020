//! Generates an answer and writes its text as it is generated.

use std::{io::Write, ops::ControlFlow};

use anyhow::{Context as _, Error, Result};
use mlxcel_runtime::{Cancel, Engine, Generation, ModelRunner, Piece, Request, TextStream, Tokenizer};

/// The context of an error of stdout.
pub(crate) const WRITING: &str =
    "cannot write the answer to standard output\nhint: df -h shows whether the disk it goes to is full";

/// How an answer is written.
pub(crate) struct Form<'a> {
    /// Decodes the answer; `None` writes token ids.
    pub(crate) tokenizer: Option<&'a Tokenizer>,
    pub(crate) stops: &'a [String],
    /// True if the answer is a message of its own, rather than a continuation of the prompt's text.
    pub(crate) is_message: bool,
}

/// A finished answer.
pub(crate) struct Answer {
    pub(crate) generation: Generation,
    /// The text; `None` without a tokenizer.
    pub(crate) text: Option<String>,
}

/// Writes the tokens of an answer, and keeps the first error.
struct Writer<'a> {
    stream: Option<TextStream>,
    /// Tokens that end the text.
    eos: Vec<u32>,
    out: &'a mut dyn Write,
    written: usize,
    error: Option<Error>,
}

/// Generates an answer and writes it to `out`.
pub(crate) fn answer<R: ModelRunner>(
    engine: &mut Engine<R>,
    request: Request,
    form: &Form<'_>,
    cancel: &Cancel,
    out: &mut dyn Write,
) -> Result<Answer> {
    let &Form { tokenizer, stops, is_message } = form;
    let before = if is_message { vec![] } else { request.prompt.clone() };
    let stream = tokenizer.map(|tokenizer| tokenizer.stream(&before, stops)).transpose()?;
    let mut writer = Writer { stream, eos: request.eos.clone(), out, written: 0, error: None };
    let mut stopped = false;
    let trace = engine.trace();
    let generation = engine.generate(request, cancel, &mut |token| {
        let _span = trace.span("write the text");
        match writer.token(token) {
            Ok(false) => return ControlFlow::Continue(()),
            Ok(true) => stopped = true,
            Err(error) => writer.error = Some(error),
        }
        ControlFlow::Break(())
    })?;
    if let Some(error) = writer.error {
        return Err(error);
    }
    let Some(mut stream) = writer.stream else { return Ok(Answer { generation, text: None }) };
    if !stopped {
        let rest = stream.finish()?;
        write(writer.out, &rest.text)?;
    }
    Ok(Answer { generation, text: Some(stream.text().to_string()) })
}

impl Writer<'_> {
    /// Writes a token; returns whether a stop text has come.
    fn token(&mut self, token: u32) -> Result<bool> {
        let Some(stream) = &mut self.stream else {
            let separator = if self.written > 0 { "," } else { "" };
            write(self.out, &format!("{separator}{token}"))?;
            self.written += 1;
            return Ok(false);
        };
        // It is no part of the text, also if the tokenizer has a text for it.
        if self.eos.contains(&token) {
            return Ok(false);
        }
        let Piece { text, stopped } = stream.push(token)?;
        if !text.is_empty() {
            write(self.out, &text)?;
        }
        Ok(stopped)
    }
}

/// Writes and flushes, so that a reader sees each word at once, also through a pipe.
fn write(out: &mut dyn Write, text: &str) -> Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(WRITING)
}

#[cfg(test)]
mod tests {
    use std::io;

    use mlxcel_runtime::{EngineSettings, StopReason, scripted::ScriptedModel};

    use super::*;
    use crate::stdio::is_broken_pipe;

    fn tokenizer() -> Tokenizer {
        let json = r#"{"version": "1.0", "model": {"type": "WordLevel", "unk_token": "a",
            "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}}, "decoder": {"type": "Fuse"}}"#;
        Tokenizer::from_json(json.as_bytes()).unwrap()
    }

    fn ask(tokenizer: Option<&Tokenizer>, stops: &[&str], out: &mut dyn Write) -> Result<Answer> {
        ask_until(vec![], tokenizer, stops, out)
    }

    /// Asks for an answer that these tokens end.
    fn ask_until(
        eos: Vec<u32>,
        tokenizer: Option<&Tokenizer>,
        stops: &[&str],
        out: &mut dyn Write,
    ) -> Result<Answer> {
        let stops: Vec<String> = stops.iter().map(ToString::to_string).collect();
        let model = ScriptedModel::answering(100, 4, 1, &[1, 2, 3, 0]);
        let mut engine = Engine::new(model, EngineSettings::default())?;
        let request = Request { prompt: vec![0], max_tokens: 4, eos, ..Request::default() };
        let form = Form { tokenizer, stops: &stops, is_message: false };
        answer(&mut engine, request, &form, &Cancel::new(), out)
    }

    #[test]
    fn text_and_ids() {
        let mut out = vec![];
        let found = ask(Some(&tokenizer()), &[], &mut out).unwrap();
        assert_eq!((found.text.as_deref(), out.as_slice()), (Some("bcda"), &b"bcda"[..]));
        let mut out = vec![];
        let found = ask(None, &[], &mut out).unwrap();
        assert_eq!((found.text, out.as_slice()), (None, &b"1,2,3,0"[..]));
    }

    #[test]
    fn a_stop_text_can_span_tokens() {
        let mut out = vec![];
        let Answer { generation, text } = ask(Some(&tokenizer()), &["cd", "x"], &mut out).unwrap();
        assert_eq!((text.as_deref(), out.as_slice()), (Some("b"), &b"b"[..]));
        assert_eq!((generation.tokens, generation.stop_reason), (vec![1, 2, 3], StopReason::Stop));
        // The beginning of a stop text alone is text.
        let found = ask(Some(&tokenizer()), &["ab"], &mut vec![]).unwrap();
        assert_eq!((found.text.as_deref(), found.generation.stop_reason), (Some("bcda"), StopReason::Length));
    }

    #[test]
    fn a_token_that_ends_the_text_is_no_part_of_it() {
        // The tokenizer does not mark it as special. What may begin a stop text is text at the end.
        let mut out = vec![];
        let found = ask_until(vec![3], Some(&tokenizer()), &["cd"], &mut out).unwrap();
        assert_eq!((found.text.as_deref(), out.as_slice()), (Some("bc"), &b"bc"[..]));
        assert_eq!((found.generation.tokens, found.generation.stop_reason), (vec![1, 2, 3], StopReason::Eos));
        let mut out = vec![];
        ask_until(vec![3], None, &[], &mut out).unwrap();
        assert_eq!(out, b"1,2,3");
    }

    #[test]
    fn an_output_that_cannot_be_written_ends_the_answer() {
        struct Failing(io::ErrorKind);
        impl Write for Failing {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for tokenizer in [None, Some(&tokenizer())] {
            let error = |kind| ask(tokenizer, &[], &mut Failing(kind)).err().unwrap();
            // A reader that has gone is not an error.
            assert!(is_broken_pipe(&error(io::ErrorKind::BrokenPipe)));
            let full = error(io::ErrorKind::StorageFull);
            assert!(!is_broken_pipe(&full));
            assert_eq!(
                mlxcel_artifacts::report(full.as_ref()),
                "error: cannot write the answer to standard output: no storage space\n\
                 hint: df -h shows whether the disk it goes to is full"
            );
        }
    }
}
