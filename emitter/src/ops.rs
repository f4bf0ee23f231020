//! StableHLO's ops as methods of [`Graph`](crate::Graph), one file for each kind.
//!
//! Each op has its name in the StableHLO specification, checks the specification's constraints, and computes the type of its
//! result. Only `dispatch.rs` and parts of `control.rs` are not StableHLO.

mod attributes;
mod constant;
mod control;
mod dispatch;
mod dot;
mod elementwise;
mod gather;
mod pages;
mod reduce;
mod shape;
mod slice;
mod sort;
#[cfg(test)]
mod tests;

pub use dot::DotDimensions;
pub use gather::{GatherDimensions, ScatterDimensions};
pub use reduce::Reduction;
pub(crate) use sort::places_dtype;
