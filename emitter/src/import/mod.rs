//! StableHLO programs that others wrote, in MLIR's generic form.

mod ast;
mod checks;
mod custom_call;
mod describe;
mod dynamic;
mod fold;
mod found;
mod infer;
mod kernel_call;
mod options;
mod parse;
mod program;
mod refusal;
mod replay;
#[cfg(test)]
mod replayed;
mod rewrites;
mod sizes;
mod spelling;
mod walk;

pub use checks::{Check, Test, TestModule, import_tests};
pub use describe::{ImportedArgument, ImportedFunction, ImportedProgram, ImportedResult};
pub use options::{ProgramOptions, StateArguments};
pub use program::{ProgramArgument, ProgramArgumentKind, ProgramFunction, ProgramModule, import_program};
pub use sizes::Sizes;

use crate::{
    error::Error,
    mlir::{attributes, cursor},
};

/// Describes a program.
///
/// # Errors
/// The text is not in MLIR's generic form.
pub fn import(text: &str) -> Result<ImportedProgram, Error> {
    Ok(describe::describe(&parse::parse(text)?))
}

#[cfg(test)]
mod tests;
