//! The request for a build.

use std::path::PathBuf;

use mlxcel_artifacts::{CacheType, Cancel, Quant, Store};

use crate::{
    build::compiler_location::CompilerLocation,
    input_bits::InputBits,
    model::source::{ModelSource, WeightSource},
    target::Precision,
};

/// Default context size, if the model reaches that far.
pub const DEFAULT_CONTEXT: usize = 4096;

/// What to build.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model.
    pub model: ModelSource,
    /// Names of the targets.
    pub targets: Vec<String>,
    /// Weights to put into the bundle.
    pub weights: WeightSource,
    /// Element type of matrix products.
    pub precision: Precision,
    /// Quantization of the weights.
    pub quant: Quant,
    /// Whether the bundle can round weights by a text, see [`Plan::calibration`](mlxcel_emitter::Plan::calibration).
    pub calibration: bool,
    /// Bits of the inputs of weights in groups, on CPUs. By default, 16 for checkpoints of tools that leave inputs in floats,
    /// otherwise 8.
    pub input_bits: Option<InputBits>,
    /// Element type of the key/value cache; the precision by default.
    pub cache_type: Option<CacheType>,
    /// Context size: positions of the cache, or tokens of an encoder's text.
    ///
    /// The default is the least of the model's limit and [`DEFAULT_CONTEXT`], or what an encoder's folder says.
    pub context: Option<usize>,
    /// Size of the chunks that prompts are processed in; several sizes that suit the target by default.
    pub chunk: Option<usize>,
    /// Whether each kernel has a dispatch of its own, see [`Plan::chains`](mlxcel_emitter::Plan::chains).
    pub separate_kernels: bool,
    /// Elements of a weight that are packed at a time; as many as suit the target by default.
    pub pack_elements: Option<usize>,
    /// Whether iree-compile neither verifies modules between its passes, which takes a quarter of its time, nor starts threads, which
    /// take a tenth of its CPU time where modules are small. The code is the same, unless the compiler has a defect.
    pub is_lean: bool,
    /// Folder of the bundle; `<model>.bundle` in the working directory by default.
    pub out: Option<PathBuf>,
    /// Folder to save MLIR, flags and compiled modules in.
    pub dump_dir: Option<PathBuf>,
    /// The store of compiled modules, which records that the bundle was built here. Only [`emit`](crate::emit) works without
    /// one.
    pub store: Option<Store>,
    /// Where to look for iree-compile.
    pub compiler: CompilerLocation,
    /// Cancels the build.
    pub cancel: Cancel,
}
