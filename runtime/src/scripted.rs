//! A session and a model that follow a script, for tests of code that uses [`Session`] or the engine.

use std::fmt;

mod model;

pub use model::ScriptedModel;

use crate::{
    error::Error,
    session::{Capabilities, Session, check_append, check_rewind},
};

/// Computes logits from the tokens so far.
type Script = Box<dyn Fn(&[u32]) -> Vec<f32>>;

/// A session without a model, whose logits are a function of the tokens so far.
pub struct ScriptedSession {
    capabilities: Capabilities,
    tokens: Vec<u32>,
    script: Script,
    /// True if a token was appended since the start or the last rewind.
    has_logits: bool,
    calls: Vec<Call>,
}

/// A call of a [`ScriptedSession`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// `prefill` with this many tokens.
    Prefill(usize),
    /// `decode_step` with this token.
    Decode(u32),
    /// `logits`.
    Logits,
    /// `rewind` to this position.
    Rewind(usize),
}

impl ScriptedSession {
    /// Makes a session whose logits are `script` of all tokens in the cache. `script` returns one logit per id.
    pub fn new(context: usize, vocab: usize, script: impl Fn(&[u32]) -> Vec<f32> + 'static) -> Self {
        let capabilities = Capabilities {
            context,
            vocab,
            prefill: vec![4],
            decode: vec![context],
            device: "scripted".into(),
            ..Capabilities::default()
        };
        Self { capabilities, tokens: vec![], script: Box::new(script), has_logits: false, calls: vec![] }
    }

    /// Makes a session that answers a prompt of `prompt` tokens with `answer`, then repeats the answer's last token.
    ///
    /// # Panics
    /// `answer` is empty.
    pub fn answering(context: usize, vocab: usize, prompt: usize, answer: &[u32]) -> Self {
        assert!(!answer.is_empty(), "an answer has at least one token");
        let answer = answer.to_vec();
        Self::new(context, vocab, move |tokens| {
            let token = answer[tokens.len().saturating_sub(prompt).min(answer.len() - 1)];
            (0..vocab).map(|id| if id == token as usize { 10.0 } else { 0.0 }).collect()
        })
    }

    /// Returns the tokens in the cache.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Returns the calls of the session, in order.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    fn append(&mut self, tokens: &[u32]) -> Result<u32, Error> {
        check_append(&self.capabilities, self.tokens.len(), tokens)?;
        self.tokens.extend(tokens);
        self.has_logits = true;
        let logits = (self.script)(&self.tokens);
        Ok(best(&logits))
    }
}

/// Returns the id with the largest logit, the lowest on a tie, as devices do.
fn best(logits: &[f32]) -> u32 {
    let best = (0..logits.len()).reduce(|best, id| if logits[id] > logits[best] { id } else { best });
    best.map_or(0, |id| u32::try_from(id).unwrap_or(u32::MAX))
}

impl Session for ScriptedSession {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn position(&self) -> usize {
        self.tokens.len()
    }

    fn rewind(&mut self, position: usize) -> Result<(), Error> {
        self.calls.push(Call::Rewind(position));
        check_rewind(self.tokens.len(), position)?;
        self.tokens.truncate(position);
        self.has_logits = false;
        Ok(())
    }

    fn prefill(&mut self, tokens: &[u32]) -> Result<u32, Error> {
        self.calls.push(Call::Prefill(tokens.len()));
        self.append(tokens)
    }

    fn decode_step(&mut self, token: u32) -> Result<u32, Error> {
        self.calls.push(Call::Decode(token));
        self.append(&[token])
    }

    fn logits(&mut self) -> Result<Vec<f32>, Error> {
        self.calls.push(Call::Logits);
        if self.has_logits { Ok((self.script)(&self.tokens)) } else { Err(Error::NoLogits) }
    }
}

impl fmt::Debug for ScriptedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedSession").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}
