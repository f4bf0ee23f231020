//! The request of a receipt, as the engine ran it.

use serde::{Deserialize, Serialize};

use super::fields;
use crate::{
    engine::{Penalties, Request, SharedGrammar, Speculation},
    sampling::Sampling,
};

/// A request with all that decides its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRequest {
    /// The tokens that are continued.
    pub prompt: Vec<u32>,
    /// Tokens of context of the model.
    pub context: usize,
    /// The most tokens of the answer.
    pub max_tokens: usize,
    /// Tokens that end the answer.
    pub eos: Vec<u32>,
    /// How tokens become the text in which stop texts are looked for.
    pub text: TextRules,
    /// How tokens are drawn; `null` takes the most likely ones.
    pub sampling: Option<RecordedSampling>,
    /// What makes tokens of the text so far less likely.
    pub penalties: Penalties,
    /// What is added to the logits of tokens.
    #[serde(with = "fields::biases")]
    pub logit_bias: Vec<(u32, f32)>,
    /// What the answer must be.
    pub constraint: Option<RecordedConstraint>,
    /// How tokens are guessed, which changes no answer.
    pub speculate: Option<Speculation>,
}

/// Settings of a sampler.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedSampling {
    temperature: f32,
    top_k: usize,
    top_p: f32,
    min_p: f32,
    #[serde(with = "fields::number")]
    seed: u64,
}

/// How tokens become text, and which text ends it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextRules {
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Whether the text continues that of the prompt. Otherwise it begins with its first word.
    pub continues_prompt: bool,
    /// Special tokens whose texts are a part of the text.
    pub special: Vec<String>,
}

/// What an answer must be, as text, because the order of a schema's properties matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RecordedConstraint {
    /// JSON that a schema accepts.
    JsonSchema(String),
    /// A text that a regular expression matches.
    Regex(String),
    /// A text of a grammar in llguidance's form of Lark.
    Lark(String),
}

impl RecordedRequest {
    /// Records a request to a model with so many tokens of context. The constraint is that of its grammar.
    #[must_use]
    pub fn new(
        request: &Request,
        context: usize,
        text: TextRules,
        constraint: Option<RecordedConstraint>,
    ) -> Self {
        let Request {
            prompt,
            max_tokens,
            eos,
            sampling,
            logit_bias,
            penalties,
            grammar: _,
            logprobs: _,
            speculate,
        } = request.clone();
        let sampling = sampling.map(RecordedSampling::from);
        Self {
            prompt,
            context,
            max_tokens,
            eos,
            text,
            sampling,
            penalties,
            logit_bias,
            constraint,
            speculate,
        }
    }

    /// Returns the engine's request. The grammar is that of the constraint.
    pub(super) fn to_request(&self, grammar: Option<SharedGrammar>) -> Request {
        let Self {
            prompt,
            context: _,
            max_tokens,
            eos,
            text: _,
            sampling,
            penalties,
            logit_bias,
            constraint: _,
            speculate,
        } = self.clone();
        Request {
            prompt,
            max_tokens,
            eos,
            sampling: sampling.map(Sampling::from),
            logit_bias,
            penalties,
            grammar,
            logprobs: None,
            speculate,
        }
    }
}

impl From<Sampling> for RecordedSampling {
    fn from(Sampling { temperature, top_k, top_p, min_p, seed }: Sampling) -> Self {
        Self { temperature, top_k, top_p, min_p, seed }
    }
}

impl From<RecordedSampling> for Sampling {
    fn from(RecordedSampling { temperature, top_k, top_p, min_p, seed }: RecordedSampling) -> Self {
        Self { temperature, top_k, top_p, min_p, seed }
    }
}

impl RecordedConstraint {
    /// Returns what it is, for messages.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::JsonSchema(_) => "a JSON schema",
            Self::Regex(_) => "a regular expression",
            Self::Lark(_) => "a grammar",
        }
    }
}

#[cfg(feature = "grammar")]
mod grammar {
    use super::RecordedConstraint;
    use crate::{grammar::Constraint, receipt::error::ReceiptError};

    impl From<&Constraint> for RecordedConstraint {
        fn from(constraint: &Constraint) -> Self {
            match constraint {
                Constraint::JsonSchema(schema) => Self::JsonSchema(schema.to_string()),
                Constraint::Regex(regex) => Self::Regex(regex.clone()),
                Constraint::Lark(grammar) => Self::Lark(grammar.clone()),
            }
        }
    }

    impl RecordedConstraint {
        /// Returns the constraint, to be compiled.
        ///
        /// # Errors
        /// The schema is no JSON.
        pub fn to_constraint(&self) -> Result<Constraint, ReceiptError> {
            Ok(match self {
                Self::JsonSchema(schema) => {
                    let refuse = |error| ReceiptError::Text(format!("its schema is no JSON: {error}"));
                    Constraint::JsonSchema(serde_json::from_str(schema).map_err(refuse)?)
                }
                Self::Regex(regex) => Constraint::Regex(regex.clone()),
                Self::Lark(grammar) => Constraint::Lark(grammar.clone()),
            })
        }
    }
}
