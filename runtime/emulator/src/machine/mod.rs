//! A GPU that interprets kernels.

mod access;
mod adjust;
mod block;
mod chains;
mod clock;
mod copies;
mod dimensions;
mod exchange;
mod launch;
mod matrix;
mod order;
mod overlap;
mod races;
mod shadow;
mod warp;

pub use dimensions::Dimensions;
pub(crate) use launch::SHARED_OPT_IN;
pub use launch::{Launch, Schedule};
pub use order::Order;
pub use overlap::{Overlap, Written};
