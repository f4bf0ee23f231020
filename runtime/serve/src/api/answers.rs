//! Answers as clients read them.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher as _,
    time::{SystemTime, UNIX_EPOCH},
};

use mlxcel_runtime::{Timings, Tokenizer, receipt::Receipt};
use serde_json::{Value, json};

use crate::{answer::AnswerToken, tools::Delta};

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

/// An answer, or a part of a streamed one.
#[derive(Debug, Default)]
pub(crate) struct AnswerPart {
    pub(crate) deltas: Vec<Delta>,
    pub(crate) tokens: Vec<AnswerToken>,
    pub(crate) finish: Option<&'static str>,
}

/// How much of a streamed answer was sent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sent {
    /// The length of its text, in characters.
    offset: usize,
    calls: usize,
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

    pub(crate) fn id(&self) -> &str {
        &self.id
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
    pub(crate) fn whole(
        &self,
        tokenizer: &Tokenizer,
        answers: Vec<AnswerPart>,
        usage: Usage,
        receipts: &[Receipt],
    ) -> Value {
        let choice = |(index, answer): (usize, AnswerPart)| {
            let AnswerPart { deltas, tokens, finish } = answer;
            let logprobs = self.logprobs(tokenizer, &tokens, &mut 0);
            let mut choice = json!({ "index": index, "logprobs": logprobs, "finish_reason": finish });
            match self.endpoint {
                Endpoint::Chat => {
                    choice["message"] = message(&deltas);
                }
                Endpoint::Completion => choice["text"] = content(&deltas).into(),
            }
            choice
        };
        let name = if self.endpoint == Endpoint::Chat { "chat.completion" } else { "text_completion" };
        let choices = answers.into_iter().enumerate().map(choice).collect();
        let mut object = self.object(name, choices);
        object["usage"] = usage.to_json();
        add_receipts(&mut object, receipts);
        object
    }

    /// Returns the first part of a streamed message, which has no text.
    pub(crate) fn start(&self, index: usize, include_usage: bool) -> Option<Value> {
        let delta = json!({ "role": "assistant", "content": "", "refusal": null });
        let choice = json!({ "index": index, "delta": delta, "logprobs": null, "finish_reason": null });
        (self.endpoint == Endpoint::Chat).then(|| self.chunk(vec![choice], include_usage))
    }

    /// Returns a part of a streamed answer, after what was sent.
    pub(crate) fn part(
        &self,
        index: usize,
        tokenizer: &Tokenizer,
        answer: &AnswerPart,
        sent: &mut Sent,
        include_usage: bool,
    ) -> Value {
        let logprobs = self.logprobs(tokenizer, &answer.tokens, &mut sent.offset);
        let mut choice = json!({ "index": index, "logprobs": logprobs, "finish_reason": answer.finish });
        match self.endpoint {
            Endpoint::Chat => choice["delta"] = delta(&answer.deltas, &mut sent.calls),
            Endpoint::Completion => choice["text"] = content(&answer.deltas).into(),
        }
        self.chunk(vec![choice], include_usage)
    }

    /// Returns the last part of a stream, which has the numbers of tokens.
    pub(crate) fn usage(&self, usage: Usage) -> Value {
        let mut object = self.chunk(vec![], true);
        object["usage"] = usage.to_json();
        object
    }

    /// Returns the last part of a stream with receipts.
    pub(crate) fn receipts(&self, receipts: &[Receipt], include_usage: bool) -> Value {
        let mut object = self.chunk(vec![], include_usage);
        add_receipts(&mut object, receipts);
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

/// Adds the receipts of answers, in their order: `receipt` of one, or `receipts` of several.
fn add_receipts(object: &mut Value, receipts: &[Receipt]) {
    match receipts {
        [] => {}
        [receipt] => object["receipt"] = json!(receipt),
        several => object["receipts"] = json!(several),
    }
}

/// Returns the text of an answer.
fn content(deltas: &[Delta]) -> String {
    let text = deltas.iter().filter_map(|delta| match delta {
        Delta::Content(text) => Some(text.as_str()),
        _ => None,
    });
    text.collect()
}

/// Returns a whole message. Its content is `null` if it has calls and no text.
fn message(deltas: &[Delta]) -> Value {
    let mut new = delta(deltas, &mut 0);
    for call in new.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        // Only parts of a stream say which call they belong to.
        call.as_object_mut().map(|call| call.remove("index"));
    }
    let content = if new.get("tool_calls").is_some() { Value::Null } else { "".into() };
    let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
    if let (Some(message), Value::Object(new)) = (message.as_object_mut(), new) {
        message.extend(new);
    }
    message
}

/// Returns what is new of a message, after this number of calls.
fn delta(deltas: &[Delta], calls: &mut usize) -> Value {
    let (mut content, mut reasoning) = (String::new(), String::new());
    // The calls that begin here, after the arguments of the one before.
    let mut arguments = String::new();
    let mut new_calls: Vec<Value> = Vec::new();
    let close = |arguments: &mut String, new_calls: &mut Vec<Value>, index: usize| {
        let arguments = std::mem::take(arguments);
        match new_calls.last_mut() {
            Some(call) => call["function"]["arguments"] = arguments.into(),
            None if arguments.is_empty() => {}
            None => new_calls.push(json!({ "index": index, "function": { "arguments": arguments } })),
        }
    };
    for delta in deltas {
        match delta {
            Delta::Content(text) => content.push_str(text),
            Delta::Reasoning(text) => reasoning.push_str(text),
            Delta::Arguments(text) => arguments.push_str(text),
            Delta::Call { name } => {
                close(&mut arguments, &mut new_calls, calls.saturating_sub(1));
                let function = json!({ "name": name, "arguments": "" });
                let call =
                    json!({ "index": *calls, "id": call_id(), "type": "function", "function": function });
                new_calls.push(call);
                *calls += 1;
            }
        }
    }
    close(&mut arguments, &mut new_calls, calls.saturating_sub(1));
    let mut object = json!({});
    for (name, text) in [("content", content), ("reasoning_content", reasoning)] {
        if !text.is_empty() {
            object[name] = text.into();
        }
    }
    if !new_calls.is_empty() {
        object["tool_calls"] = new_calls.into();
    }
    object
}

/// The length of a call's id. Mistral's chat templates take no other.
const CALL_ID: usize = 9;

/// Returns a random id of a call: letters and digits.
fn call_id() -> String {
    let mut random = RandomState::new().hash_one(0);
    let digits = std::iter::repeat_with(|| {
        let digit = char::from_digit((random % 36) as u32, 36).unwrap_or('0');
        random /= 36;
        digit
    });
    digits.take(CALL_ID).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Delta {
        Delta::Call { name: name.into() }
    }

    #[test]
    fn messages_have_texts_and_calls() {
        let arguments = |text: &str| Delta::Arguments(text.into());
        let deltas = [
            Delta::Reasoning("r".into()),
            Delta::Content("a".into()),
            Delta::Content("b".into()),
            call("f"),
            arguments("{"),
            arguments("}"),
            call("g"),
        ];
        let whole = message(&deltas);
        assert_eq!((&whole["content"], &whole["reasoning_content"]), (&json!("ab"), &json!("r")));
        let calls = whole["tool_calls"].as_array().unwrap();
        assert_eq!(calls[0]["function"], json!({ "name": "f", "arguments": "{}" }));
        let id = calls[1]["id"].as_str().unwrap();
        assert!(id.len() == CALL_ID && id != calls[0]["id"] && calls[1].get("index").is_none());
        assert_eq!(message(&deltas[3..])["content"], Value::Null);
        assert_eq!(message(&[])["content"], "");

        let mut sent = 0;
        assert_eq!(delta(&deltas[3..5], &mut sent)["tool_calls"][0]["function"]["arguments"], "{");
        let more = json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "}" } }] });
        assert_eq!(delta(&deltas[5..6], &mut sent), more);
        assert_eq!(delta(&deltas[6..], &mut sent)["tool_calls"][0]["index"], 1);
        assert_eq!(delta(&[], &mut sent), json!({}));
    }
}
