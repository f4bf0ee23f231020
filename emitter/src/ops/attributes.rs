//! Attributes as MLIR text, and checks that several ops share.

/// Returns MLIR's dense array of 64-bit integers.
pub(super) fn i64_array(values: &[impl ToString]) -> String {
    if values.is_empty() {
        return "array<i64>".to_owned();
    }
    format!("array<i64: {}>", list(values))
}

/// Returns MLIR's `[n, 2]` elements for the padding before and after each of `n` dimensions.
pub(super) fn padding_pairs(padding: &[(i64, i64)]) -> String {
    let pairs: Vec<_> = padding.iter().map(|(low, high)| format!("[{low}, {high}]")).collect();
    let elements = if pairs.is_empty() { String::new() } else { format!("[{}]", pairs.join(", ")) };
    format!("dense<{elements}> : tensor<{}x2xi64>", padding.len())
}

/// Returns values separated by commas: `1, 2, 3`.
pub(super) fn list(values: &[impl ToString]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::attributes::{integers, sizes};

    #[test]
    fn attributes_are_read_as_they_are_written() {
        assert_eq!(sizes(&i64_array(&[3, 0, 12])), Some(vec![3, 0, 12]));
        assert_eq!(sizes(&i64_array(&[0; 0])), Some(vec![]));
        assert_eq!(sizes(&i64_attribute(64)), Some(vec![64]));
        assert_eq!(integers(&padding_pairs(&[(0, -1), (2, 3)])), Some(vec![0, -1, 2, 3]));
        assert_eq!(integers(&padding_pairs(&[])), Some(vec![]));
    }
}
