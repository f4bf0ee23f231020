//! Sorting.

use safetensors::Dtype;

use super::attributes::i64_attribute;
use crate::{
    graph::{Graph, Tensor},
    types::TensorType,
};

/// Returns the type of places that a sort of operands of these types compares.
///
/// What is sorted is often counted in `i32`. iree-compile 3.13 cannot sort such a counter twice.
pub(crate) fn places_dtype(mut operands: impl Iterator<Item = Dtype>) -> Dtype {
    if operands.any(|dtype| dtype == Dtype::I32) { Dtype::I64 } else { Dtype::I32 }
}

impl Graph {
    /// Sorts `operands`, which have one shape, together along `dimension`.
    ///
    /// `before` returns whether the left elements come first. Its arguments alternate: for each operand, the left element, then
    /// the right one. A stable sort of several operands compares places too, because iree-compile 3.13 sorts no other way stably.
    /// One of one operand does so once it is imported, unless it compares numbers themselves.
    pub fn sort(
        &mut self,
        operands: &[Tensor],
        dimension: usize,
        stable: bool,
        before: impl Fn(&mut Self, &[Tensor]) -> Tensor,
    ) -> Vec<Tensor> {
        let shape = operands.first().map(|operand| self.shape(*operand).to_vec()).unwrap_or_default();
        if !stable || operands.len() < 2 || dimension >= shape.len() || Self::poisoned(operands) {
            return self.sort_as_it_is(operands, dimension, stable, before);
        }
        let dtype = places_dtype(operands.iter().map(|operand| self.dtype(*operand)));
        let places = self.iota(dtype, &shape, dimension);
        let with_places = [operands, &[places]].concat();
        // With places no two elements are equal, so that the order needs no other promise.
        let mut sorted = self.sort_as_it_is(&with_places, dimension, false, |graph, values| {
            let (values, places) = values.split_at(values.len() - 2);
            let swapped: Vec<_> = values.chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect();
            let (forward, backward) = (before(graph, values), before(graph, &swapped));
            graph.is_before(forward, backward, places)
        });
        sorted.pop();
        sorted
    }

    /// Returns whether the left elements come first: if they do (`forward`), or if the right ones do not either (`backward`) and
    /// their place is lower.
    pub(crate) fn is_before(&mut self, forward: Tensor, backward: Tensor, places: &[Tensor]) -> Tensor {
        let [left, right] = *places else { return Self::poison() };
        let is_lower = self.lt(left, right);
        let is_no_later = self.not(backward);
        let is_tie = self.and(is_no_later, is_lower);
        self.or(forward, is_tie)
    }

    fn sort_as_it_is(
        &mut self,
        operands: &[Tensor],
        dimension: usize,
        stable: bool,
        before: impl FnOnce(&mut Self, &[Tensor]) -> Tensor,
    ) -> Vec<Tensor> {
        const OP: &str = "stablehlo.sort";
        let types: Vec<_> = operands.iter().map(|&operand| self.type_of(operand)).collect();
        let alike = types.windows(2).all(|pair| pair[0].shape == pair[1].shape);
        let valid = alike && types.first().is_some_and(|ty| dimension < ty.rank());
        if !Self::poisoned(operands) && !valid {
            let found: Vec<_> = types.iter().map(ToString::to_string).collect();
            let found = found.join(", ");
            self.fail(
                OP,
                format!("found dimension {dimension} of {found}, expected one shape with that dimension"),
            );
        }
        if Self::poisoned(operands) || !valid {
            return vec![Self::poison(); operands.len()];
        }
        let scalars: Vec<_> = types
            .iter()
            .flat_map(|ty| [TensorType::new(ty.dtype, []).into(), TensorType::new(ty.dtype, []).into()])
            .collect();
        let body = self.region(&scalars, |g, values| vec![before(g, values)]);
        let (found, truth) = (self.type_of(body.results[0]), TensorType::new(Dtype::BOOL, []));
        if !Self::poisoned(&body.results) && found != truth {
            self.fail(OP, format!("found comparison {found}, expected {truth}"));
            return vec![Self::poison(); operands.len()];
        }
        let attributes = vec![("dimension", i64_attribute(dimension)), ("is_stable", stable.to_string())];
        self.op_with_regions(
            OP,
            operands,
            attributes,
            vec![body],
            types.into_iter().map(Into::into).collect(),
        )
    }
}
