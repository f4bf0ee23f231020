//! Values that can be where others are.
//!
//! iree-compile 3.13 folds what changes nothing: a sum with zero, a slice of everything, two transposes of which one undoes the
//! other. An op that updates the result then writes to the operand.

use std::collections::HashMap;

use safetensors::Dtype;

use super::{Graph, Op, Tensor};
use crate::{
    mlir::attributes::{size, sizes},
    types::{TensorType, is_integer, signed_type},
};

/// Ops whose results can be where an operand or a result of a region is.
const VIEWS: [&str; 9] = [
    "stablehlo.bitcast_convert",
    "stablehlo.case",
    "stablehlo.if",
    "stablehlo.optimization_barrier",
    "stablehlo.reduce_precision",
    "stablehlo.reshape",
    "stablehlo.slice",
    "stablehlo.while",
    "util.optimization_barrier",
];

/// Ops that move elements. If the result has as many as an operand, nothing may have moved.
const MOVES: [&str; 6] = [
    "stablehlo.broadcast_in_dim",
    "stablehlo.concatenate",
    "stablehlo.dynamic_slice",
    "stablehlo.dynamic_update_slice",
    "stablehlo.pad",
    "stablehlo.reduce",
];

/// Groups of ops that undo each other or themselves. Those from [`EXACT`] on do so with integers alone: floats are rounded.
const UNDO: [&[&str]; 7] = [
    &["stablehlo.complex", "stablehlo.imag", "stablehlo.real"],
    &["stablehlo.negate"],
    &["stablehlo.reverse"],
    &["stablehlo.transpose"],
    &["stablehlo.convert"],
    &["stablehlo.add", "stablehlo.negate", "stablehlo.subtract"],
    &["stablehlo.not", "stablehlo.xor"],
];

/// The first group of [`UNDO`] that is of integers alone.
const EXACT: usize = 4;

/// Ops of two operands that return one if both are the same.
const CHOOSE: [&str; 4] = ["stablehlo.and", "stablehlo.maximum", "stablehlo.minimum", "stablehlo.or"];

/// Where a value can be, as seen from memory that a function must not write to.
#[derive(Clone, Copy, Default)]
struct Place {
    /// It can be there.
    is_there: bool,
    /// It can be computed from what is there by ops of these groups alone, a bit for each. Then ops that undo them are there.
    groups: u8,
}

/// What an op does with an operand.
enum Effect {
    /// Its result is elsewhere.
    Apart,
    /// It computes each element of its result from one of the operand.
    Computes {
        /// The groups of ops that it is of.
        groups: u8,
        /// Whether it can return the operand as it is.
        can_keep: bool,
    },
    /// Its result can be where the operand is.
    Keeps,
}

impl Graph {
    /// Notes which results of an op can be where something is that the function must not write to.
    pub(super) fn note_views(&mut self, op: &Op) {
        if self.borrowed.is_none() {
            return;
        }
        self.note_constants(op);
        let place = self.place(op, |value| self.is_borrowed(value), &self.derived);
        if let Some(borrowed) = self.borrowed.as_mut().filter(|_| place.is_there) {
            borrowed.extend(&op.results);
        }
        note_groups(&mut self.derived, op, place);
        if self.carried.is_none() || op.name == "stablehlo.while" {
            return;
        }
        let place = self.place(op, |value| self.is_carried(value), &self.derived_from_carried);
        if place.is_there {
            self.note_carried(&op.results);
        }
        note_groups(&mut self.derived_from_carried, op, place);
    }

    /// Notes that a value has memory of its own, whatever it is computed from.
    pub(super) fn note_own(&mut self, value: Tensor) {
        for values in [self.borrowed.as_mut(), self.carried.as_mut()].into_iter().flatten() {
            values.remove(&value);
        }
        self.derived.remove(&value);
        self.derived_from_carried.remove(&value);
    }

    /// Returns where the results of an op can be.
    fn place(&self, op: &Op, is_there: impl Fn(Tensor) -> bool, derived: &HashMap<Tensor, u8>) -> Place {
        let of = |value: Tensor| Place {
            is_there: is_there(value),
            groups: derived.get(&value).copied().unwrap_or_default(),
        };
        let of_operand = |(index, operand): (usize, &Tensor)| {
            let known = of(*operand);
            if !known.is_there && known.groups == 0 {
                return known;
            }
            match self.effect(op, index) {
                Effect::Apart => Place::default(),
                Effect::Computes { groups, can_keep } => Place {
                    is_there: (can_keep && known.is_there) || known.groups & groups != 0,
                    groups: if can_keep || groups != 0 { known.groups | groups } else { 0 },
                },
                Effect::Keeps => known,
            }
        };
        let of_operands = op.operands.iter().enumerate().map(of_operand);
        let regions = if VIEWS.contains(&&*op.name) { op.regions.as_slice() } else { &[] };
        let returned = regions.iter().flat_map(|region| &region.results).map(|value| of(*value));
        of_operands.chain(returned).fold(Place::default(), |one, other| Place {
            is_there: one.is_there || other.is_there,
            groups: one.groups | other.groups,
        })
    }

