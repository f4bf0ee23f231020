//! The requests that C makes.

use std::ffi::c_char;

use mlxcel_runtime::{TextModel, TextRequest, engine::Penalties};

use super::{
    pointers::{array, need_text, options, sized_text, text},
    types::Request,
};
use crate::{errors::Problem, request::Given};

/// Reads a request.
pub(crate) fn read(model: &TextModel, from: *const Request) -> Result<TextRequest, Problem> {
    if from.is_null() {
        return Err(Problem::Argument("found no request, expected one".into()));
    }
    let given = options("request", from)?;
    let has_tokens = !given.tokens.is_null() || given.token_count > 0;
    let tokens = if has_tokens { Some(array("tokens", given.tokens, given.token_count)?) } else { None };
    let stop = array("stop", given.stop, given.stop_count)?;
    let stop = stop.iter().map(|&text: &*const c_char| need_text("stop", text).map(str::to_owned));
    let tokens_biased = array("logit_bias_tokens", given.logit_bias_tokens, given.logit_bias_count)?;
    let biases = array("logit_bias", given.logit_bias, given.logit_bias_count)?;
    let given = Given {
        prompt: sized_text("prompt", given.prompt, given.prompt_length)?,
        tokens,
        messages: text("messages_json", given.messages_json)?,
        max_tokens: given.max_tokens,
        temperature: given.temperature,
        top_k: given.top_k,
        top_p: given.top_p,
        min_p: given.min_p,
        seed: Some(given.seed).filter(|_| given.has_seed),
        stop: stop.collect::<Result<_, _>>()?,
        ignore_eos: given.ignore_eos,
        json_schema: text("json_schema", given.json_schema)?,
        regex: text("regex", given.regex)?,
        grammar: text("grammar", given.grammar)?,
        speculate: given.speculate,
        logprobs: given.logprobs,
        top_logprobs: given.top_logprobs,
        penalties: Penalties {
            presence: given.presence_penalty,
            frequency: given.frequency_penalty,
            repetition: given.repetition_penalty,
        },
        logit_bias: tokens_biased.iter().copied().zip(biases.iter().copied()).collect(),
    };
    Ok(model.request(given.prompt(model)?, &given.options()?)?)
}
