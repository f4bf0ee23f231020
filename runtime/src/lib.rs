#![doc = include_str!("../README.md")]

mod cache_size;
mod checkpoint;
mod device;
mod encoder;
pub mod engine;
mod error;
mod ffi;
#[cfg(feature = "grammar")]
pub mod grammar;
mod iree;
mod measure;
pub mod model;
mod origin;
mod places;
mod program;
pub mod receipt;
mod sampling;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
mod text;
mod text_model;
pub mod trace;
mod weights;

pub use cache_size::{CacheSize, ParseCacheSizeError};
pub use checkpoint::CheckpointFiles;
pub use device::{DeviceInfo, DeviceSpec, ParseDeviceError};
pub use encoder::{
    contract::{Encoder, EncoderLimits, check_texts},
    thread::{EmbeddingSink, Embeddings, EncoderClient, EncoderThread},
};
pub use engine::{Engine, EngineSettings, Generation, Request, StopReason, Timings};
pub use error::{CalibrationError, Cause, EngineError, Error, MeasureError, ProgramError, SharedCause};
pub use iree::{Calibrate, LoadOptions, free_memory, load, load_encoder, pack};
pub use measure::{
    batch::{BatchCase, BatchSample},
    bench::{BenchCase, BenchSample, BenchWork, Statistics},
    perplexity::{Quality, QualityComparison, measure_quality},
    profile::Profile,
    read::ReadBandwidth,
    self_test::{
        SelfTestResult, record_embedding, record_generation, replay_embedding, replay_generation,
        self_test_prompts,
    },
};
pub use mlxcel_artifacts::{Cancel, Number, Tensor};
pub use model::{ModelLimits, ModelRunner, check_prompt};
pub use origin::OriginRules;
#[cfg(feature = "iree")]
pub use program::DeviceTensor;
pub use program::{
    Function, LoadedProgram,
    bundle::{DeviceOptions, Program},
    compare::{Difference, Tolerance, compare},
    golden::GoldenResult,
    names::{find_function, nearest},
};
pub use sampling::{Drawing, GREEDY, OutOfRange, Sampler, Sampling, TokenLogprobs, top_logprobs};
pub use text::{
    chat::ChatTemplate,
    files::TextFiles,
    held::HeldText,
    message::{Chat, Message},
    stream::{Piece, TextStream},
    tokenizer::{Tokenizer, eos_ids},
    vocabulary::TokenBytes,
};
pub use text_model::{
    answer_text::{AnswerPart, AnswerText},
    model::TextModel,
    options::AnswerOptions,
    request::{Prompt, TextRequest},
    started::StartedModel,
    stream::{Answer, AnswerPiece, AnswerReader, AnswerStream, Next, Watcher},
};
pub use trace::{Dispatch, Trace, TraceFile};
pub use weights::Weights;
