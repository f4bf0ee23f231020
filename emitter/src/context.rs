//! MLIR's context, as this crate uses it.

use std::cell::RefCell;

use melior::{Context, dialect::DialectRegistry, utility::register_all_dialects};

use crate::error::Error;

/// Calls `body` with a context that knows MLIR's own dialects, and takes ops of others as they are written. What MLIR says of
/// an error of it follows the error's own words.
pub(crate) fn with_context<T>(body: impl FnOnce(&Context) -> Result<T, Error>) -> Result<T, Error> {
    let registry = DialectRegistry::new();
    register_all_dialects(&registry);
    let context = Context::new_with_registry(&registry, false);
    context.set_allow_unregistered_dialects(true);
    context.load_all_available_dialects();
    let diagnostics = RefCell::new(Vec::new());
    let listener = context.attach_diagnostic_handler(|diagnostic| {
        diagnostics.borrow_mut().push(diagnostic.to_string());
        true
    });
    let result = body(&context);
    context.detach_diagnostic_handler(listener);
    result.map_err(|error| match error {
        Error::Mlir { op, problem } => {
            let mut problems = diagnostics.into_inner();
            problems.insert(0, problem);
            Error::Mlir { op, problem: problems.join(": ") }
        }
        other => other,
    })
}
