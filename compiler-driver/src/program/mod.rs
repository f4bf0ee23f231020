//! StableHLO programs that others wrote: exported by JAX or PyTorch, or written by hand.

mod explain;
mod form;
pub(crate) mod read;

pub use explain::explain_program;
pub use form::FormError;
pub use read::generic_form;