    /// Returns what an op does with one of its operands.
    fn effect(&self, op: &Op, index: usize) -> Effect {
        let name = &*op.name;
        if VIEWS.contains(&name) {
            return Effect::Keeps;
        }
        let types = op.operands.get(index).zip(op.results.first());
        let types =
            types.and_then(|(operand, result)| self.tensor_type(*operand).zip(self.tensor_type(*result)));
        let Some((operand, result)) = types.filter(|(x, y)| x.elements() == y.elements()) else {
            return Effect::Apart;
        };
        if MOVES.contains(&name) {
            let is_moved = match name {
                "stablehlo.concatenate" => true,
                // What is updated was copied before.
                "stablehlo.dynamic_update_slice" => index == 1,
                _ => index == 0,
            };
            return if is_moved { Effect::Keeps } else { Effect::Apart };
        }
        if !op.regions.is_empty() {
            return Effect::Apart;
        }
        let is_exact = [operand, result].iter().all(|ty| is_integer(ty.dtype) || ty.dtype == Dtype::BOOL);
        let groups =
            UNDO.iter().enumerate().filter(|(at, ops)| ops.contains(&name) && (is_exact || *at < EXACT));
        let groups = groups.fold(0, |groups, (at, _)| groups | 1 << at);
        let is_alike = signed_type(operand.dtype) == signed_type(result.dtype);
        Effect::Computes { groups, can_keep: is_alike && self.can_return(op, index, operand) }
    }

    /// Returns whether an op of elements can return an operand of its result's type as it is.
    fn can_return(&self, op: &Op, index: usize, operand: &TensorType) -> bool {
        let attribute = |name: &str| {
            op.attributes.iter().find(|(found, _)| found == name).and_then(|(_, text)| sizes(text))
        };
        let is_long = |d: &usize| operand.shape.get(*d) != Some(&1);
        let is_neutral = |value: &Tensor| self.constants.get(value) == Some(&true);
        match (&*op.name, op.operands.as_slice()) {
            ("stablehlo.convert", _) => true,
            ("stablehlo.transpose", _) => {
                attribute("permutation").is_none_or(|order| order.into_iter().filter(is_long).is_sorted())
            }
            ("stablehlo.reverse", _) => attribute("dimensions").is_none_or(|all| !all.iter().any(is_long)),
            ("stablehlo.select", [choice, x, y]) if index > 0 => x == y || is_neutral(choice),
            (name, [x, y]) if x == y => CHOOSE.contains(&name),
            (_, [_]) => false,
            (_, all) => all.iter().enumerate().all(|(other, value)| other == index || is_neutral(value)),
        }
    }

    /// Notes that an op computes constants.
    fn note_constants(&mut self, op: &Op) {
        let name = &*op.name;
        let attribute = |name: &str| op.attributes.iter().find(|(found, _)| found == name);
        let can_be_neutral = match name {
            "stablehlo.constant" => attribute("value").map(|(_, text)| can_be_neutral(text)),
            // Counts to one.
            "stablehlo.iota" => {
                let dimension = attribute("iota_dimension").and_then(|(_, text)| size(text));
                let ty = op.results.first().and_then(|result| self.tensor_type(*result));
                ty.zip(dimension).filter(|(ty, d)| ty.shape.get(*d) == Some(&1)).map(|_| true)
            }
            "stablehlo.optimization_barrier" => None,
            _ if op.operands.is_empty() || !op.regions.is_empty() || !name.starts_with("stablehlo.") => None,
            _ => {
                let known: Option<Vec<bool>> =
                    op.operands.iter().map(|operand| self.constants.get(operand).copied()).collect();
                let moves = ["stablehlo.broadcast_in_dim", "stablehlo.reshape"].contains(&name);
                known.map(|known| !moves || known.contains(&true))
            }
        };
        if let Some(can_be_neutral) = can_be_neutral {
            self.constants.extend(op.results.iter().map(|result| (*result, can_be_neutral)));
        }
    }
}

/// Notes by which groups of ops results can be computed from what is in some place.
fn note_groups(derived: &mut HashMap<Tensor, u8>, op: &Op, place: Place) {
    if place.groups != 0 {
        derived.extend(op.results.iter().map(|result| (*result, place.groups)));
    }
}

/// Returns whether a constant can be one that an op changes nothing with: 0, 1, the least, the largest or all bits.
fn can_be_neutral(text: &str) -> bool {
    let Some(value) = text.strip_prefix("dense<").and_then(|rest| rest.split('>').next()) else {
        return true;
    };
    let is_other = match value.parse::<f64>() {
        Ok(number) => {
            let is_float = value.contains(['.', 'e', 'E']);
            // Beyond, it can be the largest integer of a type, or all bits of one.
            let limit = if is_float { f64::INFINITY } else { f64::from(i8::MAX) };
            ![-1.0, 0.0, 1.0].contains(&number) && number.abs() < limit
        }
        // Elements that are the same are written as one.
        Err(_) => value.starts_with('['),
    };
    !is_other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_that_change_nothing_are_told_from_others() {
        for neutral in
            ["0", "-0.000000e+00", "1", "1.000000e+00", "-1", "true", "127", "-2147483648", "0x7F800000"]
        {
            assert!(can_be_neutral(&format!("dense<{neutral}> : tensor<4xf32>")), "{neutral}");
        }
        assert!(can_be_neutral("dense_resource<weights> : tensor<4xf32>"));
        assert!(can_be_neutral("dense<\"0x0000\"> : tensor<2xi8>"));
        for other in ["2", "-126", "0.5", "1.270000e+02", "3.000000e+38", "[0, 1]"] {
            assert!(!can_be_neutral(&format!("dense<{other}> : tensor<4xf32>")), "{other}");
        }
    }
}
