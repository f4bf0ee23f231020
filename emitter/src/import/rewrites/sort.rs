//! Stable sorts.
//!
//! iree-compile exchanges elements of which none comes first. Of one operand that shows too, unless such elements are the same: by
//! their magnitudes, numbers and negative ones are none before the other.

use safetensors::Dtype;

use super::super::{
    ast::{Attributes, Op, Region},
    attributes::{integer, word},
    replay::Replay,
};
use crate::{
    error::Error,
    graph::Tensor,
    ops::places_dtype,
    types::{TensorType, is_float},
};

/// Returns the results of a stable sort: of one that compares places too.
pub(super) fn rewrite(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let dimension = op.attribute("dimension").and_then(integer);
    let (true, Some(dimension), [region]) =
        (op.attribute("is_stable") == Some("true"), dimension, op.regions.as_slice())
    else {
        return Ok(None);
    };
    let is_plain = match operands {
        [] => true,
        [one] => tells_apart(region, replay.graph.dtype(*one)),
        _ => false,
    };
    if is_plain {
        return Ok(None);
    }
    let types: Vec<_> = operands.iter().map(|operand| replay.graph.type_of(*operand)).collect();
    let shape = types[0].shape.clone();
    // A negative dimension counts from the end.
    let rank = i64::try_from(shape.len()).unwrap_or(i64::MAX);
    let Ok(dimension) = usize::try_from(if dimension < 0 { dimension + rank } else { dimension }) else {
        return Ok(None);
    };
    let dtype = places_dtype(types.iter().map(|ty| ty.dtype));
    let places = replay.graph.iota(dtype, &shape, dimension);
    let all_types: Vec<_> = types.into_iter().chain([TensorType::new(dtype, shape)]).collect();
    let scalar = |ty: &TensorType| TensorType::new(ty.dtype, []).into();
    let scalars: Vec<_> = all_types.iter().flat_map(|ty| [scalar(ty), scalar(ty)]).collect();
    let values = replay.graph.begin_region(&scalars);
    let (values, lower) = values.split_at(values.len() - 2);
    let swapped: Vec<_> = values.chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect();
    let compared =
        replay.inlined(region, values).and_then(|forward| Ok((forward, replay.inlined(region, &swapped)?)));
    let before = match &compared {
        Ok((forward, backward)) => match (forward.as_slice(), backward.as_slice()) {
            ([forward], [backward]) => vec![replay.graph.is_before(*forward, *backward, lower)],
            _ => Vec::new(),
        },
        Err(_) => Vec::new(),
    };
    let region = replay.graph.end_region(before);
    compared?;
    let operands = [operands, &[places]].concat();
    let text = dimension.to_string() + " : i64";
    let attributes: Attributes<'_> = [("dimension", text.as_str()), ("is_stable", "true")].into();
    let mut sorted = replay.add(op.name, &operands, &attributes, vec![region], all_types);
    sorted.pop();
    Ok(Some(sorted))
}

/// Returns whether a comparison of two elements finds none first only if they are the same number.
///
/// Zeros of both signs are, and NaNs. Sorts of numbers stay as they are: with places, a CPU takes three times as long, and for GPUs
/// iree-compile 3.13 has no code for sorts of a thousand elements.
fn tells_apart(region: &Region<'_>, dtype: Dtype) -> bool {
    let [a, b] = [0, 1].map(|index| region.arguments.get(index).map_or("", |argument| argument.value));
    let found = region.ops.last().and_then(|end| definition(region, end.operands.first()?));
    let Some(compare) = found.filter(|op| op.name == "stablehlo.compare") else { return false };
    let [x, y] = compare.operands.as_slice() else { return false };
    let is_number = |value: &str, argument: &str| {
        value == argument || (is_float(dtype) && is_number(region, value, argument))
    };
    (is_number(x, a) && is_number(y, b)) || (is_number(x, b) && is_number(y, a))
}

/// Returns whether a value is an argument, but that zeros are one zero, and NaNs one NaN. JAX compares floats so.
fn is_number(region: &Region<'_>, value: &str, argument: &str) -> bool {
    if value == argument {
        return true;
    }
    let of = |name: &str, op: &str| definition(region, name).filter(|found| found.name == op);
    let constant = |name: &str| {
        let text = of(name, "stablehlo.constant")?.attribute("value")?;
        text.strip_prefix("dense<")?.split('>').next()
    };
    let is_zero = |name: &str| constant(name).and_then(|text| text.parse().ok()) == Some(0.0);
    // A NaN is written by its bits.
    let is_bits = |name: &str| constant(name).is_some_and(|text| text.starts_with("0x"));
    let Some(select) = of(value, "stablehlo.select") else { return false };
    let [choice, other, rest] = *select.operands.as_slice() else { return false };
    let Some(compare) = of(choice, "stablehlo.compare") else { return false };
    let [x, y] = *compare.operands.as_slice() else { return false };
    let is_same = match compare.attribute("comparison_direction").and_then(word) {
        Some("EQ") => x == argument && is_zero(y) && is_zero(other),
        Some("NE") => x == argument && y == argument && is_bits(other),
        _ => false,
    };
    is_same && is_number(region, rest, argument)
}

/// Returns the op of a region whose result has this name.
fn definition<'r, 't>(region: &'r Region<'t>, name: &str) -> Option<&'r Op<'t>> {
    region.ops.iter().find(|op| op.results == Some(name))
}
