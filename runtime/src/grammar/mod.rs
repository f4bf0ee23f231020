//! Grammars of answers: JSON schemas, regular expressions and Lark grammars.
//!
//! [`GrammarCompiler::compile`] turns a [`Constraint`] into a [`SharedGrammar`](crate::engine::SharedGrammar), which
//! requests to the engine take. The work is llguidance's. Nothing is approximated: what cannot be enforced is an error.

mod cache;
mod compiler;
mod constraint;
mod matcher;
mod problem;
#[cfg(test)]
mod tests;

pub use cache::{CompiledGrammar, GrammarCache};
pub use compiler::GrammarCompiler;
pub use constraint::Constraint;
