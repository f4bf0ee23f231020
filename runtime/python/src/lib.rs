//! The native part of the Python package `mlxcel`. `mlxcel/_native.pyi` describes it to Python, and the modules beside that
//! file are what users see.

mod answer;
mod batch;
mod bundle;
mod embedder;
mod engine;
mod error;
mod fork;
mod load;
mod notifier;
mod options;
mod program;
mod stream;
mod wait;
mod worker;

use pyo3::prelude::*;

#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::{
        answer::{Answer, Piece, Timings, TokenLogprobs},
        bundle::NativeBundle,
        engine::NativeEngine,
        notifier::Notifier,
        program::NativeProgram,
        stream::NativeStream,
    };
}
