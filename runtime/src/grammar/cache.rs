//! The grammars of a model, each compiled once.

use std::{
    collections::VecDeque,
    mem::{self, Discriminant},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use super::{compiler::GrammarCompiler, constraint::Constraint};
use crate::{engine::SharedGrammar, error::Error, text::tokenizer::Tokenizer};

/// Grammars that are kept, because clients send the same schema again and again.
const KEPT: usize = 64;

/// A grammar, or why there is none: clients send what is refused again and again, too.
pub type CompiledGrammar = Result<SharedGrammar, Arc<Error>>;

/// What tells constraints apart: their kind and their text.
///
/// Objects of JSON are equal whatever the order of their properties is. An answer has the order of its
/// schema.
type Key = (Discriminant<Constraint>, String);

/// The grammars of a model, the latest ones kept.
#[derive(Debug)]
pub struct GrammarCache {
    tokenizer: Tokenizer,
    eos: Vec<u32>,
    vocab: usize,
    /// Made at its first use, because it reads the whole vocabulary.
    compiler: OnceLock<Result<GrammarCompiler, Arc<Error>>>,
    /// The latest used are last.
    compiled: Mutex<VecDeque<(Key, CompiledGrammar)>>,
}

impl GrammarCache {
    /// Prepares grammars for a model with `vocab` logits; see [`GrammarCompiler::new`].
    #[must_use]
    pub fn new(tokenizer: Tokenizer, vocab: usize, eos: Vec<u32>) -> Self {
        Self { tokenizer, eos, vocab, compiler: OnceLock::new(), compiled: Mutex::default() }
    }

    /// Reads the vocabulary ahead of the first constraint.
    pub fn warm(&self) {
        _ = self.compiler();
    }

    /// Returns the grammar of a constraint, compiled if it is not kept.
    ///
    /// # Errors
    /// As [`GrammarCompiler::new`] and [`GrammarCompiler::compile`].
    pub fn get(&self, constraint: &Constraint) -> CompiledGrammar {
        let key = key(constraint);
        self.find_key(&key).unwrap_or_else(|| self.compile_as(key, constraint))
    }

    /// Returns what is kept of a constraint.
    pub fn find(&self, constraint: &Constraint) -> Option<CompiledGrammar> {
        self.find_key(&key(constraint))
    }

    fn find_key(&self, key: &Key) -> Option<CompiledGrammar> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let index = compiled.iter().position(|(known, _)| known == key)?;
        let found = compiled.remove(index)?;
        let grammar = found.1.clone();
        compiled.push_back(found);
        Some(grammar)
    }

    /// Compiles a constraint, and keeps the grammar.
    ///
    /// # Errors
    /// As [`GrammarCompiler::new`] and [`GrammarCompiler::compile`].
    pub fn compile(&self, constraint: &Constraint) -> CompiledGrammar {
        self.compile_as(key(constraint), constraint)
    }

    fn compile_as(&self, key: Key, constraint: &Constraint) -> CompiledGrammar {
        let compiler = self.compiler().as_ref().map_err(Clone::clone)?;
        let grammar = compiler.compile(constraint).map_err(Arc::new);
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= KEPT {
            compiled.pop_front();
        }
        compiled.push_back((key, grammar.clone()));
        grammar
    }

    fn compiler(&self) -> &Result<GrammarCompiler, Arc<Error>> {
        let make = || GrammarCompiler::new(&self.tokenizer, self.vocab, &self.eos).map_err(Arc::new);
        self.compiler.get_or_init(make)
    }
}

/// Returns what tells a constraint apart from others.
fn key(constraint: &Constraint) -> Key {
    let text = match constraint {
        Constraint::JsonSchema(schema) => schema.to_string(),
        Constraint::Regex(text) | Constraint::Lark(text) => text.clone(),
    };
    (mem::discriminant(constraint), text)
}
