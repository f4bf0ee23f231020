//! The parts of a transformer as mathematics over [`Graph`](crate::graph::Graph), one of each for every family.

pub(crate) mod addend;
pub(crate) mod attention;
pub(crate) mod builder;
pub(crate) mod cache;
pub(crate) mod compensation;
pub(crate) mod feed_forward;
mod float_bits;
pub(crate) mod gather;
mod gpu_groups;
pub(crate) mod linear;
pub(crate) mod norm;
pub(crate) mod packing_kernels;
mod parts;
pub(crate) mod pooling;
mod quantization;
pub(crate) mod residual;
pub(crate) mod rope;
mod superblocks;
mod weights;
