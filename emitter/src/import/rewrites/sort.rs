//! Stable sorts.
//!
//! iree-compile exchanges elements of which none comes first, so that a sort of several operands is not stable.

use super::super::{
    ast::{Attributes, Op},
    attributes::integer,
    replay::Replay,
};
use crate::{error::Error, graph::Tensor, ops::places_dtype, types::TensorType};

/// Returns the results of a stable sort of several operands: of one that compares places too.
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
    if operands.len() < 2 {
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
