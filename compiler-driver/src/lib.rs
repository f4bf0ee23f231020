#![doc = include_str!("../README.md")]

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
pub use mlxcel_artifacts::{CacheType, Float, Quant};
pub use pipeline::{DEFAULT_CONTEXT, Event, Progress, Request, build, emit};
pub use random::write_random_weights;
pub use source::{ModelSource, WeightSource};
pub use target::{Precision, Resolved, Target};
pub use toolchain::Toolchain;
