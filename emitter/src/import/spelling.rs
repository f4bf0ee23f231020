//! Ops that say in another way what an op of StableHLO says: those of CHLO that broadcast their operands, and `dot`.
//!
//! iree-compile knows them, but what it gets wrong is rewritten, and what a target lacks is refused, under one name alone.

use super::{
    ast::{Attributes, Op},
    attributes::sizes,
    infer::is_written,
    replay::Replay,
};
use crate::{error::Error, graph::Tensor, types::TensorType};

/// Ops that broadcast whose plain forms are ops of CHLO too.
const OF_CHLO: [&str; 3] = ["next_after", "polygamma", "zeta"];

/// Replays an op as the one that says the same; `None` if there is no other.
pub(super) fn replay(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    match (op.name.strip_prefix("chlo.broadcast_"), operands) {
        (Some(short), _) => broadcast(replay, op, short, operands),
        (None, &[left, _]) if op.name == "stablehlo.dot" => dot(replay, op, left, operands),
        _ => Ok(None),
    }
}

/// Replays a product that sums over the last dimension of the left operand and the first of the right one.
fn dot(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    left: Tensor,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let Some(last) = replay.graph.shape(left).len().checked_sub(1) else { return Ok(None) };
    let numbers =
        format!("#stablehlo.dot<lhs_contracting_dimensions = [{last}], rhs_contracting_dimensions = [0]>");
    let mut attributes: Attributes<'_> = op.attributes.clone();
    attributes.insert("dot_dimension_numbers", &numbers);
    replay.op(&op.renamed("stablehlo.dot_general", attributes), operands).map(Some)
}

/// Replays an op of elements after its operands have one shape.
fn broadcast(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    short: &str,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let Some(written) = op.result_types.first().map(|ty| replay.tensor_type(op, ty)).transpose()? else {
        return Ok(None);
    };
    let types: Vec<_> = operands.iter().map(|operand| replay.graph.type_of(*operand)).collect();
    let rank = types.iter().map(TensorType::rank).max().unwrap_or_default();
    // Without numbers for them, dimensions of the operand with fewer are the last ones.
    let given = op.attribute("broadcast_dimensions").and_then(sizes);
    let dimensions = |ty: &TensorType| match &given {
        Some(given) if ty.rank() < rank => given.clone(),
        _ => (rank - ty.rank()..rank).collect(),
    };
    let dimensions: Vec<Vec<usize>> = types.iter().map(dimensions).collect();
    let shape = common_shape(&types, &dimensions, rank).filter(|shape| is_written(shape, &written.shape));
    let Some(shape) = shape else {
        let found: Vec<_> = types.iter().map(ToString::to_string).collect();
        let problem = format!("found {}, expected shapes that broadcast to {written}", found.join(", "));
        return Err(replay.refused(op, problem, "export the program again"));
    };
    let mut alike = Vec::with_capacity(operands.len());
    for ((operand, ty), dimensions) in operands.iter().zip(types).zip(&dimensions) {
        let result = TensorType::new(ty.dtype, shape.clone());
        alike.push(if ty == result { *operand } else { spread(replay, op, *operand, dimensions, &result)? });
    }
    let dialect = if OF_CHLO.contains(&short) { "chlo" } else { "stablehlo" };
    let (name, result) = (format!("{dialect}.{short}"), TensorType::new(written.dtype, shape).to_string());
    let kept = op.attributes.iter().filter(|(name, _)| **name != "broadcast_dimensions");
    // Directions and types of comparisons.
    let kept: Vec<_> = kept.map(|(name, text)| (*name, text.replace("#chlo<", "#stablehlo<"))).collect();
    let attributes = kept.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut plain = op.renamed(&name, attributes);
    plain.result_types = vec![&result];
    replay.op(&plain, &alike).map(Some)
}

/// Returns the shape to which tensors broadcast whose dimensions are these ones of it.
fn common_shape(types: &[TensorType], dimensions: &[Vec<usize>], rank: usize) -> Option<Vec<usize>> {
    let mut shape = vec![1; rank];
    for (ty, dimensions) in types.iter().zip(dimensions) {
        if dimensions.len() != ty.rank() {
            return None;
        }
        for (dimension, &size) in dimensions.iter().zip(&ty.shape) {
            let common = shape.get_mut(*dimension)?;
            match (*common, size) {
                (_, 1) => {}
                (1, _) => *common = size,
                (common, size) if common == size => {}
                _ => return None,
            }
        }
    }
    Some(shape)
}

