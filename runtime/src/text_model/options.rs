//! What is asked of an answer.

use std::hash::{BuildHasher as _, RandomState};

use super::{request::Prompt, texts::Texts};
#[cfg(feature = "grammar")]
use crate::grammar::Constraint;
use crate::{
    engine::{Penalties, Request, SharedGrammar, Speculation},
    error::Error,
    sampling::Drawing,
};

/// The most tokens of an answer that continues a text, if nothing is said of it. A message ends when it is
/// complete, or when there is no more room.
const DEFAULT_TOKENS: usize = 128;

/// What is asked of an answer.
#[derive(Debug, Clone, Default)]
pub struct AnswerOptions {
    /// The most tokens; `None` is what there is room for, and at most 128 for a text that is continued.
    pub max_tokens: Option<usize>,
    /// How tokens are drawn. Without a seed, another one is taken each time.
    pub drawing: Drawing,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// True to go on after tokens that end a text.
    pub ignore_eos: bool,
    /// [`Request::logprobs`].
    pub logprobs: Option<usize>,
    /// [`Request::logit_bias`].
    pub logit_bias: Vec<(u32, f32)>,
    /// [`Request::penalties`].
    pub penalties: Penalties,
    /// What the answer must be.
    #[cfg(feature = "grammar")]
    pub constraint: Option<Constraint>,
    /// True to guess tokens from the text. The answer is the same as without.
    pub speculate: bool,
}

impl AnswerOptions {
    /// Returns the grammar of the constraint.
    #[cfg(feature = "grammar")]
    pub(super) fn constraint(&self, texts: &Texts, vocab: usize) -> Result<Option<SharedGrammar>, Error> {
        self.constraint.as_ref().map(|constraint| texts.grammar(constraint, vocab)).transpose()
    }

    /// Returns nothing, because this crate was built without grammars.
    #[cfg(not(feature = "grammar"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with grammars")]
    pub(super) fn constraint(&self, _: &Texts, _: usize) -> Result<Option<SharedGrammar>, Error> {
        Ok(None)
    }

    /// Makes the request that answers a prompt, which `eos` ends. So many tokens as `room` fit after the prompt.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub(super) fn request(
        &self,
        prompt: Prompt,
        eos: &[u32],
        grammar: Option<SharedGrammar>,
        room: usize,
    ) -> Result<Request, Error> {
        let Prompt { tokens: prompt, is_message } = prompt;
        // The only source of randomness in std.
        let seed = self.drawing.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let sampling = self.drawing.sampling(seed).map_err(Error::from)?;
        let default = if is_message { room } else { room.min(DEFAULT_TOKENS) };
        Ok(Request {
            prompt,
            max_tokens: self.max_tokens.unwrap_or(default),
            eos: if self.ignore_eos { Vec::new() } else { eos.to_vec() },
            sampling,
            logit_bias: self.logit_bias.clone(),
            penalties: self.penalties,
            grammar,
            logprobs: self.logprobs,
            speculate: self.speculate.then(Speculation::default),
        })
    }
}
