//! From a constraint to a grammar of tokens.

use std::{fmt, sync::Arc, thread};

use llguidance::{
    Matcher, ParserFactory,
    toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie},
};
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{
    constraint::Constraint,
    matcher::TokenGrammar,
    problem::{one_line, refuse},
};
use crate::{
    engine::SharedGrammar,
    error::Error,
    text::{tokenizer::Tokenizer, vocabulary::TokenBytes},
};

/// The stack of a thread that compiles. Schemas that refer to one another are compiled by calls within calls.
const STACK: usize = 256 << 20;

/// The most threads that compute masks. A mask takes a small part of the time of a step.
const MAX_THREADS: usize = 4;

/// Compiles what answers must be for the tokens of a model.
#[derive(Clone)]
pub struct GrammarCompiler {
    factory: Arc<ParserFactory>,
    threads: Arc<ThreadPool>,
}

impl fmt::Debug for GrammarCompiler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GrammarCompiler").finish_non_exhaustive()
    }
}

impl GrammarCompiler {
    /// Reads the tokens of a model with `vocab` logits, all of them: do it once for a model.
    ///
    /// `eos` are the tokens that may follow a complete answer. Without any, an answer ends when nothing may follow.
    ///
    /// # Errors
    /// The tokenizer has no bytes for its tokens.
    pub fn new(tokenizer: &Tokenizer, vocab: usize, eos: &[u32]) -> Result<Self, Error> {
        let mut words: Vec<Vec<u8>> = tokenizer.vocabulary(vocab)?.into_iter().map(word).collect();
        let mut eos: Vec<u32> = eos.iter().copied().filter(|&id| (id as usize) < vocab).collect();
        for &id in &eos {
            // It ends the answer, so that it cannot be a part of it, even if it has a text.
            words[id as usize] = word(TokenBytes::Special(format!("<end {id}>")));
        }
        if eos.is_empty() {
            // The trie needs one. No logit has this id.
            eos.push(u32::try_from(words.len()).map_err(|_| refuse("the vocabulary is too large"))?);
            words.push(Vec::new());
        }
        let size = u32::try_from(words.len()).map_err(|_| refuse("the vocabulary is too large"))?;
        let trie = TokTrie::from(&TokRxInfo::new(size, eos[0]), &words).with_eos_tokens(&eos);
        // The model chooses among all tokens that continue the text, and not only those that a tokenizer would take.
        let tokens: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let mut factory =
            ParserFactory::new(&tokens, InferenceCapabilities::default(), &slices).map_err(refuse)?;
        factory.quiet();
        // Errors go to clients, and have neither the grammar nor the answer so far.
        factory.limits_mut().verbose_errors = false;
        let count = thread::available_parallelism().map_or(1, usize::from).div_ceil(2).min(MAX_THREADS);
        let name = |index| format!("mask-{index}");
        let threads = ThreadPoolBuilder::new().num_threads(count).thread_name(name).build();
        Ok(Self { factory: Arc::new(factory), threads: Arc::new(threads.map_err(refuse)?) })
    }

    /// Compiles a constraint, on a thread of its own. The time grows with the constraint, up to a limit.
    ///
    /// # Errors
    /// The constraint is invalid, has a part that cannot be enforced, or is too large.
    pub fn compile(&self, constraint: &Constraint) -> Result<SharedGrammar, Error> {
        let grammar = constraint.to_grammar().map_err(refuse)?;
        let factory = &self.factory;
        let compile = move || -> Result<Matcher, String> {
            let mut parser = factory.create_parser(grammar).map_err(one_line)?;
            // A warning is of a part that would not be enforced.
            if let Some(warning) = parser.grammar_warnings().into_iter().next() {
                return Err(warning);
            }
            let mut matcher = Matcher::new(Ok(parser));
            match matcher.compute_mask() {
                Ok(mask) if !mask.is_zero() => Ok(matcher),
                _ => Err("no text matches it".into()),
            }
        };
        let matcher = thread::scope(|scope| {
            let builder = thread::Builder::new().name("grammar".into()).stack_size(STACK);
            let started = builder.spawn_scoped(scope, compile).map_err(|error| error.to_string())?;
            started.join().unwrap_or_else(|_| Err("its compiler failed".into()))
        });
        let matcher = matcher.map_err(refuse)?;
        Ok(SharedGrammar::new(TokenGrammar::new(matcher, self.threads.clone())))
    }
}

/// Returns a token as the trie has it.
fn word(token: TokenBytes) -> Vec<u8> {
    match token {
        TokenBytes::Text(bytes) => bytes,
        TokenBytes::Special(name) => [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat(),
        TokenBytes::Unused => Vec::new(),
    }
}
