//! Constants and iota.

use safetensors::Dtype;

use super::attributes::i64_attribute;
use crate::{
    graph::{Graph, Tensor},
    types::{TensorType, element, is_complex, is_float, is_integer},
};

impl Graph {
    /// Returns a tensor with `value` everywhere. Integers truncate it and saturate; booleans are true if it is not zero.
    pub fn full(&mut self, value: f64, dtype: Dtype, shape: &[usize]) -> Tensor {
        let ty = TensorType::new(dtype, shape);
        let text = splat(value, dtype);
        let attribute = format!("dense<{text}> : {ty}");
        self.op("stablehlo.constant", &[], vec![("value", attribute)], ty)
    }

    /// Returns the number `value` everywhere in the shape and type of `x`.
    pub(crate) fn full_like(&mut self, x: Tensor, value: usize) -> Tensor {
        let TensorType { dtype, shape } = self.type_of(x);
        #[expect(clippy::cast_precision_loss, reason = "numbers of positions and heads are below 2^52")]
        let value = self.full(value as f64, dtype, &shape);
        value
    }

    /// Returns a scalar.
    pub fn scalar(&mut self, value: f64, dtype: Dtype) -> Tensor {
        self.full(value, dtype, &[])
    }

    /// Returns a constant of `f32` values in row-major order, exact to the bit.
    pub fn constant_f32(&mut self, values: &[f32], shape: &[usize]) -> Tensor {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant_bytes(&bytes, TensorType::new(Dtype::F32, shape))
    }

    /// Returns a constant of `i32` values in row-major order.
    pub fn constant_i32(&mut self, values: &[i32], shape: &[usize]) -> Tensor {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant_bytes(&bytes, TensorType::new(Dtype::I32, shape))
    }

    /// Returns a constant of the bytes of its elements in row-major order.
    pub(super) fn constant_bytes(&mut self, bytes: &[u8], ty: TensorType) -> Tensor {
        const OP: &str = "stablehlo.constant";
        if bytes.len() * 8 != ty.elements().saturating_mul(ty.dtype.bitsize()) {
            return self.fail(OP, format!("found {} bytes, expected those of {ty}", bytes.len()));
        }
        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        // MLIR reads a single element in hex as a splat, which has the same value.
        let attribute =
            if bytes.is_empty() { format!("dense<> : {ty}") } else { format!("dense<\"0x{hex}\"> : {ty}") };
        self.op(OP, &[], vec![("value", attribute)], ty)
    }

    /// Returns `0, 1, 2, …` along `dimension`.
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

/// Returns the text of a splat's value. In MLIR, infinities and NaN have only a hex form.
fn splat(value: f64, dtype: Dtype) -> String {
    if dtype == Dtype::BOOL {
        return (value != 0.0).to_string();
    }
    if is_complex(dtype) {
        return format!("({}, 0.0)", splat(value, Dtype::F32));
    }
    if !is_float(dtype) {
        return integer(value, dtype);
    }
    if value.is_finite() {
        // MLIR requires a decimal point, which Rust omits in `1e-5`.
        let text = format!("{value:?}");
        return if text.contains('.') { text } else { text.replace('e', ".0e") };
    }
    let class = if value.is_nan() { 2 } else { usize::from(value < 0.0) };
    let bits = match dtype {
        Dtype::F16 => ["0x7C00", "0xFC00", "0x7E00"],
        Dtype::BF16 => ["0x7F80", "0xFF80", "0x7FC0"],
        Dtype::F8_E5M2 => ["0x7C", "0xFC", "0x7E"],
        // This type has no infinities. The largest numbers replace them.
        Dtype::F8_E4M3 => ["448.0", "-448.0", "0x7F"],
        Dtype::F64 => ["0x7FF0000000000000", "0xFFF0000000000000", "0x7FF8000000000000"],
        _ => ["0x7F800000", "0xFF800000", "0x7FC00000"],
    };
    bits[class].to_owned()
}

/// Returns the text of an integer. Casts of floats saturate, so an infinity becomes the type's largest or smallest value.
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
