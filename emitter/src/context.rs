//! MLIR's context, as this crate uses it.

use std::cell::RefCell;

use melior::{Context, dialect::DialectHandle};

use crate::error::Error;

/// Calls `body` with a context that knows the dialects of MLIR that emitted ops are of, and takes ops of others as they are
/// written. What MLIR says of an error of it follows the error's own words.
///
/// All of MLIR's dialects are 100 MB of code in every program that links them, and take a while to load.
pub(crate) fn with_context<T>(body: impl FnOnce(&Context) -> Result<T, Error>) -> Result<T, Error> {
    let context = Context::new_with_threading(false);
    for dialect in
        [DialectHandle::arith(), DialectHandle::func(), DialectHandle::scf(), DialectHandle::tensor()]
    {
        dialect.load_dialect(&context);
    }
    context.set_allow_unregistered_dialects(true);
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
