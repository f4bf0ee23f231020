//! Answers to prompts, whole or as a stream.

use std::sync::Arc;

use axum::{
    Json,
    response::{IntoResponse as _, Response},
};

use mlxcel_runtime::receipt::{RecordedRequest, TextRules};

use super::streaming::stream;
use crate::{
    answer::{Answer, Part, ReceiptDraft, Running},
    api::{
        answers::{AnswerPart, Endpoint, Envelope, Usage},
        error::ApiError,
        generation::Generation,
    },
    generator::Generator,
    grammars::Enforced,
    model::ServedModel,
    observe::record::Record,
    state::Shared,
    tools::Expected,
};

/// What a request asks for.
pub(super) struct Asked {
    pub(super) generator: Arc<Generator>,
    pub(super) endpoint: Endpoint,
    pub(super) prompts: Vec<Vec<u32>>,
    pub(super) logprobs: Option<usize>,
    pub(super) generation: Generation,
    /// What answers must be.
    pub(super) grammar: Option<Enforced>,
    /// What answers can have besides text.
    pub(super) expected: Expected,
}

/// Answers a request.
pub(super) async fn generate(
    state: Shared,
    model: &ServedModel,
    record: Record,
    asked: Asked,
) -> Result<Response, ApiError> {
    let digest = model.digest().to_string();
    let envelope = Envelope::new(asked.endpoint, model.name(), &digest);
    record.begin(model.name(), envelope.id());
    let running = submit(model, &record, &asked)?;
    if asked.generation.stream {
        let include_usage = asked.generation.include_usage;
        return Ok(stream(state, asked.generator, record, envelope, include_usage, running).into_response());
    }
    let (mut usage, mut answers, mut receipts) = (Usage::default(), Vec::new(), Vec::new());
    for Running { mut answer, prompt } in running {
        let mut whole = AnswerPart::default();
        loop {
            match answer.next().await? {
                Some(Part::Token { mut deltas, token }) => {
                    whole.deltas.append(&mut deltas);
                    whole.tokens.push(token);
                }
                Some(Part::End { mut deltas, finish, timings, receipt }) => {
                    whole.deltas.append(&mut deltas);
                    whole.finish = Some(finish);
                    usage.add(prompt, whole.tokens.len(), &timings);
                    if let Some(receipt) = receipt {
                        receipts.push(state.sign(*receipt)?);
                    }
                }
                None => break,
            }
        }
        answers.push(whole);
    }
    Ok(Json(envelope.whole(asked.generator.tokenizer(), answers, usage, &receipts)).into_response())
}

/// Submits all answers of a request, so that a refusal comes before anything else.
fn submit(model: &ServedModel, record: &Record, asked: &Asked) -> Result<Vec<Running>, ApiError> {
    let Asked { generator, endpoint, prompts, logprobs, generation, grammar, expected } = asked;
    let context = generator.context();
    let (answers, limit) = (prompts.len().saturating_mul(generation.count), generator.client().queue_limit());
    if answers > limit {
        // Such a request would never find enough room.
        let message =
            format!("the request has {answers} answers, expected at most {limit}, as many as may wait");
        return Err(ApiError::invalid_field("n", message));
    }
    let mut running = Vec::new();
    for prompt in prompts {
        let room = context.saturating_sub(prompt.len());
        if let Some(tokens) = generation.max_tokens.filter(|&tokens| tokens > room && room > 0) {
            let message = format!(
                "the prompt has {} tokens and the answer may have {tokens}, expected at most {context} together",
                prompt.len()
            );
            return Err(ApiError::context_exceeded(message));
        }
        let max_tokens = generation.max_tokens.unwrap_or(room.max(1));
        // A message begins with its first word. The continuation of a text may begin with a space, and so may the text
        // of a format, which says it.
        let is_message = *endpoint == Endpoint::Chat && generation.constraint.is_none();
        let before = if is_message { &[][..] } else { prompt };
        for index in 0..generation.count {
            let shared = grammar.as_ref().map(|enforced| enforced.grammar.clone());
            let request =
                generation.request(prompt.clone(), generator.eos(), max_tokens, *logprobs, shared, index);
            let draft = generation.receipt.then(|| {
                let text = TextRules {
                    stop: generation.stops.clone(),
                    continues_prompt: !is_message,
                    special: expected.special().into_iter().map(str::to_owned).collect(),
                };
                let constraint = grammar.as_ref().map(|enforced| (&enforced.constraint).into());
                ReceiptDraft::new(model, RecordedRequest::new(&request, context, text, constraint))
            });
            let prompt = if index == 0 { prompt.len() } else { 0 };
            let record = record.answer(generator.name(), prompt);
            let answer = Answer::ask(generator, request, before, &generation.stops, expected, record, draft)?;
            running.push(Running { answer, prompt });
        }
    }
    Ok(running)
}
