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

/// Reads the integers of an attribute: `array<i64: 1, 2>`, `dense<[[0, 1]]> : tensor<1x2xi64>` or `2 : i64`.
pub(crate) fn read_integers<N: std::str::FromStr>(text: &str) -> Vec<N> {
    let inside = text.strip_prefix("array<i64").or_else(|| text.strip_prefix("dense<"));
    let inside = inside.map_or_else(|| text.split(" :").next(), |rest| rest.split('>').next());
    numbers(inside.unwrap_or_default())
}

/// Reads the list of integers after `name = ` in an attribute of a dialect. A list that is absent is empty.
pub(crate) fn read_list(text: &str, name: &str) -> Vec<usize> {
    let rest = text.split_once(&format!("{name} = ["));
    rest.and_then(|(_, rest)| rest.split(']').next()).map(numbers).unwrap_or_default()
}

/// Reads the integer after `name = ` in an attribute of a dialect.
pub(crate) fn read_number(text: &str, name: &str) -> Option<usize> {
    let (_, rest) = text.split_once(&format!("{name} = "))?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn numbers<N: std::str::FromStr>(text: &str) -> Vec<N> {
    text.split(|c: char| !c.is_ascii_digit() && c != '-').filter_map(|number| number.parse().ok()).collect()
}

/// Returns whether these are distinct dimensions of a tensor of `rank` dimensions.
pub(super) fn are_distinct(dimensions: &[usize], rank: usize) -> bool {
    dimensions.iter().enumerate().all(|(i, d)| *d < rank && !dimensions[..i].contains(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_are_written() {
        assert_eq!(read_integers::<usize>(&i64_array(&[3, 0, 12])), [3, 0, 12]);
        assert!(read_integers::<usize>(&i64_array(&[0; 0])).is_empty());
        assert_eq!(read_integers::<usize>(&i64_attribute(64)), [64]);
        assert_eq!(read_integers::<i64>(&padding_pairs(&[(0, -1), (2, 3)])), [0, -1, 2, 3]);
        assert!(read_integers::<i64>(&padding_pairs(&[])).is_empty());
        let dims = "#stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>";
        assert_eq!(read_list(dims, "offset_dims"), [1, 2]);
        assert!(read_list(dims, "collapsed_slice_dims").is_empty());
        assert_eq!(read_number(dims, "index_vector_dim"), Some(1));
    }
}
