//! Loops that run a few times, as their bodies one after another.
//!
//! Each turn of a loop waits for the device, and iree-compile does not compile loops that exchange what they carry, as those of
//! JAX's random numbers do.

use super::super::{
    ast::{Op, Region},
    attributes::{integers, tensor_type, word},
    fold::fits,
    replay::Replay,
};
use crate::{error::Error, graph::Tensor};

/// The most turns.
const TURN_LIMIT: usize = 8;

/// The most ops of all turns.
const OP_LIMIT: usize = 1024;

/// Functions that become hundreds of ops each. iree-compile finds no order for the parts of a function that has many of them.
const LARGE: [&str; 3] = ["stablehlo.cosine", "stablehlo.sine", "stablehlo.tan"];

/// Returns the results of a loop that counts to a number which is known.
pub(super) fn rewrite(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let Some(turns) = turns(replay, op, operands) else { return Ok(None) };
    let [_, body] = op.regions.as_slice() else { return Ok(None) };
    if turns > TURN_LIMIT {
        return Ok(None);
    }
    if let Some(mut ops) = OP_LIMIT.checked_div(turns)
        && !fits_into(replay, body, &mut ops)
    {
        return Ok(None);
    }
    let mut state = operands.to_vec();
    for _ in 0..turns {
        state = replay.inlined(body, &state)?;
    }
    Ok(Some(state))
}

/// Returns how often a loop turns, up to one more than the limit, if it adds a number to a counter that it compares with another.
fn turns(replay: &Replay<'_, '_>, op: &Op<'_>, operands: &[Tensor]) -> Option<usize> {
    let [condition, body] = op.regions.as_slice() else { return None };
    let compare = definition(condition, condition.ops.last()?.operands.first()?)?;
    let direction = word(compare.attribute("comparison_direction")?)?;
    let ("stablehlo.compare", [counter, end]) = (compare.name, compare.operands.as_slice()) else {
        return None;
    };
    let index = condition.arguments.iter().position(|argument| argument.value == *counter)?;
    let end = number(replay, condition, end)?;
    let step = definition(body, body.ops.last()?.operands.get(index)?)?;
    let ("stablehlo.add", [counter, step]) = (step.name, step.operands.as_slice()) else { return None };
    if body.arguments.get(index)?.value != *counter {
        return None;
    }
    let step = number(replay, body, step)?;
    let first = *operands.get(index)?;
    let [mut value] = *replay.known(first)? else { return None };
    let ty = replay.graph.type_of(first);
    for turn in 0..=TURN_LIMIT {
        let goes_on = match direction {
            "LT" => value < end,
            "LE" => value <= end,
            "GT" => value > end,
            "GE" => value >= end,
            "NE" => value != end,
            _ => return None,
        };
        if !goes_on {
            return Some(turn);
        }
        // Beyond the numbers of its type it would begin again.
        value = value.checked_add(step).filter(|value| fits(*value, &ty))?;
    }
    Some(TURN_LIMIT + 1)
}

/// Returns the op of a region whose result has this name, or the name and a number if it has several.
fn definition<'r, 't>(region: &'r Region<'t>, name: &str) -> Option<&'r Op<'t>> {
    let name = name.split('#').next();
    region.ops.iter().find(|op| op.results == name)
}

/// Returns a number that a region takes from outside or has as a constant.
fn number(replay: &Replay<'_, '_>, region: &Region<'_>, name: &str) -> Option<i64> {
    let values = match definition(region, name) {
        Some(op) if op.name == "stablehlo.constant" => {
            let ty = tensor_type(op.result_types.first()?)?;
            integers(op.attribute("value")?).filter(|values| values.iter().all(|value| fits(*value, &ty)))?
        }
        Some(_) => return None,
        // It may change with each turn. A loop before this one may have left what its argument of this name was.
        None if region.arguments.iter().any(|argument| argument.value == name) => return None,
        None => replay.known(*replay.frames.last()?.get(name)?)?.to_vec(),
    };
    let [value] = *values else { return None };
    Some(value)
}

/// Takes the ops of a region from those that are left, also ops of regions within and of functions that it calls. Returns whether
/// there were as many.
///
/// It ends with the first that is too many: functions that call others several times have more ops than can be counted.
fn fits_into(replay: &Replay<'_, '_>, region: &Region<'_>, left: &mut usize) -> bool {
    region.ops.iter().all(|op| {
        let own = if LARGE.contains(&op.name) { OP_LIMIT } else { 1 };
        let Some(rest) = left.checked_sub(own) else { return false };
        *left = rest;
        let callee = op.attribute("callee").map(|name| name.trim_start_matches('@').trim_matches('"'));
        let callee =
            callee.and_then(|name| replay.module.functions.iter().find(|function| function.name == name));
        op.regions.iter().all(|region| fits_into(replay, region, left))
            && callee.is_none_or(|function| fits_into(replay, &function.body, left))
    })
}
