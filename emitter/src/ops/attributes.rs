//! Attributes as MLIR text, and checks that several ops share.

/// Returns MLIR's dense array of 64-bit integers.
pub(super) fn i64_array(values: &[usize]) -> String {
    if values.is_empty() {
        return "array<i64>".to_owned();
    }
    format!("array<i64: {}>", list(values))
}

/// Returns values separated by commas: `1, 2, 3`.
pub(super) fn list(values: &[usize]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns a 64-bit integer attribute.
pub(super) fn i64_attribute(value: usize) -> String {
    format!("{value} : i64")
}

/// Returns whether these are distinct dimensions of a tensor of `rank` dimensions.
pub(super) fn are_distinct(dimensions: &[usize], rank: usize) -> bool {
    dimensions.iter().enumerate().all(|(i, d)| *d < rank && !dimensions[..i].contains(d))
}
