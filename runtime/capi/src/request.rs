//! Requests as C makes them.

use mlxcel_runtime::{
    AnswerOptions, Chat, Drawing, Message, Prompt, TextModel, engine::Penalties, grammar::Constraint,
};
use serde_json::{Map, Value};

use crate::errors::Problem;

/// A request whose texts were read.
#[derive(Debug, Default)]
pub(crate) struct Given<'a> {
    pub(crate) prompt: Option<&'a str>,
    pub(crate) tokens: Option<&'a [u32]>,
    pub(crate) messages: Option<&'a str>,
    pub(crate) max_tokens: usize,
    pub(crate) temperature: f32,
    pub(crate) top_k: usize,
    pub(crate) top_p: f32,
    pub(crate) min_p: f32,
    pub(crate) seed: Option<u64>,
    pub(crate) stop: Vec<String>,
    pub(crate) ignore_eos: bool,
    pub(crate) json_schema: Option<&'a str>,
    pub(crate) regex: Option<&'a str>,
    pub(crate) grammar: Option<&'a str>,
    pub(crate) speculate: bool,
    pub(crate) logprobs: bool,
    pub(crate) top_logprobs: usize,
    pub(crate) penalties: Penalties,
    pub(crate) logit_bias: Vec<(u32, f32)>,
}

impl Given<'_> {
    /// Returns the prompt's tokens.
    ///
    /// # Errors
    /// There is none, or several; or the tokenizer or the chat template refuses it.
    pub(crate) fn prompt(&self, model: &TextModel) -> Result<Prompt, Problem> {
        match (self.prompt, self.tokens, self.messages) {
            (Some(text), None, None) => {
                Ok(Prompt { tokens: model.tokenizer()?.encode(text, true)?, is_message: false })
            }
            (None, Some(tokens), None) => Ok(Prompt { tokens: tokens.to_vec(), is_message: false }),
            (None, None, Some(messages)) => {
                Ok(Prompt { tokens: model.encode_chat(&chat(messages)?)?, is_message: true })
            }
            _ => Err(Problem::Argument(
                "found none or several of prompt, tokens and messages_json, expected one\n\
                 hint: leave the others NULL"
                    .into(),
            )),
        }
    }

    /// Returns the options.
    ///
    /// # Errors
    /// There are several constraints, a schema that is no JSON, or likely tokens without log-probabilities.
    pub(crate) fn options(&self) -> Result<AnswerOptions, Problem> {
        let constraint = match (self.json_schema, self.regex, self.grammar) {
            (None, None, None) => None,
            (Some(schema), None, None) => {
                let schema = serde_json::from_str(schema);
                let refuse =
                    |problem| Problem::Argument(format!("json_schema: {problem}, expected a JSON schema"));
                Some(Constraint::JsonSchema(schema.map_err(refuse)?))
            }
            (None, Some(regex), None) => Some(Constraint::Regex(regex.to_owned())),
            (None, None, Some(grammar)) => Some(Constraint::Lark(grammar.to_owned())),
            _ => {
                let text = "found several of json_schema, regex and grammar, expected one";
                return Err(Problem::Argument(text.into()));
            }
        };
        // 0 says nothing, except of a temperature.
        let drawing = Drawing {
            temperature: Some(self.temperature),
            top_k: Some(self.top_k),
            top_p: Some(self.top_p).filter(|&top_p| top_p != 0.0),
            min_p: Some(self.min_p),
            seed: self.seed,
        };
        if self.top_logprobs > 0 && !self.logprobs {
            let text = "found top_logprobs without logprobs, expected both\nhint: set logprobs to true";
            return Err(Problem::Argument(text.into()));
        }
        let mut penalties = self.penalties;
        if penalties.repetition == 0.0 {
            penalties.repetition = Penalties::default().repetition;
        }
        Ok(AnswerOptions {
            max_tokens: Some(self.max_tokens).filter(|&tokens| tokens > 0),
            drawing,
            stop: self.stop.clone(),
            ignore_eos: self.ignore_eos,
            constraint,
            speculate: self.speculate,
            logprobs: self.logprobs.then_some(self.top_logprobs),
            logit_bias: self.logit_bias.clone(),
            penalties,
        })
    }
}

/// Reads a chat: a list of messages as OpenAI's API has it.
fn chat(text: &str) -> Result<Chat, Problem> {
    let refuse = |problem: &dyn std::fmt::Display| {
        Problem::Argument(format!(
            "messages_json: {problem}, expected a list of objects with role and content\n\
             hint: [{{\"role\": \"user\", \"content\": \"Hello\"}}]"
        ))
    };
    let messages: Vec<Map<String, Value>> = serde_json::from_str(text).map_err(|problem| refuse(&problem))?;
    let message = |mut fields: Map<String, Value>| {
        let role = fields.remove("role");
        let Some(Value::String(role)) = role else { return Err(refuse(&"found a message without a role")) };
        let content = match fields.remove("content") {
            Some(Value::String(text)) => Some(text),
            None | Some(Value::Null) => None,
            Some(_) => return Err(refuse(&"found a content that is no text")),
        };
        Ok(Message { role, content, fields })
    };
    let messages = messages.into_iter().map(message).collect::<Result<Vec<_>, _>>()?;
    Ok(messages.into())
}
