//! StableHLO's ops as methods of [`Graph`](crate::Graph), one file per kind. Each is named as in the StableHLO
//! specification, checks what the specification constrains, and gives the result's type. `dispatch.rs` alone goes past it.

mod constant;
mod control;
mod dispatch;
mod dot;
mod elementwise;
mod gather;
mod reduce;
mod shape;
mod slice;
mod sort;
#[cfg(test)]
mod tests;

pub use dot::DotDimensions;
pub use gather::{GatherDimensions, ScatterDimensions};
pub use reduce::Reduction;

/// MLIR's dense array of 64-bit integers.
fn i64_array(values: &[usize]) -> String {
    if values.is_empty() {
        return "array<i64>".to_owned();
    }
    format!("array<i64: {}>", list(values))
}

/// `1, 2, 3`.
fn list(values: &[usize]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A 64-bit integer attribute.
fn i64_attribute(value: usize) -> String {
    format!("{value} : i64")
}

/// Whether these are different dimensions of a tensor of `rank` dimensions.
fn distinct(dimensions: &[usize], rank: usize) -> bool {
    dimensions.iter().enumerate().all(|(i, d)| *d < rank && !dimensions[..i].contains(d))
}
