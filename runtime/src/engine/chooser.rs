//! The choice of a request's next token.

use std::{collections::HashMap, sync::Arc};

use super::{
    grammar::{GrammarState, allows},
    request::{Penalties, Request},
};
use crate::{
    error::{EngineError, Error, SharedCause},
    model::{BestTokens, ModelRunner, SelectedRow},
    sampling::{Sampler, TokenLogprobs, check_logits, largest_logit, logprobs, logprobs_of_best},
};

/// A token of the answer, with log-probabilities if they were requested.
pub(super) type Picked = (u32, Option<TokenLogprobs>);

/// Chooses the tokens of one request.
///
/// Penalties and biases change the logits, a grammar excludes tokens, and what is left is sampled, or its largest logit
/// taken. Log-probabilities are the model's own, before any of this.
#[derive(Debug)]
pub(super) struct Chooser {
    sampler: Option<Sampler>,
    bias: Vec<(u32, f32)>,
    penalties: Penalties,
    /// How often each token is in the prompt, and in the answer. Without penalties nothing is counted.
    counts: HashMap<u32, [u32; 2]>,
    grammar: Option<Box<dyn GrammarState>>,
    logprobs: Option<usize>,
    is_complete: bool,
}

/// The logits of a selected row, which take time to read.
struct Row<'r, R> {
    runner: &'r mut R,
    selected: usize,
    /// The token with the largest of them.
    token: u32,
}

impl<R: ModelRunner> Row<'_, R> {
    /// Returns whether a logit is NaN: the device's token is no token then.
    fn has_nan(&self) -> bool {
        self.token as usize >= self.runner.limits().vocab
    }

    fn best(&mut self) -> Result<Option<BestTokens>, Error> {
        Ok(self.runner.best(self.selected).map_err(failed)?)
    }

    fn logits(&mut self) -> Result<Vec<f32>, Error> {
        Ok(self.runner.logits(self.selected).map_err(failed)?)
    }
}

fn failed(error: Error) -> EngineError {
    let cause: SharedCause = Arc::new(error);
    EngineError::of_step(1, &cause)
}

impl Chooser {
    /// Makes the chooser of a request that was checked.
    ///
    /// # Errors
    /// The grammar cannot be used.
    pub(super) fn new(request: &Request, sampler: Option<Sampler>) -> Result<Self, Error> {
        let mut counts = HashMap::new();
        if request.penalties.repetition != Penalties::default().repetition {
            for &token in &request.prompt {
                counts.entry(token).or_insert([0, 0])[0] += 1;
            }
        }
        Ok(Self {
            sampler,
            bias: request.logit_bias.clone(),
            penalties: request.penalties,
            counts,
            grammar: request.grammar.as_ref().map(|grammar| grammar.begin()).transpose()?,
            logprobs: request.logprobs,
            is_complete: false,
        })
    }

    /// Begins what can be computed while the device runs.
    pub(super) fn prepare(&mut self) {
        if let Some(grammar) = &mut self.grammar {
            grammar.prepare();
        }
    }

    /// Returns whether the grammar allows nothing more.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns whether every token is the one with the largest logit, and nothing else of the logits is wanted.
    pub(super) fn takes_largest(&self) -> bool {
        let Self { sampler, bias, penalties, counts: _, grammar, logprobs, is_complete: _ } = self;
        let changes = !bias.is_empty() || *penalties != Penalties::default();
        sampler.is_none() && !changes && grammar.is_none() && logprobs.is_none()
    }

    /// Chooses the token after a selected row of the last step, and adds it to the answer.
    pub(super) fn choose<R: ModelRunner>(
        &mut self,
        runner: &mut R,
        selected: usize,
        row: SelectedRow,
    ) -> Result<Picked, Error> {
        let mut row = Row { runner, selected, token: row.token };
        let chosen = match self.of_best(&mut row)? {
            Some(token) => token,
            None => self.of_all(&mut row)?,
        };
        let best = if self.logprobs.is_some() { row.best()? } else { None };
        let known = self.logprobs.zip(best).and_then(|(count, best)| logprobs_of_best(&best, chosen, count));
        let found = match (self.logprobs, known) {
            (Some(count), None) => Some(logprobs(&row.logits()?, chosen, count)?),
            (_, known) => known,
        };
        if self.penalties != Penalties::default() {
            self.counts.entry(chosen).or_insert([0, 0])[1] += 1;
        }
        if let Some(grammar) = &mut self.grammar {
            self.is_complete = grammar.accept(chosen)?;
        }
        Ok((chosen, found))
    }

    /// Chooses from the most likely tokens, which are read only if they can decide. `None` if they do not.
    fn of_best<R: ModelRunner>(&mut self, row: &mut Row<'_, R>) -> Result<Option<u32>, Error> {
        if row.has_nan() || !self.bias.is_empty() || self.penalties != Penalties::default() {
            return Ok(None);
        }
        match (&mut self.sampler, &mut self.grammar) {
            (None, None) => Ok(Some(row.token)),
            (Some(sampler), None) => {
                let vocab = row.runner.limits().vocab;
                row.best()?.map_or(Ok(None), |best| sampler.sample_best(&best, vocab))
            }
            (None, Some(grammar)) => {
                let mask = grammar.allowed()?;
                if allows(mask, row.token) {
                    return Ok(Some(row.token));
                }
                let likely = row.best()?.map_or_else(Vec::new, |best| best.ids);
                Ok(likely.into_iter().find(|&token| allows(mask, token)))
            }
            (Some(_), Some(_)) => Ok(None),
        }
    }

    /// Chooses from all tokens.
    fn of_all<R: ModelRunner>(&mut self, row: &mut Row<'_, R>) -> Result<u32, Error> {
        let mut logits = row.logits()?;
        // First, because a grammar hides the logits of tokens that it excludes.
        if row.has_nan() {
            check_logits(&logits)?;
        }
        self.penalties.apply(&self.counts, &mut logits);
        for &(token, bias) in &self.bias {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit += bias;
            }
        }
        if let Some(grammar) = &mut self.grammar {
            let mask = grammar.allowed()?;
            for (token, logit) in (0u32..).zip(&mut logits) {
                if !allows(mask, token) {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
        match &mut self.sampler {
            Some(sampler) => sampler.sample(&logits),
            None => largest_logit(&logits),
        }
    }
}

impl Penalties {
    /// Changes the logits of tokens that were counted in the prompt and in the answer.
    fn apply(&self, counts: &HashMap<u32, [u32; 2]>, logits: &mut [f32]) {
        for (&token, &[in_prompt, in_answer]) in counts {
            let Some(logit) = logits.get_mut(token as usize) else { continue };
            if in_prompt + in_answer > 0 {
                *logit = if *logit > 0.0 { *logit / self.repetition } else { *logit * self.repetition };
            }
            if in_answer > 0 {
                *logit -= self.presence + self.frequency * in_answer as f32;
            }
        }
    }
}
