#![doc = include_str!("../README.md")]

mod checkpoint;
mod device;
mod encoder;
pub mod engine;
mod error;
mod ffi;
mod generate;
mod iree;
mod measure;
pub mod model;
mod sampling;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
mod session;
mod text;
mod weights;

pub use checkpoint::CheckpointFiles;
pub use device::{DeviceSpec, ParseDeviceError};
pub use encoder::{Encoder, check_texts};
pub use error::{Cause, EngineError, Error, SharedCause};
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
