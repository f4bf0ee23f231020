//! Answers as clients read them.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher as _,
    time::{SystemTime, UNIX_EPOCH},
};

use mlxcel_runtime::{StopReason, Timings, Tokenizer};
use serde_json::{Value, json};

use crate::answer::AnswerToken;

/// Which of the two endpoints answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Chat,
    Completion,
}

/// What all parts of an answer have in common.
#[derive(Debug, Clone)]
pub(crate) struct Envelope {
    endpoint: Endpoint,
    id: String,
    created: u64,
    model: String,
    /// Names the code and weights that answered.
    fingerprint: String,
}

/// An answer that is complete.
#[derive(Debug, Default)]
pub(crate) struct WholeAnswer {
    pub(crate) text: String,
    pub(crate) tokens: Vec<AnswerToken>,
    pub(crate) finish: Option<&'static str>,
}

/// Tokens that a request took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) prompt: usize,
    pub(crate) cached: usize,
    pub(crate) generated: usize,
}

impl Usage {
    /// Adds an answer to a prompt of `prompt` tokens. Answers to one prompt count it once.
    pub(crate) fn add(&mut self, prompt: usize, generated: usize, timings: &Timings) {
        self.prompt += prompt;
        self.generated += generated;
        self.cached += timings.cached_tokens.min(prompt);
    }

    pub(crate) fn to_json(self) -> Value {
        let Self { prompt, cached, generated } = self;
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
            "prompt_tokens_details": { "cached_tokens": cached },
        })
    }
}

/// Returns OpenAI's name of a reason.
pub(crate) fn finish_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Eos | StopReason::Stop => "stop",
        StopReason::Length | StopReason::Context | StopReason::Cancelled => "length",
    }
}

impl Envelope {
    /// Begins an answer of a model.
    pub(crate) fn new(endpoint: Endpoint, model: &str, digest: &str) -> Self {
        let prefix = if endpoint == Endpoint::Chat { "chatcmpl" } else { "cmpl" };
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let random = RandomState::new();
        Self {
            endpoint,
            id: format!("{prefix}-{:016x}{:016x}", random.hash_one(0), random.hash_one(1)),
            created,
            model: model.to_owned(),
            fingerprint: format!("fp_{}", digest.trim_start_matches("blake3:").get(..16).unwrap_or(digest)),
        }
    }

    fn object(&self, name: &str, choices: Vec<Value>) -> Value {
        json!({
            "id": self.id,
            "object": name,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
        })
    }

    /// Returns the whole answer.
    pub(crate) fn whole(&self, tokenizer: &Tokenizer, answers: Vec<WholeAnswer>, usage: Usage) -> Value {
        let mut offset = 0;
        let choice = |(index, answer): (usize, WholeAnswer)| {
            let WholeAnswer { text, tokens, finish } = answer;
            let logprobs = self.logprobs(tokenizer, &tokens, &mut offset);
            offset = 0;
            let mut choice = json!({ "index": index, "logprobs": logprobs, "finish_reason": finish });
            match self.endpoint {
                Endpoint::Chat => {
                    choice["message"] = json!({ "role": "assistant", "content": text, "refusal": null });
                }
                Endpoint::Completion => choice["text"] = text.into(),
            }
            choice
        };
        let name = if self.endpoint == Endpoint::Chat { "chat.completion" } else { "text_completion" };
        let choices = answers.into_iter().enumerate().map(choice).collect();
        let mut object = self.object(name, choices);
        object["usage"] = usage.to_json();
        object
    }

    /// Returns the first part of a streamed message, which has no text.
    pub(crate) fn start(&self, index: usize, include_usage: bool) -> Option<Value> {
        let delta = json!({ "role": "assistant", "content": "", "refusal": null });
        let choice = json!({ "index": index, "delta": delta, "logprobs": null, "finish_reason": null });
        (self.endpoint == Endpoint::Chat).then(|| self.chunk(vec![choice], include_usage))
    }

    /// Returns a part of a streamed answer. `offset` is the length of the text before, in characters.
    pub(crate) fn part(
        &self,
        index: usize,
        tokenizer: &Tokenizer,
        answer: &WholeAnswer,
        offset: &mut usize,
        include_usage: bool,
    ) -> Value {
        let logprobs = self.logprobs(tokenizer, &answer.tokens, offset);
        let mut choice = json!({ "index": index, "logprobs": logprobs, "finish_reason": answer.finish });
        match self.endpoint {
            Endpoint::Chat if answer.finish.is_some() && answer.text.is_empty() => {
                choice["delta"] = json!({})
            }
            Endpoint::Chat => choice["delta"] = json!({ "content": answer.text }),
            Endpoint::Completion => choice["text"] = answer.text.clone().into(),
        }
        self.chunk(vec![choice], include_usage)
    }

    /// Returns the last part of a stream, which has the numbers of tokens.
    pub(crate) fn usage(&self, usage: Usage) -> Value {
        let mut object = self.chunk(vec![], true);
        object["usage"] = usage.to_json();
        object
    }

    /// Returns a part of a stream. If the last one has numbers of tokens, the others say that they have none.
    fn chunk(&self, choices: Vec<Value>, include_usage: bool) -> Value {
        let chat = self.endpoint == Endpoint::Chat;
        let mut object = self.object(if chat { "chat.completion.chunk" } else { "text_completion" }, choices);
        if include_usage {
            object["usage"] = Value::Null;
        }
        object
    }

    /// Returns the log-probabilities of tokens, `null` if there are none.
    fn logprobs(&self, tokenizer: &Tokenizer, tokens: &[AnswerToken], offset: &mut usize) -> Value {
        let known = tokens.iter().filter_map(|token| Some((token.id, token.logprobs.as_ref()?)));
        let known: Vec<_> = known.collect();
        if known.is_empty() {
            return Value::Null;
        }
        let text = |id: u32| tokenizer.token_text(id);
        match self.endpoint {
            Endpoint::Chat => {
                let entry = |id: u32, logprob: f32| {
                    let text = text(id);
                    // A token can be a part of a character, whose bytes its text does not have.
                    let bytes = (!text.contains('\u{fffd}')).then(|| text.as_bytes().to_vec());
                    json!({ "token": text, "logprob": logprob, "bytes": bytes })
                };
                let entries = known.into_iter().map(|(id, logprobs)| {
                    let top: Vec<_> = logprobs.top.iter().map(|&(id, logprob)| entry(id, logprob)).collect();
                    let mut entry = entry(id, logprobs.token);
                    entry["top_logprobs"] = top.into();
                    entry
                });
                json!({ "content": entries.collect::<Vec<_>>(), "refusal": null })
            }
            Endpoint::Completion => {
                let mut offsets = Vec::with_capacity(known.len());
                for (id, _) in &known {
                    offsets.push(*offset);
                    *offset += text(*id).chars().count();
                }
                let top = known.iter().map(|(_, logprobs)| {
                    let pairs = logprobs.top.iter().map(|&(id, logprob)| (text(id), json!(logprob)));
                    Value::Object(pairs.collect())
                });
                json!({
                    "tokens": known.iter().map(|(id, _)| text(*id)).collect::<Vec<_>>(),
                    "token_logprobs": known.iter().map(|(_, logprobs)| logprobs.token).collect::<Vec<_>>(),
                    "top_logprobs": top.collect::<Vec<_>>(),
                    "text_offset": offsets,
                })
            }
        }
    }
}
