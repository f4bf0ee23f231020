#![doc = include_str!("../README.md")]

mod build;
mod documents;
mod error;
mod explain;
mod hub;
mod input_bits;
mod kernels;
mod model;
mod program;
mod stored;
mod target;
#[cfg(test)]
mod test_support;

pub use build::{
    build, build_program,
    compiler_location::CompilerLocation,
    emit, emit_program,
    event::{Event, Progress},
    golden::GoldenFiles,
    program::ProgramRequest,
    request::{DEFAULT_CONTEXT, Request},
    toolchain::Toolchain,
};
pub use error::Error;
pub use explain::explain;
pub use hub::{digest::HubDigest, error::HubError, name::HubName, settings::HubSettings, snapshot::Snapshot};
pub use input_bits::InputBits;
pub use kernels::KernelError;
pub use mlxcel_artifacts::{CacheType, Cancel, Float, Quant};
pub use mlxcel_emitter::{Sizes, StateArguments};
pub use model::{
    random::write_random_weights,
    source::{ModelSource, WeightSource},
};
pub use program::{FormError, explain_program, generic_form};
pub use target::{Precision, ResolvedTarget, Target};
