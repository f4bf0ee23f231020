//! Constants and iota.

use safetensors::Dtype;

use super::i64_attribute;
use crate::{
    Graph, Tensor, TensorType,
    types::{element, is_float, is_integer},
};

impl Graph {
    /// A tensor with `value` everywhere. Integers take the truncated value, or the nearest there is; booleans whether it
    /// is nonzero.
    pub fn full(&mut self, value: f64, dtype: Dtype, shape: &[usize]) -> Tensor {
        let ty = TensorType::new(dtype, shape);
        let text = splat(value, dtype);
        let attribute = format!("dense<{text}> : {ty}");
        self.op("stablehlo.constant", &[], vec![("value", attribute)], ty)
    }

    /// A scalar.
    pub fn scalar(&mut self, value: f64, dtype: Dtype) -> Tensor {
        self.full(value, dtype, &[])
    }

    /// A constant of `f32` values in row-major order, kept to the bit.
    pub fn constant_f32(&mut self, values: &[f32], shape: &[usize]) -> Tensor {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant_bytes(&bytes, TensorType::new(Dtype::F32, shape))
    }

    /// A constant of `i32` values in row-major order.
    pub fn constant_i32(&mut self, values: &[i32], shape: &[usize]) -> Tensor {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant_bytes(&bytes, TensorType::new(Dtype::I32, shape))
    }

    fn constant_bytes(&mut self, bytes: &[u8], ty: TensorType) -> Tensor {
        const OP: &str = "stablehlo.constant";
        if bytes.len() * 8 != ty.elements().saturating_mul(ty.dtype.bitsize()) {
            return self.fail(OP, format!("found {} bytes, expected those of {ty}", bytes.len()));
        }
        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        // A dense attribute of one element in hex reads as a splat, which is the same value.
        let attribute =
            if bytes.is_empty() { format!("dense<> : {ty}") } else { format!("dense<\"0x{hex}\"> : {ty}") };
        self.op(OP, &[], vec![("value", attribute)], ty)
    }

    /// `0, 1, 2, …` along `dimension`.
    pub fn iota(&mut self, dtype: Dtype, shape: &[usize], dimension: usize) -> Tensor {
        const OP: &str = "stablehlo.iota";
        if dimension >= shape.len() {
            return self.fail(OP, format!("found dimension {dimension}, expected one of shape {shape:?}"));
        }
        if !is_float(dtype) && !is_integer(dtype) {
            return self.fail(OP, format!("found {}, expected a number type", element(dtype)));
        }
        let attributes = vec![("iota_dimension", i64_attribute(dimension))];
        self.op(OP, &[], attributes, TensorType::new(dtype, shape))
    }
}

/// The text of a splat's value. Infinities and NaN have only a hex form in MLIR.
fn splat(value: f64, dtype: Dtype) -> String {
    if dtype == Dtype::BOOL {
        return (value != 0.0).to_string();
    }
    if !is_float(dtype) {
        return integer(value, dtype);
    }
    if value.is_finite() {
        // MLIR wants a point in a number, which Rust leaves out of `1e-5`.
        let text = format!("{value:?}");
        return if text.contains('.') { text } else { text.replace('e', ".0e") };
    }
    let class = if value.is_nan() { 2 } else { usize::from(value < 0.0) };
    let bits = match dtype {
        Dtype::F16 => ["0x7C00", "0xFC00", "0x7E00"],
        Dtype::BF16 => ["0x7F80", "0xFF80", "0x7FC0"],
        Dtype::F8_E5M2 => ["0x7C", "0xFC", "0x7E"],
        // Has no infinities: the largest stand for them.
        Dtype::F8_E4M3 => ["448.0", "-448.0", "0x7F"],
        Dtype::F64 => ["0x7FF0000000000000", "0xFFF0000000000000", "0x7FF8000000000000"],
        _ => ["0x7F800000", "0xFF800000", "0x7FC00000"],
    };
    bits[class].to_owned()
}

/// The text of an integer. Casts of floats saturate, so that an infinity is the type's largest or smallest value.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn integer(value: f64, dtype: Dtype) -> String {
    match dtype {
        Dtype::I8 => (value as i8).to_string(),
        Dtype::I16 => (value as i16).to_string(),
        Dtype::I32 => (value as i32).to_string(),
        Dtype::U8 => (value as u8).to_string(),
        Dtype::U16 => (value as u16).to_string(),
        Dtype::U32 => (value as u32).to_string(),
        Dtype::U64 => (value as u64).to_string(),
        _ => (value as i64).to_string(),
    }
}
