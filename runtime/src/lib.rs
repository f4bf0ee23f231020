//! Running a bundle: weights mapped, a module loaded on a device, a prompt in, tokens and text out.
//!
//! - **A session is a contract.** [`Session`] is one sequence of tokens with its cache on a device. [`load`] makes one of
//!   a bundle; [`ScriptedSession`] follows a script, so that everything above the contract is tested without a model.
//! - **So is an encoder.** [`Encoder`] makes one vector of a text and keeps nothing; [`load_encoder`] makes one of a bundle.
//! - **Generation is neutral.** [`generate()`], [`generate_greedy`] and [`generate_streaming_greedy`] know sessions and
//!   token ids, neither IREE nor text. Greedy generation reads the largest logit's id and never the logits.
//! - **Same seed, same tokens.** [`Sampler`] says in which order it filters, and computes alike on every machine.
//! - **Weights are not copied.** [`Weights`] maps safetensors files; names, types and shapes are compared with the
//!   bundle's before anything runs.
//! - **The bundle goes first.** [`CheckpointFiles`] finds tokenizer, chat template and ends of text in the bundle, and in
//!   the folder of the weights what the bundle does not carry.
//! - **Text is whole.** [`TextStream`] gives out characters only when all of their bytes have come, and nothing of a stop
//!   text.
//! - **All that is unsafe is in `ffi.rs`**, which maps files and calls IREE through a C shim in `native/`. Without the
//!   feature `iree` nothing native is built, and [`load`] answers [`Error::BuiltWithoutIree`].
//!
//! Start reading at [`Session`], then `generate.rs`; `iree.rs` is where a bundle becomes a session. The program is
//! `src/bin/mlxcel-run`. An [`Error`]'s message may end with `hint:` lines; `mlxcel_artifacts::report` renders one with
//! its causes.

mod checkpoint;
mod device;
mod encoder;
mod error;
mod ffi;
mod generate;
mod iree;
mod measure;
mod sampling;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
mod session;
mod text;
mod weights;

pub use checkpoint::CheckpointFiles;
pub use device::{DeviceSpec, ParseDeviceError};
pub use encoder::Encoder;
pub use error::{Cause, Error};
pub use generate::{
    GenerateOptions, Generation, StopReason, Timings, generate, generate_greedy, generate_streaming_greedy,
};
pub use iree::{LoadOptions, load, load_encoder, pack};
pub use measure::{
    bench::{BenchCase, BenchSample, BenchWork, ReadBandwidth, Statistics},
    perplexity::{Quality, QualityComparison, measure_quality},
    profile::Profile,
    self_test::{
        SelfTestResult, record_embedding, record_generation, replay_embedding, replay_generation,
        self_test_prompts,
    },
};
pub use mlxcel_artifacts::Cancel;
pub use sampling::{Sampler, Sampling, top_logprobs};
pub use session::{Capabilities, Dispatch, Session, check_append, check_rewind};
pub use text::{
    chat::{ChatTemplate, Message},
    tokenizer::{Piece, TextStream, Tokenizer, eos_ids},
};
pub use weights::Weights;
