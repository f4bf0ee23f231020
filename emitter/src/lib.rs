#![doc = include_str!("../README.md")]

mod chains;
mod collected;
mod context;
mod cost;
mod decode;
mod error;
mod form;
mod global;
mod gradient;
mod graph;
mod group_form;
mod import;
mod kernels;
mod layers;
mod lower;
mod mixed;
mod mlir;
mod module;
mod ops;
mod packing;
mod plan;
mod pools;
mod program;
mod replay;
mod scratch;
mod signature;
mod transformer;
mod types;
mod work;

pub use error::Error;
pub use form::{Form, Forms};
pub use global::Global;
pub use graph::{Function, Graph, HostIndex, Tensor};
pub use group_form::{GroupForm, Groups, List, Scales};
pub use import::{
    Check, ImportedArgument, ImportedFunction, ImportedProgram, ImportedResult, ProgramArgument,
    ProgramArgumentKind, ProgramFunction, ProgramModule, ProgramOptions, Sizes, StateArguments, Test,
    TestModule, import, import_program, import_tests,
};
pub use kernels::{Isa, KernelConstant, LinkedFunction, LinkedKernels, Object, objects};
pub use module::Module;
pub use ops::{
    Convolution, ConvolutionDimensions, DotDimensions, Fft, GatherDimensions, Reduction, RngAlgorithm,
    ScatterDimensions, TriangularSolve, Window,
};
pub use packing::Packed;
pub use plan::{Numerics, Plan, Products, Task};
pub use program::Program;
pub use transformer::emit;
pub use types::TensorType;
