//! `POST /v1/completions`.

use serde_json::json;

use super::{
    error::ApiError,
    fields::Fields,
    generation::Generation,
    prompts::{self, Prompt},
};

/// The most alternatives of a token, as OpenAI has it.
pub(crate) const MAX_LOGPROBS: usize = 5;

/// The tokens of an answer without `max_tokens`, as OpenAI has it.
pub(crate) const DEFAULT_MAX_TOKENS: usize = 16;

/// The most prompts of a request.
pub(crate) const MAX_PROMPTS: usize = 128;

/// A request to continue texts.
#[derive(Debug)]
pub(crate) struct CompletionRequest {
    pub(crate) model: String,
    pub(crate) prompts: Vec<Prompt>,
    /// The alternatives of each token with log-probabilities, if these are wanted.
    pub(crate) logprobs: Option<usize>,
    pub(crate) generation: Generation,
}

impl CompletionRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// It is no JSON object, a field is wrong, or one is not supported.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let mut fields = Fields::parse(body)?;
        let prompts = prompts::require(&mut fields, "prompt", "prompts", MAX_PROMPTS)?;
        let refuse = |param: &str, message| Err(ApiError::invalid_field(param, message));
        let logprobs = fields.take::<usize>("logprobs")?;
        if let Some(found) = logprobs.filter(|&count| count > MAX_LOGPROBS) {
            return refuse("logprobs", format!("logprobs is {found}, expected 0 to {MAX_LOGPROBS}"));
        }
        let model = fields.take("model")?.unwrap_or_default();
        let mut generation = Generation::take(&mut fields)?;
        generation.max_tokens.get_or_insert(DEFAULT_MAX_TOKENS);
        if let Some(best_of) = fields.take::<usize>("best_of")?.filter(|&best_of| best_of != generation.count)
        {
            return refuse("best_of", format!("best_of is {best_of}, but only as many as n are generated"));
        }
        fields.only("echo", &json!(false))?;
        fields.only("suffix", &json!(""))?;
        fields.finish()?;
        Ok(Self { model, prompts, logprobs, generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_texts_or_tokens() {
        let of = |prompt: serde_json::Value| {
            let body = json!({ "prompt": prompt }).to_string();
            CompletionRequest::parse(body.as_bytes()).map(|request| request.prompts)
        };
        assert_eq!(of(json!("a")), Ok(vec![Prompt::Text("a".into())]));
        assert_eq!(of(json!(["a", "b"])), Ok(vec![Prompt::Text("a".into()), Prompt::Text("b".into())]));
        assert_eq!(of(json!([1, 2])), Ok(vec![Prompt::Tokens(vec![1, 2])]));
        assert_eq!(of(json!([[1], [2]])), Ok(vec![Prompt::Tokens(vec![1]), Prompt::Tokens(vec![2])]));
        let message = |prompt| of(prompt).unwrap_err().to_json()["error"]["message"].to_string();
        assert!(message(json!([-1])).contains("a string, a list of strings, or a list of token ids"));
        assert_eq!(message(json!([])), "\"found 0 prompts, expected 1 to 128\"");
    }
}
