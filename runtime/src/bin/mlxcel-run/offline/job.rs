//! A request on its way, and the line of its answer.

use anyhow::Result;
use mlxcel_runtime::{Error, Generation, StopReason, TextStream, Timings, TokenLogprobs};
use serde_json::{Map, Value, json};

use super::{asking::Asked, lines::Line};
use crate::render;

/// A request that the engine has.
pub(super) struct Job {
    label: Label,
    prompt_tokens: usize,
    seed: Option<u64>,
    eos: Vec<u32>,
    stream: Option<TextStream>,
    tokens: Vec<u32>,
    logprobs: Vec<Vec<(u32, f32)>>,
    is_stopped: bool,
}

/// What tells whose answer a line is.
#[derive(Clone)]
pub(super) struct Label {
    line: u64,
    id: Option<Value>,
    digest: u64,
}

impl Label {
    /// Makes the label of a line with this id.
    pub(super) fn new(line: &Line, id: Option<Value>) -> Self {
        Self { line: line.number, id, digest: line.digest() }
    }

    /// Renders an error in place of an answer.
    pub(super) fn error(&self, error: &str) -> Value {
        let mut object = self.object();
        object["error"] = error.into();
        object
    }

    fn object(&self) -> Value {
        let mut object = json!({ "line": self.line });
        if let Some(id) = &self.id {
            object["id"] = id.clone();
        }
        object
    }
}

impl Job {
    /// Makes the job of a request that was submitted.
    pub(super) fn new(label: Label, asked: Asked) -> Self {
        let Asked { request, stream } = asked;
        Self {
            label,
            prompt_tokens: request.prompt.len(),
            seed: request.sampling.map(|sampling| sampling.seed),
            eos: request.eos,
            stream,
            tokens: vec![],
            logprobs: vec![],
            is_stopped: false,
        }
    }

    /// Adds a token. Returns true if a stop text has come, so that no more are wanted.
    pub(super) fn token(&mut self, token: u32, logprobs: Option<TokenLogprobs>) -> Result<bool, Error> {
        // A step with accepted drafts has tokens after the last one that is wanted.
        if self.is_stopped {
            return Ok(false);
        }
        self.tokens.push(token);
        self.logprobs.extend(logprobs.map(|logprobs| logprobs.top));
        // An end of text is no part of it, also if the tokenizer has a text for it.
        let Some(stream) = self.stream.as_mut().filter(|_| !self.eos.contains(&token)) else {
            return Ok(false);
        };
        self.is_stopped = stream.push(token)?.stopped;
        Ok(self.is_stopped)
    }

    /// Returns the number of tokens so far.
    pub(super) fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// Returns whose answer this is.
    pub(super) fn label(&self) -> Label {
        self.label.clone()
    }

    /// Renders the answer.
    pub(super) fn answer(mut self, reason: StopReason, timings: Timings) -> Result<Value, Error> {
        let text = match &mut self.stream {
            Some(stream) => {
                // After a stop text there is nothing left that is part of the answer.
                if !self.is_stopped {
                    stream.finish()?;
                }
                Some(stream.text().to_owned())
            }
            None => None,
        };
        let mut object = self.label.object();
        object["request"] = format!("{:016x}", self.label.digest).into();
        if let Some(text) = text {
            object["text"] = text.into();
        }
        let reason = if self.is_stopped { StopReason::Stop } else { reason };
        let generation =
            Generation { tokens: self.tokens, logprobs: self.logprobs, stop_reason: reason, timings };
        add_generation(&mut object, self.prompt_tokens, self.seed, &generation);
        Ok(object)
    }
}

fn add_generation(object: &mut Value, prompt_tokens: usize, seed: Option<u64>, generation: &Generation) {
    let Generation { tokens, logprobs, stop_reason, timings } = generation;
    object["tokens"] = json!(tokens);
    object["stop_reason"] = stop_reason.name().into();
    object["usage"] = json!({
        "prompt_tokens": prompt_tokens,
        "cached_tokens": timings.cached_tokens,
        "completion_tokens": tokens.len(),
        "drafted_tokens": timings.drafted,
        "accepted_tokens": timings.accepted,
    });
    let mut times = Map::from_iter([("queued_ms".to_owned(), render::ms(timings.queued).into())]);
    times.extend(render::timings(timings));
    object["timings"] = times.into();
    if let Some(seed) = seed {
        object["seed"] = seed.into();
    }
    if !logprobs.is_empty() {
        object["logprobs"] = json!(logprobs);
    }
}

#[cfg(test)]
mod tests {
    use mlxcel_runtime::{Request, Tokenizer};

    use super::*;

    #[test]
    fn a_token_that_ends_the_text_is_no_part_of_it() {
        let json = r#"{"version": "1.0", "model": {"type": "WordLevel", "unk_token": "a",
            "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}}, "decoder": {"type": "Fuse"}}"#;
        let tokenizer = Tokenizer::from_json(json.as_bytes()).unwrap();
        // With the last token, there would be a stop text.
        let stream = Some(tokenizer.stream(&[], &["cd".to_owned()]).unwrap());
        let request = Request { prompt: vec![0], eos: vec![3], ..Request::default() };
        let label = Label { line: 1, id: None, digest: 0 };
        let mut job = Job::new(label, Asked { request, stream });
        for token in [1, 2, 3] {
            assert!(!job.token(token, None).unwrap());
        }
        let answer = job.answer(StopReason::Eos, Timings::default()).unwrap();
        assert_eq!((&answer["text"], &answer["stop_reason"]), (&json!("bc"), &json!("eos")));
        assert_eq!(answer["tokens"], json!([1, 2, 3]));
    }
}
