//! A GPU that interprets kernels.

mod access;
mod block;
mod copies;
mod dimensions;
mod launch;
mod matrix;
mod overlap;
mod warp;

pub use dimensions::Dimensions;
pub use launch::Launch;
pub use overlap::{Overlap, Written};
