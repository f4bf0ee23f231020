//! Reverse-mode gradients of what a [`Graph`](crate::Graph) has recorded.
//!
//! `reverse.rs` walks the recorded ops backwards. For each op that the loss depends on, a rule adds the ops of a vector-Jacobian
//! product: a file for each kind of op. The result is ops again, so that gradients have gradients. Numbers that are chosen,
//! as the derivative of a maximum where both are equal, are those of JAX.

mod complex;
mod control;
mod convolution;
mod dot;
mod elementwise;
mod gather;
mod linear_algebra;
mod loops;
mod reads;
mod reduce;
mod reverse;
mod shape;
mod sort;
mod step;
#[cfg(test)]
mod tests;
mod window;
