//! Sizes and texts of tensor types.

use safetensors::Dtype;

/// Returns the bytes of a tensor, or `None` if they overflow or are not whole bytes.
#[must_use]
pub fn tensor_bytes(dtype: Dtype, shape: &[usize]) -> Option<usize> {
    let bits = tensor_bits(dtype, shape)?;
    bits.is_multiple_of(8).then_some(bits / 8)
}

/// Returns the bits of a tensor, or `None` if they overflow.
pub(crate) fn tensor_bits(dtype: Dtype, shape: &[usize]) -> Option<usize> {
    let elements = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size))?;
    elements.checked_mul(dtype.bitsize())
}

/// Returns an element type and a shape as messages show them: `f32[1,128]`.
#[must_use]
pub fn type_text(dtype: Dtype, shape: &[usize]) -> String {
    let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
    format!("{}[{}]", dtype.to_string().to_lowercase(), shape.join(","))
}

/// Returns the type in which programs take elements of a type: of the same size, integers without a sign.
///
/// IREE tells signed integers from others, StableHLO's programs after compilation do not. 8-bit floats are bytes to them.
#[must_use]
pub fn signless(dtype: Dtype) -> Dtype {
    match dtype {
        Dtype::U8 | Dtype::F8_E4M3 | Dtype::F8_E5M2 | Dtype::F8_E8M0 => Dtype::I8,
        Dtype::U16 => Dtype::I16,
        Dtype::U32 => Dtype::I32,
        Dtype::U64 => Dtype::I64,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_tensors() {
        assert_eq!(tensor_bytes(Dtype::BF16, &[3, 5]), Some(30));
        assert_eq!(tensor_bytes(Dtype::F32, &[]), Some(4));
        assert_eq!(tensor_bytes(Dtype::F4, &[3]), None);
        assert_eq!(tensor_bytes(Dtype::F4, &[4]), Some(2));
        assert_eq!(tensor_bytes(Dtype::U8, &[usize::MAX / 2, 3]), None);
        // The elements fit, their bits do not.
        assert_eq!(tensor_bytes(Dtype::F32, &[usize::MAX / 2]), None);
    }
}