/// Returns a tensor that is broadcast to a type.
fn spread(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    x: Tensor,
    dimensions: &[usize],
    result: &TensorType,
) -> Result<Tensor, Error> {
    let list: Vec<_> = dimensions.iter().map(ToString::to_string).collect();
    let list = if list.is_empty() { "array<i64>".into() } else { format!("array<i64: {}>", list.join(", ")) };
    let ty = result.to_string();
    let attributes: Attributes<'_> = [("broadcast_dimensions", list.as_str())].into();
    let mut spread = op.renamed("stablehlo.broadcast_in_dim", attributes);
    spread.result_types = vec![&ty];
    let results = replay.op(&spread, &[x])?;
    Ok(results.first().copied().unwrap_or(x))
}

#[cfg(test)]
mod tests {
    use crate::{
        import::{
            ProgramOptions,
            replayed::{replayed, replayed_for},
        },
        kernels::Isa,
    };

    #[test]
    fn operands_of_chlo_are_broadcast_before_the_plain_op() {
        let (wide, last) = ("tensor<3x4xf32>", "tensor<4xf32>");
        let of = |lines: &str, result: &str| replayed(&[wide, last], lines, result).unwrap();
        let spread = |dimensions: &str| {
            format!(
                r#"%2 = "stablehlo.broadcast_in_dim"(%1) <{{broadcast_dimensions = array<i64: {dimensions}>}}>
                : ({last}) -> {wide}
                "#
            )
        };
        let plain = |op: &str, result: &str| of(&(spread("1") + op), result);
        assert_eq!(
            of(&format!(r#"%r = "chlo.broadcast_power"(%0, %1) : ({wide}, {last}) -> {wide}"#), wide),
            plain(&format!(r#"%r = "stablehlo.power"(%0, %2) : ({wide}, {wide}) -> {wide}"#), wide)
        );
        assert_eq!(
            of(&format!(r#"%r = "chlo.broadcast_next_after"(%0, %1) : ({wide}, {last}) -> {wide}"#), wide),
            plain(&format!(r#"%r = "chlo.next_after"(%0, %2) : ({wide}, {wide}) -> {wide}"#), wide)
        );
        let compared = |name: &str, dialect: &str, second: &str, ty: &str| {
            format!(
                r#"%r = "{name}"(%0, {second}) <{{compare_type = #{dialect}<comparison_type TOTALORDER>,
                comparison_direction = #{dialect}<comparison_direction LT>}}> : ({wide}, {ty}) -> tensor<3x4xi1>"#
            )
        };
        assert_eq!(
            of(&compared("chlo.broadcast_compare", "chlo", "%1", last), "tensor<3x4xi1>"),
            plain(&compared("stablehlo.compare", "stablehlo", "%2", wide), "tensor<3x4xi1>")
        );
    }

    #[test]
    fn dimensions_are_those_that_the_op_names() {
        let types = ["tensor<4x1xi1>", "tensor<4xi1>"];
        let line = r#"%r = "chlo.broadcast_add"(%1, %0) <{broadcast_dimensions = array<i64: 1>}>
            : (tensor<4xi1>, tensor<4x1xi1>) -> tensor<?x?xi1>"#;
        let made = replayed(&types, &line.replace('?', "4"), "tensor<4x4xi1>").unwrap();
        // Booleans are combined as the specification says.
        assert!(made.contains("stablehlo.or") && !made.contains("chlo"), "{made}");
        assert!(made.contains("broadcast_dimensions = array<i64: 1>"), "{made}");
        assert!(made.contains("broadcast_dimensions = array<i64: 0, 1>"), "{made}");
        let error = replayed(&types, &line.replace('?', "5"), "tensor<5x5xi1>").unwrap_err();
        assert!(
            error.contains(
                "found tensor<4xi1>, tensor<4x1xi1>, expected shapes that broadcast to tensor<5x5xi1>"
            ),
            "{error}"
        );
    }

    #[test]
    fn a_dot_is_a_general_one() {
        let options = ProgramOptions { isa: Some(Isa::X86_64V3), ..ProgramOptions::default() };
        let of = |op: &str, numbers: &str, types: [&str; 2], result: &str| {
            let line = format!(
                r#"%r = "stablehlo.{op}"(%0, %1) {numbers} : ({}, {}) -> {result}"#,
                types[0], types[1]
            );
            replayed_for(&options, &types, &line, result).unwrap()
        };
        for (types, last, result) in [
            (["tensor<1000x100xf32>", "tensor<100xf32>"], 1, "tensor<1000xf32>"),
            (["tensor<4xbf16>", "tensor<4x5xbf16>"], 0, "tensor<5xbf16>"),
        ] {
            let numbers = format!(
                "<{{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [{last}], \
                 rhs_contracting_dimensions = [0]>}}>"
            );
            let made = of("dot", "", types, result);
            assert_eq!(made, of("dot_general", &numbers, types, result));
        }
    }
}
