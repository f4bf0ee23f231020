//! Loops whose turns do not read all that they carry.
//!
//! MLIR gives the parts of such a loop different operands, on which iree-compile 3.13 crashes: JAX's gamma distribution draws
//! numbers until its condition accepts them, and no turn reads those of the one before. So each turn reads them, to choose between
//! them and new ones by a counter that always chooses the new ones.

use safetensors::Dtype;

use super::super::{
    ast::{Op, Region},
    replay::Replay,
};
use crate::{
    error::Error,
    graph::{self, Tensor},
    types::{TensorType, ValueType},
};

/// Returns the results of a loop, if its turns leave out something that it carries.
pub(super) fn rewrite(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let [condition, body] = op.regions.as_slice() else { return Ok(None) };
    let unread: Vec<bool> = body.arguments.iter().map(|argument| !reads(body, argument.value)).collect();
    if !unread.contains(&true) || unread.len() != operands.len() {
        return Ok(None);
    }
    let count = replay.graph.scalar(0.0, Dtype::I32);
    let carried = [&[count], operands].concat();
    let types: Vec<TensorType> = carried.iter().map(|tensor| replay.graph.type_of(*tensor)).collect();
    let arguments: Vec<ValueType> = types.iter().cloned().map(Into::into).collect();
    let goes_on = part(replay, &arguments, |replay, given| replay.inlined(condition, &given[1..]))?;
    let turn = part(replay, &arguments, |replay, given| {
        let next = replay.inlined(body, &given[1..])?;
        let g = &mut replay.graph;
        let (one, most) = (g.scalar(1.0, Dtype::I32), g.scalar(f64::from(i32::MAX), Dtype::I32));
        // Once in 2^32 turns it is false, and the same turn is made again.
        let is_new = g.lt(given[0], most);
        let chosen = next.into_iter().zip(&given[1..]).zip(&unread).map(|((new, &old), is_unread)| {
            if !is_unread {
                return new;
            }
            let shape = g.type_of(new).shape;
            let is_new = g.broadcast_in_dim(is_new, &shape, &[]);
            g.select(is_new, new, old)
        });
        let chosen: Vec<_> = chosen.collect();
        Ok([vec![g.add(given[0], one)], chosen].concat())
    })?;
    let mut results = replay.add(op.name, &carried, &op.attributes, vec![goes_on, turn], types);
    Ok(Some(results.split_off(1)))
}

/// Builds a part of a loop.
fn part(
    replay: &mut Replay<'_, '_>,
    arguments: &[ValueType],
    of: impl FnOnce(&mut Replay<'_, '_>, &[Tensor]) -> Result<Vec<Tensor>, Error>,
) -> Result<graph::Region, Error> {
    let given = replay.graph.begin_region(arguments);
    let results = of(replay, &given);
    // Ended after an error too, so that the graph stays as it was.
    let region = replay.graph.end_region(results.as_deref().unwrap_or_default().to_vec());
    results.map(|_| region)
}

/// Returns whether an op of a region, or of one within, has an operand of this name.
fn reads(region: &Region<'_>, name: &str) -> bool {
    let op_reads =
        |op: &Op<'_>| op.operands.contains(&name) || op.regions.iter().any(|region| reads(region, name));
    region.ops.iter().any(op_reads)
}
