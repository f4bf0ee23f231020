//! A GPU that interprets kernels.

mod block;
mod dimensions;
mod launch;
mod matrix;
mod warp;

pub use dimensions::Dimensions;
pub use launch::Launch;
