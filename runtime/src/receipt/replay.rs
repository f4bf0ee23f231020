//! Making an answer again.

use std::ops::ControlFlow;

use mlxcel_artifacts::Cancel;

use super::{document::Receipt, error::ReceiptError};
use crate::{
    engine::{Engine, SharedGrammar, StopReason},
    error::Error,
    model::ModelRunner,
    text::{stream::TextStream, tokenizer::Tokenizer},
};

/// What came of making an answer again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    /// All tokens are those of the receipt, and the answer ended for the same reason.
    Equal,
    /// A token differs. `None` is the end of an answer.
    Token {
        /// The index of the first such token, from 0.
        index: usize,
        /// The token generated.
        found: Option<u32>,
        /// The receipt's.
        expected: Option<u32>,
    },
    /// All tokens are equal, but the answer ended for another reason.
    Reason {
        /// The reason here.
        found: StopReason,
        /// The receipt's.
        expected: StopReason,
    },
    /// It was cancelled.
    Cancelled,
}

/// Runs the request of a receipt again. Ends at the first token that differs.
///
/// `grammar` is that of the receipt's constraint. Without a tokenizer no stop text is found.
///
/// # Errors
/// The engine refuses the request, a token of the receipt is outside the vocabulary, or a step fails.
pub fn replay<R: ModelRunner>(
    engine: &mut Engine<R>,
    receipt: &Receipt,
    tokenizer: Option<&Tokenizer>,
    grammar: Option<SharedGrammar>,
    cancel: &Cancel,
) -> Result<Replayed, ReceiptError> {
    let vocab = engine.limits().vocab;
    let recorded = &receipt.answer.tokens;
    if let Some(index) = recorded.iter().position(|&token| token as usize >= vocab) {
        return Err(ReceiptError::Token { token: recorded[index], index, vocab });
    }
    let request = receipt.request.to_request(grammar);
    let eos = request.eos.clone();
    let mut stream = tokenizer.map(|tokenizer| stream(tokenizer, receipt)).transpose()?;
    let (mut count, mut is_stopped, mut failure) = (0, false, None);
    let mut push = |token: u32| -> Result<bool, Error> {
        if let (Some(stream), false) = (&mut stream, eos.contains(&token)) {
            is_stopped = stream.push(token)?.stopped;
        }
        let is_equal = recorded.get(count) == Some(&token);
        count += 1;
        Ok(is_stopped || !is_equal)
    };
    let generation = engine.generate(request, cancel, &mut |token| match push(token) {
        Ok(false) => ControlFlow::Continue(()),
        Ok(true) => ControlFlow::Break(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    })?;
    if let Some(error) = failure {
        return Err(error.into());
    }
    if generation.stop_reason == StopReason::Cancelled {
        return Ok(Replayed::Cancelled);
    }
    let found = &generation.tokens;
    let index = (0..found.len().max(recorded.len())).find(|&index| found.get(index) != recorded.get(index));
    if let Some(index) = index {
        let (found, expected) = (found.get(index).copied(), recorded.get(index).copied());
        return Ok(Replayed::Token { index, found, expected });
    }
    // Text that was held back as the beginning of a stop text may have one after all.
    let ends_in_stop = match &mut stream {
        Some(stream) if !is_stopped => stream.finish()?.stopped,
        _ => is_stopped,
    };
    let found = if ends_in_stop { StopReason::Stop } else { generation.stop_reason };
    let expected = receipt.answer.finish_reason;
    Ok(if found == expected { Replayed::Equal } else { Replayed::Reason { found, expected } })
}

/// Begins the text of the answer.
fn stream(tokenizer: &Tokenizer, receipt: &Receipt) -> Result<TextStream, Error> {
    let request = &receipt.request;
    let before = if request.text.continues_prompt { request.prompt.as_slice() } else { &[] };
    let special: Vec<&str> = request.text.special.iter().map(String::as_str).collect();
    Ok(tokenizer.stream(before, &request.text.stop)?.keeping(&special))
}
