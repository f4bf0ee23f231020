//! Copies of what a function must not write to.
//!
//! iree-compile 3.13 updates tensors in place even if they are arguments, whose memory is the caller's, or values that a loop
//! takes from outside in every turn. So these are copied before the ops that update.

use std::collections::HashSet;

use safetensors::Dtype;

use super::{Graph, Tensor};
use crate::types::{TensorType, ValueType};

/// Ops that write their results where operands are.
const UPDATES: [&str; 3] = ["stablehlo.dynamic_update_slice", "stablehlo.scatter", "stablehlo.sort"];

/// Ops whose results can be where an operand or a result of a region is.
const VIEWS: [&str; 6] = [
    "stablehlo.bitcast_convert",
    "stablehlo.case",
    "stablehlo.if",
    "stablehlo.reshape",
    "stablehlo.slice",
    "stablehlo.while",
];

impl Graph {
    /// Makes the function copy arguments, and what loops take from outside, before it updates them.
    pub(crate) fn protect_arguments(&mut self) {
        self.borrowed = Some(HashSet::new());
    }

    /// Notes that a value is an argument of the function.
    pub(super) fn note_argument(&mut self, argument: Tensor) {
        if let Some(borrowed) = &mut self.borrowed {
            borrowed.insert(argument);
        }
    }

    /// Returns the operands of an op, with copies of those that it must not write to.
    pub(super) fn owned_operands(&mut self, op: &str, operands: &[Tensor]) -> Vec<Tensor> {
        if self.borrowed.is_none() || !UPDATES.contains(&op) {
            return operands.to_vec();
        }
        let updated = match op {
            "stablehlo.dynamic_update_slice" => 1,
            // Tensors, indices, and as many updates.
            "stablehlo.scatter" => operands.len() / 2,
            _ => operands.len(),
        };
        let own = |(index, operand): (usize, &Tensor)| {
            if index < updated && self.is_borrowed(*operand) { self.copy(*operand) } else { *operand }
        };
        operands.iter().enumerate().map(own).collect()
    }

    /// Notes which results of an op are where something is that the function must not write to.
    pub(super) fn note_views(&mut self, op: &str, sources: &[Tensor], results: &[Tensor]) {
        if self.borrowed.is_none() || !VIEWS.contains(&op) {
            return;
        }
        let is_view = sources.iter().any(|source| self.is_borrowed(*source));
        if let Some(borrowed) = self.borrowed.as_mut().filter(|_| is_view) {
            borrowed.extend(results);
        }
    }

    fn is_borrowed(&self, value: Tensor) -> bool {
        let is_from_outside = self.depths.get(value.index()).is_some_and(|depth| *depth < self.regions.len());
        is_from_outside || self.borrowed.as_ref().is_some_and(|borrowed| borrowed.contains(&value))
    }

    /// Returns a copy that the compiler keeps: the bits, combined with zeros of which it knows nothing.
    fn copy(&mut self, x: Tensor) -> Tensor {
        let ty = self.type_of(x);
        let bits = match ty.dtype {
            Dtype::BOOL | Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => ty.dtype,
            Dtype::U8 | Dtype::F8_E5M2 | Dtype::F8_E4M3 => Dtype::I8,
            Dtype::U16 | Dtype::F16 | Dtype::BF16 => Dtype::I16,
            Dtype::U32 | Dtype::F32 => Dtype::I32,
            Dtype::U64 | Dtype::F64 => Dtype::I64,
            Dtype::C64 => {
                let part = TensorType::new(Dtype::F32, ty.shape.clone());
                let [real, imag] =
                    ["stablehlo.real", "stablehlo.imag"].map(|op| self.op(op, &[x], vec![], part.clone()));
                let real = self.copy(real);
                return self.op("stablehlo.complex", &[real, imag], vec![], ty);
            }
            _ => return x,
        };
        let zero = self.scalar(0.0, bits);
        let scalar = vec![ValueType::from(TensorType::new(bits, []))];
        let zero = self.op_with_regions("util.optimization_barrier", &[zero], vec![], vec![], scalar)[0];
        let zeros = self.broadcast_in_dim(zero, &ty.shape, &[]);
        let as_bits = self.bitcast_convert(x, bits);
        let copy = self.or(as_bits, zeros);
        self.bitcast_convert(copy, ty.dtype)
    }
}
