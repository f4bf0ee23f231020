//! From a model to a bundle: `config.json → ModelConfig → Program → iree-compile → Bundle`.
//!
//! [`build`] is the whole of it. A [`Request`] names a model, targets and weights; what can be checked without the
//! compiler is checked first, the program is emitted once per kind of numerics, compiled for several targets at a time, and
//! everything lands in a bundle that appears at its place only when it is whole.
//!
//! Invariants:
//! - A target is one file in `targets/`, and nothing else in this crate names one.
//! - What a vmfb is made from is in its build key ([`Toolchain`]'s digest included, paths not), and a key that is in the
//!   store starts no compiler.
//! - The compiler sees the same path and the same flags on every machine, so that equal keys mean equal bytes.
//! - Weights are looked at by their headers; their bytes are copied, never converted.
//!
//! Start at [`build`] in `pipeline.rs`, then `target.rs` and `compile.rs`.

mod checkpoint;
mod compile;
mod documents;
mod error;
mod explain;
#[cfg(test)]
mod fake;
mod key;
mod pipeline;
mod planned;
mod ptx;
mod random;
mod sentence;
mod source;
mod target;
mod toolchain;
mod vmfbs;

pub use error::Error;
pub use explain::explain;
pub use mlxcel_artifacts::Cancel;
pub use mlxcel_emitter::{Kv, Quant};
pub use pipeline::{DEFAULT_CONTEXT, Event, Progress, Request, build, emit};
pub use random::write_random_weights;
pub use source::{ModelSource, WeightSource};
pub use target::{Precision, Resolved, Target};
pub use toolchain::Toolchain;
