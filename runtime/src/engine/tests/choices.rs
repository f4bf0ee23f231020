//! Biases, penalties, grammars and log-probabilities.

use super::{
    super::{Grammar, GrammarState, Penalties, SharedGrammar},
    *,
};
use crate::{error::EngineError, sampling::Sampling};

/// A model whose logits are always these.
fn fixed(logits: [f32; VOCAB]) -> ScriptedModel {
    ScriptedModel::new(plain(), move |_, _| logits.to_vec())
}

/// Logits whose largest is that of token 3, then 5, 7 and 1.
const LOGITS: [f32; VOCAB] = [0.0, 1.0, 0.0, 4.0, 0.0, 3.0, 0.0, 2.0, 0.0, 0.0, 0.0, -1.0];

fn tokens(request: Request) -> Vec<u32> {
    generate(&mut engine(fixed(LOGITS)), request).unwrap().tokens
}

#[test]
fn a_bias_is_added_to_a_logit() {
    let biased =
        |logit_bias: &[(u32, f32)]| tokens(Request { logit_bias: logit_bias.to_vec(), ..request(&[1], 2) });
    assert_eq!(biased(&[(5, 0.9)]), [3, 3]);
    assert_eq!(biased(&[(5, 1.1)]), [5, 5]);
    assert_eq!(biased(&[(3, -100.0), (5, f32::NEG_INFINITY)]), [7, 7]);
}

#[test]
fn penalties_count_tokens() {
    let penalized = |penalties| tokens(Request { penalties, ..request(&[3, 11], 5) });
    let none = Penalties::default();
    // Once for a token of the answer.
    assert_eq!(penalized(Penalties { presence: 1.5, ..none }), [3, 5, 3, 3, 3]);
    // As often as it is in the answer: 3 has 4, 3.4, 2.8; 5 has 3, 2.4.
    assert_eq!(penalized(Penalties { frequency: 0.6, ..none }), [3, 3, 5, 3, 5]);
    // The prompt counts, too: 3 has 2 and 11 has -2.
    assert_eq!(penalized(Penalties { repetition: 2.0, ..none }), [5, 3, 3, 3, 3]);
    let sampling = Some(Sampling { temperature: 1e-6, ..Sampling::default() });
    let sampled =
        Request { sampling, penalties: Penalties { presence: 1.5, ..none }, ..request(&[3, 11], 5) };
    assert_eq!(tokens(sampled), [3, 5, 3, 3, 3]);
}

/// Allows given tokens at each place, and nothing after them.
#[derive(Debug, Clone)]
struct Places {
    allowed: Vec<Vec<u32>>,
    at: usize,
    mask: [u32; 1],
}

pub(super) fn places(allowed: &[&[u32]]) -> Option<SharedGrammar> {
    let allowed = allowed.iter().map(|tokens| tokens.to_vec()).collect();
    Some(SharedGrammar::new(Places { allowed, at: 0, mask: [0] }))
}

impl Grammar for Places {
    fn begin(&self) -> Result<Box<dyn GrammarState>, Error> {
        match self.allowed.is_empty() {
            true => Err(EngineError::Grammar { problem: "it is empty".into() }.into()),
            false => Ok(Box::new(self.clone())),
        }
    }
}

impl GrammarState for Places {
    fn allowed(&mut self) -> Result<&[u32], Error> {
        self.mask = [self.allowed[self.at].iter().map(|token| 1 << token).sum()];
        Ok(&self.mask)
    }

    fn accept(&mut self, token: u32) -> Result<bool, Error> {
        assert!(self.allowed[self.at].contains(&token));
        self.at += 1;
        Ok(self.at == self.allowed.len())
    }
}

#[test]
fn an_answer_is_of_its_grammar() {
    let sampling = Some(Sampling { temperature: 5.0, ..Sampling::default() });
    let speculate = Some(crate::engine::Speculation { ngram_min: 1, ..Default::default() });
    for (sampling, speculate) in [(None, None), (sampling, None), (None, speculate), (sampling, speculate)] {
        // The best one, one of the best four, one that is not, and the only one.
        let grammar = places(&[&[3, 5], &[7, 1], &[0, 11], &[2]]);
        let request = Request { sampling, speculate, grammar, ..request(&[3, 7, 0, 2, 3], 9) };
        let answer = generate(&mut engine(fixed(LOGITS)), request).unwrap();
        assert_eq!((answer.tokens.len(), answer.stop_reason), (4, StopReason::Stop));
        if sampling.is_none() {
            assert_eq!(answer.tokens, [3, 7, 0, 2]);
        }
    }
}

#[test]
fn a_grammar_that_allows_nothing_fails() {
    let mut engine = engine(fixed(LOGITS));
    let failed = generate(&mut engine, Request { grammar: places(&[&[3], &[]]), ..request(&[1], 9) });
    assert_eq!(
        failed.unwrap_err().to_string(),
        "the logit of token 0 is -inf, expected a number\n\
         hint: check the weights, or compile the bundle with --precision f32"
    );
    let refused = generate(&mut engine, Request { grammar: places(&[]), ..request(&[1], 9) });
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the grammar cannot be used: it is empty\nhint: correct or simplify the grammar or schema"
    );
    // The engine goes on, and nothing is left.
    assert_eq!(generate(&mut engine, request(&[1], 2)).unwrap().tokens, [3, 3]);
    assert_eq!(engine.usage().pools[0].free, 64);
}

#[test]
fn log_probabilities_are_the_models_own() {
    let mut engine = engine(fixed(LOGITS));
    let total = LOGITS.iter().map(|logit| logit.exp()).sum::<f32>().ln();
    // 11 is none of the best that the device finds.
    let request = Request { logit_bias: vec![(11, 100.0)], logprobs: Some(2), ..request(&[1], 1) };
    let id = engine.submit(request).unwrap();
    finish(&mut engine);
    let EventKind::Token { token, logprobs } = engine.next_event_of(id).unwrap().kind else { panic!() };
    let logprobs = logprobs.unwrap();
    assert_eq!((token, logprobs.top[0].0, logprobs.top[1].0), (11, 3, 5));
    for (found, logit) in [(logprobs.token, -1.0), (logprobs.top[0].1, 4.0), (logprobs.top[1].1, 3.0)] {
        assert!((found - (logit - total)).abs() < 1e-5, "{found}");
    }
}

#[test]
fn changes_out_of_range_are_refused() {
    let refused = |request: Request| {
        let error = engine(fixed(LOGITS)).submit(request).unwrap_err().to_string();
        error.lines().next().unwrap().to_owned()
    };
    let bias =
        |token, bias| refused(Request { logit_bias: vec![(0, 1.0), (token, bias)], ..request(&[1], 1) });
    assert_eq!(bias(12, 1.0), "a logit bias is for the token 12, expected 0 to 11");
    assert_eq!(bias(1, f32::NAN), "a logit bias is NaN, expected a number or -inf");
    assert_eq!(bias(1, f32::INFINITY), "a logit bias is inf, expected a number or -inf");
    let penalty = |penalties| refused(Request { penalties, ..request(&[1], 1) });
    let none = Penalties::default();
    assert_eq!(
        penalty(Penalties { presence: f32::INFINITY, ..none }),
        "the presence penalty is inf, expected a number"
    );
    assert_eq!(
        penalty(Penalties { frequency: f32::NAN, ..none }),
        "the frequency penalty is NaN, expected a number"
    );
    assert_eq!(
        penalty(Penalties { repetition: 0.0, ..none }),
        "the repetition penalty is 0, expected a number above 0"
    );
}
