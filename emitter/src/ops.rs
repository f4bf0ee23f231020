//! StableHLO's ops as methods of [`Graph`](crate::Graph), one file for each kind.
//!
//! Each op has its name in the StableHLO specification, checks the specification's constraints, and computes the type of its
//! result. Only `dispatch.rs` and parts of `control.rs` are not StableHLO.

mod attributes;
mod complex;
mod constant;
mod control;
mod convolution;
mod custom_call;
mod dispatch;
mod dot;
mod elementwise;
mod fft;
mod gather;
mod linear_algebra;
mod pages;
mod reduce;
mod reduce_window;
mod rng;
mod shape;
mod slice;
mod sort;
#[cfg(test)]
mod tests;
mod window;

pub use convolution::{Convolution, ConvolutionDimensions};
pub(crate) use dispatch::{overwritten_operands, set_places};
pub use dot::DotDimensions;
pub use fft::Fft;
pub use gather::{GatherDimensions, ScatterDimensions};
pub use linear_algebra::TriangularSolve;
pub use reduce::Reduction;
pub use rng::RngAlgorithm;
pub(crate) use sort::places_dtype;
pub(crate) use window::Steps;
pub use window::Window;
