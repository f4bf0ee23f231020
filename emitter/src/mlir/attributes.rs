//! Values of attributes, read from their text.

use safetensors::Dtype;

use super::cursor::Cursor;
use crate::types::{DYNAMIC, TensorType, dtype_of, is_integer, is_signed};

/// The most elements of a constant that are read as numbers.
const CONSTANT_LIMIT: usize = 4096;

/// Returns the integers in `array<i64: 1, -2>`, `[1, -2]`, `1 : i64` or `dense<[[1, -2]]> : tensor<1x2xi64>`, where one may stand
/// for all.
pub(crate) fn integers(text: &str) -> Option<Vec<i64>> {
    if let Some(rest) = text.strip_prefix("array<") {
        let inner = rest.strip_suffix('>')?;
        return inner.split_once(':').map_or_else(|| Some(Vec::new()), |(_, list)| numbers(list));
    }
    if text.starts_with("dense<") {
        return dense(text).map(|(values, _)| values);
    }
    numbers(text.split(" :").next()?)
}

/// Returns the integers of `dense<…> : tensor<…>` with its type. Booleans are 0 and 1.
pub(crate) fn dense(text: &str) -> Option<(Vec<i64>, TensorType)> {
    let mut cursor = Cursor::new(text.strip_prefix("dense<")?);
    let values = cursor.balanced(&['>']).ok()?;
    cursor.expect(">").ok()?;
    cursor.expect(":").ok()?;
    let ty = tensor_type(cursor.balanced(&['\n']).ok()?)?;
    if ty.elements() > CONSTANT_LIMIT || !(is_integer(ty.dtype) || ty.dtype == Dtype::BOOL) {
        return None;
    }
    let mut values = match values.strip_prefix("\"0x") {
        Some(digits) => from_digits(digits.strip_suffix('"')?, ty.dtype)?,
        None => numbers(values)?,
    };
    if let [one] = values.as_slice() {
        values = vec![*one; ty.elements()];
    }
    (values.len() == ty.elements()).then_some((values, ty))
}

/// Returns little-endian integers in hexadecimal digits.
fn from_digits(digits: &str, dtype: Dtype) -> Option<Vec<i64>> {
    let size = dtype.bitsize() / 8;
    let bytes: Option<Vec<u8>> = (0..digits.len() / 2)
        .map(|i| digits.get(2 * i..2 * i + 2).and_then(|byte| u8::from_str_radix(byte, 16).ok()))
        .collect();
    let number = |bytes: &[u8]| {
        let unsigned = bytes.iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
        let shift = 64 - 8 * u32::try_from(bytes.len()).unwrap_or(8);
        let signed = is_signed(dtype);
        if signed { unsigned.cast_signed() << shift >> shift } else { unsigned.cast_signed() }
    };
    Some(bytes?.chunks_exact(size.max(1)).map(number).collect())
}

/// Returns the integers of lists within lists.
fn numbers(text: &str) -> Option<Vec<i64>> {
    let words = text
        .split(|c: char| c == ',' || c == '[' || c == ']' || c.is_whitespace())
        .filter(|word| !word.is_empty());
    words
        .map(|word| match word {
            "true" => Some(1),
            "false" => Some(0),
            number => number.parse().ok().or_else(|| number.parse().ok().map(u64::cast_signed)),
        })
        .collect()
}

/// Returns the number in `3 : i64`.
pub(crate) fn integer(text: &str) -> Option<i64> {
    text.split(':').next()?.trim().parse().ok()
}

/// Returns the size or dimension in `3 : i64`.
pub(crate) fn size(text: &str) -> Option<usize> {
    usize::try_from(integer(text)?).ok()
}

/// Returns the sizes in a list of integers, none of which may be negative.
pub(crate) fn sizes(text: &str) -> Option<Vec<usize>> {
    integers(text)?.into_iter().map(|size| usize::try_from(size).ok()).collect()
}

