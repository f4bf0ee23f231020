//! Loads, stores, atomics and conversions of addresses as they are written.

use super::{
    instruction::{Operand, Work},
    operands::{Scope, parts},
    words::Words,
};
use crate::{
    alu,
    types::{LOCAL_WINDOW, SHARED_WINDOW, Space},
};

/// Reads an instruction if it is about memory.
pub(super) fn decode(words: &Words<'_>, scope: &Scope) -> Result<Option<Work>, String> {
    let address = |index: usize| scope.address(words.operand(index)?);
    let read = |index: usize| scope.operand(words.operand(index)?);
    Ok(Some(match words.op {
        "ld" | "ldu" => Work::Load {
            space: words.space(),
            ty: words.ty()?,
            into: parts(words.operand(0)?)
                .into_iter()
                .map(|name| scope.result(name))
                .collect::<Result<_, _>>()?,
            from: address(1)?,
            unchanging: words.has("nc"),
        },
        "st" => Work::Store {
            space: words.space(),
            ty: words.ty()?,
            into: address(0)?,
            from: parts(words.operand(1)?)
                .into_iter()
                .map(|name| scope.operand(name))
                .collect::<Result<_, _>>()?,
        },
        "cvta" => {
            let function: fn(u64, u64) -> u64 =
                if words.has("to") { u64::wrapping_sub } else { u64::wrapping_add };
            let window = match words.space() {
                Space::Shared => SHARED_WINDOW,
                Space::Local => LOCAL_WINDOW,
                _ => 0,
            };
            Work::Binary(function, scope.register(words.operand(0)?)?, [read(1)?, Operand::Constant(window)])
        }
        "atom" | "red" => {
            let first = usize::from(words.op == "atom");
            let old = if first == 1 { scope.result(words.operand(0)?)? } else { None };
            let other =
                if words.operands.len() > first + 2 { read(first + 2)? } else { Operand::Constant(0) };
            let function = alu::atomic(&words.modifiers, words.ty()?);
            // In shared memory, and among the threads of a block, barriers order.
            let is_wide = words.space() == Space::Global && !words.has("cta");
            Work::Atomic {
                space: words.space(),
                ty: words.ty()?,
                function: function.ok_or("found an atomic operation that the emulator does not know")?,
                old,
                at: address(first)?,
                operands: [read(first + 1)?, other],
                acquires: is_wide && (words.has("acq_rel") || words.has("acquire")),
                releases: is_wide && (words.has("acq_rel") || words.has("release")),
            }
        }
        "cp" if words.has("async") => return copy(words, scope),
        "ldmatrix" => matrices(words, scope)?,
        _ => return Ok(None),
    }))
}

/// Reads a load of matrices: `ldmatrix.sync.aligned.m8n8.x4.shared.b16`.
fn matrices(words: &Words<'_>, scope: &Scope) -> Result<Work, String> {
    let into: Vec<_> =
        parts(words.operand(0)?).into_iter().map(|name| scope.register(name)).collect::<Result<_, _>>()?;
    let count = [("x1", 1), ("x2", 2), ("x4", 4)].iter().find(|(name, _)| words.has(name));
    let count = count.map_or(0, |(_, count)| *count);
    if !["sync", "aligned", "m8n8", "b16"].iter().all(|name| words.has(name))
        || words.space() != Space::Shared
        || into.len() != count
    {
        return Err(
            "found another load of matrices, expected .sync.aligned.m8n8 with .x1, .x2 or .x4 and as \
                    many registers, .shared and .b16"
                .to_owned(),
        );
    }
    Ok(Work::LoadMatrix { into, from: scope.address(words.operand(1)?)?, transposed: words.has("trans") })
}

/// Reads a copy to shared memory, or what ends a group of them or waits for some, if it is one of these.
fn copy(words: &Words<'_>, scope: &Scope) -> Result<Option<Work>, String> {
    let number = |index: usize| {
        let Operand::Constant(number) = scope.operand(words.operand(index)?)? else {
            return Err("found no number, expected one".to_owned());
        };
        usize::try_from(number).map_err(|_| format!("found {number}, expected a size"))
    };
    if words.has("commit_group") {
        return Ok(Some(Work::EndCopies));
    }
    if words.has("wait_group") {
        return Ok(Some(Work::AwaitCopies(Some(number(0)?))));
    }
    if words.has("wait_all") {
        return Ok(Some(Work::AwaitCopies(None)));
    }
    if !words.has("shared") || !words.has("global") {
        return Ok(None);
    }
    let (bytes, sizes): (_, &[usize]) = (number(2)?, if words.has("cg") { &[16] } else { &[4, 8, 16] });
    if !sizes.contains(&bytes) {
        return Err(format!("found {bytes} bytes, expected one of {sizes:?}"));
    }
    if words.operands.len() > 4 || words.operands.get(3).is_some_and(|text| scope.is_predicate(text)) {
        return Err("found ignore-src or a cache policy, expected a number of bytes to read".to_owned());
    }
    let valid = words.operands.get(3).map(|text| scope.operand(text)).transpose()?;
    Ok(Some(Work::Copy {
        into: scope.address(words.operand(0)?)?,
        from: scope.address(words.operand(1)?)?,
        bytes,
        valid,
    }))
}
