//! Sorting.

use safetensors::Dtype;

use super::attributes::i64_attribute;
use crate::{
    graph::{Graph, Tensor},
    types::TensorType,
};

impl Graph {
    /// Sorts `operands`, which have one shape, together along `dimension`.
    ///
    /// `before` returns whether the left elements come first. Its arguments alternate: for each operand, the left element, then
    /// the right one.
    pub fn sort(
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