/// Returns the last word of `#stablehlo<comparison_direction LT>`: `LT`.
pub(crate) fn word(text: &str) -> Option<&str> {
    text.strip_suffix('>')?.rsplit(' ').next()
}

/// Returns the text of a field in `#stablehlo.scatter<a = [1], b = 2>`.
pub(crate) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, inner) = text.strip_suffix('>')?.split_once('<')?;
    let mut cursor = Cursor::new(inner);
    while !cursor.is_at_end() {
        let key = cursor.name().ok()?;
        cursor.expect("=").ok()?;
        let value = cursor.balanced(&[',']).ok()?;
        if key == name {
            return Some(value);
        }
        cursor.take(",");
    }
    None
}

/// Returns a list of sizes in a field, which is empty if there is none.
pub(crate) fn field_sizes(text: &str, name: &str) -> Vec<usize> {
    field(text, name).and_then(sizes).unwrap_or_default()
}

/// Returns a tensor's type, `tensor<2x?xf32>`, if its elements are of a type that tensors can have here.
pub(crate) fn tensor_type(text: &str) -> Option<TensorType> {
    let mut rest = text.trim().strip_prefix("tensor<")?.strip_suffix('>')?;
    let mut shape = Vec::new();
    while let Some((size, after)) = rest.split_once('x') {
        match size {
            "?" => shape.push(DYNAMIC),
            _ if !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit()) => {
                shape.push(size.parse().ok()?)
            }
            _ => break,
        }
        rest = after;
    }
    // Bounds of dynamic dimensions.
    let element = rest.split(',').next()?;
    Some(TensorType { dtype: dtype_of(element)?, shape })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_in_every_form() {
        assert_eq!(integers("array<i64: 1, -2>"), Some(vec![1, -2]));
        assert_eq!(integers("array<i64>"), Some(vec![]));
        assert_eq!(integers("[1, 0]"), Some(vec![1, 0]));
        assert_eq!((integers("64 : i64"), integers("")), (Some(vec![64]), Some(vec![])));
        assert_eq!(integers("dense<[[1, 2], [3, -4]]> : tensor<2x2xi64>"), Some(vec![1, 2, 3, -4]));
        assert_eq!(integers("dense<7> : tensor<3xi32>"), Some(vec![7; 3]));
        assert_eq!(integers("dense<\"0xFFFF0100\"> : tensor<2xi16>"), Some(vec![-1, 1]));
        assert_eq!(integers("dense<true> : tensor<i1>"), Some(vec![1]));
        assert_eq!(integers("dense<> : tensor<0xi64>"), Some(vec![]));
        assert_eq!(integers("dense<18446744073709551615> : tensor<ui64>"), Some(vec![-1]));
        assert_eq!(integers("dense<1.0> : tensor<f32>"), None);
    }

    #[test]
    fn fields_are_found_by_name() {
        let text = "#stablehlo.scatter<update_window_dims = [1, 2], index_vector_dim = 3>";
        assert_eq!(field_sizes(text, "update_window_dims"), [1, 2]);
        assert_eq!(field(text, "index_vector_dim"), Some("3"));
        assert_eq!(field(text, "inserted_window_dims"), None);
        assert_eq!(word("#stablehlo<comparison_direction LT>"), Some("LT"));
    }

    #[test]
    fn types_are_read_and_printed_alike() {
        for text in [
            "tensor<f32>",
            "tensor<2x3xi1>",
            "tensor<?x4xui8>",
            "tensor<0xcomplex<f32>>",
            "tensor<4xf8E4M3FN>",
        ] {
            assert_eq!(tensor_type(text).unwrap().to_string(), text);
        }
        let bounded = tensor_type("tensor<?xf32, #stablehlo.bounds<4>>").unwrap();
        assert_eq!(bounded.to_string(), "tensor<?xf32>");
        for other in
            ["tensor<4xi4>", "tensor<complex<f64>>", "!stablehlo.token", "tuple<>", "tensor<*xf32>", ""]
        {
            assert_eq!(tensor_type(other), None, "{other}");
        }
    }
}
