//! Instructions as they are written.

use std::collections::HashMap;

use super::{
    instruction::{Barrier, Guard, Instruction, MatrixType, Operand, Register, Shuffle, Vote, Work},
    memory, modifiers,
    operands::{Scope, parts, separated},
    target::Target,
    words::Words,
};
use crate::{alu, types::Type};

/// Reads an instruction.
pub(super) fn decode(
    text: &str,
    scope: &Scope,
    targets: &HashMap<&str, usize>,
    target: Target,
) -> Result<Instruction, String> {
    let (guard, rest) = match text.strip_prefix('@') {
        Some(rest) => {
            let (predicate, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let (expected, name) =
                predicate.strip_prefix('!').map_or((true, predicate), |name| (false, name));
            (Some(Guard { register: scope.register(name)?, expected }), rest.trim_start())
        }
        None => (None, text),
    };
    let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let operands = if operands.trim().is_empty() { Vec::new() } else { separated(operands.trim()) };
    let mut parts = name.split('.');
    let words = Words { op: parts.next().unwrap_or_default(), modifiers: parts.collect(), operands };
    target.check(&words)?;
    modifiers::check(&words)?;
    let work = modifiers::adjusted(&words, work(&words, scope, targets)?)?;
    Ok(Instruction { guard, work, text: text.to_owned() })
}

fn work(words: &Words<'_>, scope: &Scope, targets: &HashMap<&str, usize>) -> Result<Work, String> {
    if let Some(work) = memory::decode(words, scope)? {
        return Ok(work);
    }
    let read = |index: usize| scope.operand(words.operand(index)?);
    Ok(match words.op {
        "bra" => {
            let label = words.operand(0)?;
            let target = targets.get(label);
            Work::Branch(
                *target.ok_or_else(|| format!("found no label {label}, expected one of the kernel"))?,
            )
        }
        "ret" | "exit" => Work::Return,
        "griddepcontrol" if words.has("wait") => Work::AwaitKernels,
        "griddepcontrol" if words.has("launch_dependents") => Work::StartNext,
        "membar" | "fence" | "prefetch" | "nanosleep" => Work::Nothing,
        "bar" | "barrier" if words.has("warp") => Work::WarpBarrier(read(0)?),
        "bar" | "barrier" if words.has("sync") => Work::Barrier(Barrier {
            number: read(0)?,
            threads: if words.operands.len() > 1 { Some(read(1)?) } else { None },
            aligned: words.op == "bar" || words.has("aligned"),
        }),
        "shfl" => shuffle(words, scope)?,
        "vote" => vote(words, scope)?,
        "mma" => matrix(words, scope)?,
        "mov" => moved(words, scope)?,
        "cvt" if words.has("f16x2") || words.has("bf16x2") => {
            let function = alu::pair_of_floats(words.has("bf16x2"));
            Work::Binary(function, scope.register(words.operand(0)?)?, [read(1)?, read(2)?])
        }
        _ => arithmetic(words, scope)?,
    })
}

/// Reads what each lane computes for itself.
fn arithmetic(words: &Words<'_>, scope: &Scope) -> Result<Work, String> {
    let unknown = || "found an instruction that the emulator does not know".to_owned();
    let result = scope.register(words.operand(0)?)?;
    let ty = words.ty()?;
    let read = |index: usize| {
        let text = words.operand(index)?;
        match (text.strip_prefix('!'), scope.operand(text)) {
            (_, Ok(Operand::Constant(value))) if ty == Type::Predicate => {
                Ok(Operand::Constant(u64::from(value != 0)))
            }
            (None, operand) => operand,
            (Some(_), _) => Err(unknown()),
        }
    };
    match words.operands.len() {
        2 => {
            let function = if words.op == "cvt" {
                let types: Vec<_> = words.modifiers.iter().filter_map(|name| Type::of(name)).collect();
                let [to, from] = types[..] else { return Err(unknown()) };
                alu::conversion(&words.modifiers, to, from)
            } else {
                alu::unary(words.op, ty)
            };
            Ok(Work::Unary(function.ok_or_else(unknown)?, result, read(1)?))
        }
        3 => {
            let function = if words.op == "setp" {
                words.modifiers.first().and_then(|comparison| alu::comparison(comparison, ty))
            } else {
                alu::binary(words.op, &words.modifiers, ty)
            };
            Ok(Work::Binary(function.ok_or_else(unknown)?, result, [read(1)?, read(2)?]))
        }
        4 => {
            let function = alu::ternary(words.op, &words.modifiers, ty).ok_or_else(unknown)?;
            Ok(Work::Ternary(function, result, [read(1)?, read(2)?, read(3)?]))
        }
        _ => Err(unknown()),
    }
}

/// Reads `mov`, also of vectors to or from a register.
fn moved(words: &Words<'_>, scope: &Scope) -> Result<Work, String> {
    let (to, from) = (parts(words.operand(0)?), parts(words.operand(1)?));
    let bits = 8 * words.ty()?.bytes();
    let part = |count: usize| u32::try_from(bits / count.max(1)).unwrap_or_default();
    Ok(match (to.as_slice(), from.as_slice()) {
        (&[to], &[from]) => {
            let from = match scope.operand(from)? {
                Operand::Constant(value) if words.ty()? == Type::Predicate => {
                    Operand::Constant(u64::from(value != 0))
                }
                other => other,
            };
            Work::Unary(|x| x, scope.register(to)?, from)
        }
        (&[to], from) => {
            let operands = from.iter().map(|name| scope.operand(name)).collect::<Result<Vec<_>, _>>()?;
            Work::Pack(scope.register(to)?, operands, part(from.len()))
        }
        (to, &[from]) => {
            let results = to.iter().map(|name| scope.result(name)).collect::<Result<Vec<_>, _>>()?;
            Work::Unpack(results, scope.operand(from)?, part(to.len()))
        }
        _ => return Err("found two vectors, expected one".to_owned()),
    })
}

fn shuffle(words: &Words<'_>, scope: &Scope) -> Result<Work, String> {
    let kinds =
        [("up", Shuffle::Up), ("down", Shuffle::Down), ("bfly", Shuffle::Butterfly), ("idx", Shuffle::Index)];
    let kind = kinds.iter().find(|(name, _)| words.has(name)).map(|(_, kind)| *kind);
    let (into, valid) = match words.operand(0)?.split_once('|') {
        Some((into, valid)) => (into, Some(scope.register(valid)?)),
        None => (words.operand(0)?, None),
    };
    let read = |index: usize| scope.operand(words.operand(index)?);
    Ok(Work::Shuffle {
        kind: kind.ok_or("found no kind of shuffle, expected up, down, bfly or idx")?,
        into: scope.register(into)?,
        valid,
        operands: [read(1)?, read(2)?, read(3)?, read(4)?],
    })
}

fn vote(words: &Words<'_>, scope: &Scope) -> Result<Work, String> {
    let kinds = [("ballot", Vote::Ballot), ("any", Vote::Any), ("all", Vote::All)];
    let kind = kinds.iter().find(|(name, _)| words.has(name)).map(|(_, kind)| *kind);
    let (expected, predicate) = match words.operand(1)?.strip_prefix('!') {
        Some(name) => (false, name),
        None => (true, words.operand(1)?),
    };
    Ok(Work::Vote {
        kind: kind.ok_or("found no kind of vote, expected ballot, any or all")?,
        into: scope.register(words.operand(0)?)?,
        predicate: scope.operand(predicate)?,
        expected,
        mask: scope.operand(words.operand(2)?)?,
    })
}

/// Reads a product of matrices: `mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32`.
fn matrix(words: &Words<'_>, scope: &Scope) -> Result<Work, String> {
    let shape = words.modifiers.iter().find(|name| name.starts_with("m16n8")).copied().unwrap_or_default();
    let types: Vec<&str> =
        words.modifiers.iter().skip_while(|name| **name != "col").skip(1).copied().collect();
    let (ty, inputs) = match (shape, types.as_slice()) {
        ("m16n8k16", ["f32", "bf16", "bf16", "f32"]) => (MatrixType::Bf16, 4),
        ("m16n8k16", ["f32", "f16", "f16", "f32"]) => (MatrixType::F16, 4),
        ("m16n8k8", ["f32", "bf16", "bf16", "f32"]) => (MatrixType::Bf16, 2),
        ("m16n8k8", ["f32", "f16", "f16", "f32"]) => (MatrixType::F16, 2),
        ("m16n8k32", ["s32", "s8", "s8", "s32"]) => (MatrixType::S8, 4),
        _ => return Err("found a matrix product that the emulator does not know".to_owned()),
    };
    let read = |index: usize| -> Result<Vec<Operand>, String> {
        parts(words.operand(index)?).into_iter().map(|name| scope.operand(name)).collect()
    };
    let results = parts(words.operand(0)?).into_iter().map(|name| scope.register(name));
    let d: Vec<Register> = results.collect::<Result<_, _>>()?;
    let (a, b, c) = (read(1)?, read(2)?, read(3)?);
    match (<[Register; 4]>::try_from(d), <[Operand; 4]>::try_from(c)) {
        (Ok(d), Ok(c)) if (a.len(), b.len()) == (inputs, inputs / 2) => Ok(Work::Matrix { ty, d, a, b, c }),
        _ => Err(format!("found other registers, expected 4 results, {inputs} and {} operands", inputs / 2)),
    }
}
