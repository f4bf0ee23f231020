//! How much a function computes, to choose the device for it.

use crate::{
    graph::{Function, Op, Region, Tensor},
    mlir::attributes::field_sizes,
    types::{TensorType, ValueType},
};

/// Ops that only say where elements are: compilers make them part of what reads them.
const FREE: [&str; 6] = [
    "stablehlo.broadcast_in_dim",
    "stablehlo.constant",
    "stablehlo.iota",
    "stablehlo.reshape",
    "stablehlo.slice",
    "stablehlo.transpose",
];

/// Returns an estimate of the numbers that a call computes. Each loop counts once, however often it runs: a loop of small steps
/// gains as little from several threads as one of its steps.
pub(crate) fn work(function: &Function) -> u64 {
    of_region(function, &function.body)
}

fn of_region(function: &Function, region: &Region) -> u64 {
    region.ops.iter().fold(0, |sum, op| sum.saturating_add(of_op(function, op)))
}

fn of_op(function: &Function, op: &Op) -> u64 {
    if matches!(op.name.as_ref(), "stablehlo.while" | "stablehlo.case" | "stablehlo.if") {
        return op.regions.iter().fold(0, |sum, region| sum.saturating_add(of_region(function, region)));
    }
    if FREE.contains(&op.name.as_ref()) {
        return 0;
    }
    let elements = |tensors: &[Tensor]| {
        let sizes = tensors.iter().filter_map(|&tensor| type_of(function, tensor)).map(elements_of);
        sizes.max().unwrap_or(0)
    };
    let (taken, given) = (elements(&op.operands), elements(&op.results));
    let each = match (op.name.as_ref(), op.operands.as_slice()) {
        // What they leave is not touched, if a loop's turn reads or updates a part.
        ("stablehlo.dynamic_slice", _) => return given,
        ("stablehlo.dynamic_update_slice", [_, update, ..]) => return elements(&[*update]),
        ("stablehlo.dot_general", [left, ..]) => {
            type_of(function, *left).map_or(1, |left| contracted(op, &left.shape))
        }
        // Each result is a sum over the kernel of one feature.
        ("stablehlo.convolution", [_, kernel]) => type_of(function, *kernel).map_or(1, |kernel| {
            let features = kernel.shape.iter().max().map_or(1, |&size| size as u64);
            elements_of(kernel) / features.max(1)
        }),
        _ => return taken.max(given),
    };
    given.saturating_mul(each).max(taken)
}

fn type_of(function: &Function, tensor: Tensor) -> Option<&TensorType> {
    match function.type_of(tensor) {
        ValueType::Tensor(ty) => Some(ty),
        ValueType::Host(_) => None,
    }
}

fn elements_of(ty: &TensorType) -> u64 {
    ty.shape.iter().fold(1, |product: u64, &size| product.saturating_mul(size as u64))
}

/// Returns how many products a number of a matrix product sums.
fn contracted(op: &Op, left: &[usize]) -> u64 {
    let numbers = op.attributes.iter().find(|(name, _)| name == "dot_dimension_numbers");
    let dimensions = numbers.map(|(_, value)| field_sizes(value, "lhs_contracting_dimensions"));
    let sizes = dimensions.into_iter().flatten().filter_map(|dimension| left.get(dimension));
    let sizes = sizes.map(|&size| size as u64);
    sizes.fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;
    use crate::{Graph, Reduction};

    #[test]
    fn products_and_sums_count() {
        let mut g = Graph::new();
        let (x, w) = (g.argument(Dtype::F32, &[1000, 100]), g.argument(Dtype::F32, &[100]));
        let product = g.matmul(x, w);
        let sum = g.reduce(product, Reduction::Sum, &[0]);
        let function = g.finish("f", &[sum]).unwrap();
        // The product has 100 terms for each of 1,000 results.
        assert_eq!(work(&function), 100_000 + 1000);
    }
}
