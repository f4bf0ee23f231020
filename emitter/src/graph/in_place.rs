//! Copies of what a function must not write to.
//!
//! iree-compile 3.13 updates tensors in place even if they are arguments, whose memory is the caller's, or values that a loop
//! carries or takes from outside in every turn. So these are copied before the ops that update.

use std::collections::HashSet;

use safetensors::Dtype;

use super::{Graph, Tensor};
use crate::types::{TensorType, ValueType, bits_type, signed_type};

/// Ops that write their results where operands are.
pub(super) const UPDATES: [&str; 3] =
    ["stablehlo.dynamic_update_slice", "stablehlo.scatter", "stablehlo.sort"];

impl Graph {
    /// Makes the function copy arguments, and what loops take from outside, before it updates them. If loops are compiled to
    /// carry tensors in place, so are those that they carry.
    pub(crate) fn protect_arguments(&mut self, loops_in_place: bool) {
        self.borrowed = Some(HashSet::new());
        self.carried = loops_in_place.then(HashSet::new);
    }

    /// Returns what it took to carry tensors in place: how many updates are in place, and how many copies turns make for others.
    pub(crate) fn carried_in_place(&self) -> [usize; 2] {
        [self.in_place, self.copies.len()]
    }

    /// Notes that a value is an argument of the function.
    pub(super) fn note_argument(&mut self, argument: Tensor) {
        if let Some(borrowed) = &mut self.borrowed {
            borrowed.insert(argument);
        }
    }

    /// Notes that values are arguments of a region.
    pub(super) fn note_carried(&mut self, arguments: &[Tensor]) {
        if let Some(carried) = &mut self.carried {
            carried.extend(arguments);
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
            let is_carried = self.is_carried(*operand);
            if index >= updated || !(is_carried || self.is_borrowed(*operand)) {
                return *operand;
            }
            let copy = self.copy(*operand);
            if is_carried && !self.is_borrowed(*operand) {
                self.copies.insert(copy, *operand);
            }
            copy
        };
        operands.iter().enumerate().map(own).collect()
    }

    /// Returns whether a value can be where the function must not write to.
    pub(super) fn is_borrowed(&self, value: Tensor) -> bool {
        let is_from_outside = self.depths.get(value.index()).is_some_and(|depth| *depth < self.regions.len());
        is_from_outside || self.borrowed.as_ref().is_some_and(|borrowed| borrowed.contains(&value))
    }

    pub(super) fn is_carried(&self, value: Tensor) -> bool {
        self.carried.as_ref().is_some_and(|carried| carried.contains(&value))
    }

    /// Returns a copy that the compiler keeps: the bits, combined with zeros of which it knows nothing.
    pub(super) fn copy(&mut self, x: Tensor) -> Tensor {
        let ty = self.type_of(x);
        if ty.dtype == Dtype::C64 {
            let part = TensorType::new(Dtype::F32, ty.shape.clone());
            let [real, imag] =
                ["stablehlo.real", "stablehlo.imag"].map(|op| self.op(op, &[x], vec![], part.clone()));
            let real = self.copy(real);
            let copy = self.op("stablehlo.complex", &[real, imag], vec![], ty);
            self.note_own(copy);
            return copy;
        }
        let bits = bits_type(ty.dtype).unwrap_or_else(|| signed_type(ty.dtype));
        let zero = self.scalar(0.0, bits);
        let scalar = vec![ValueType::from(TensorType::new(bits, []))];
        let zero = self.op_with_regions("util.optimization_barrier", &[zero], vec![], vec![], scalar)[0];
        let zeros = self.broadcast_in_dim(zero, &ty.shape, &[]);
        let as_bits = self.bitcast_convert(x, bits);
        let copy = self.or(as_bits, zeros);
        let copy = self.bitcast_convert(copy, ty.dtype);
        self.note_own(copy);
        copy
    }
}
