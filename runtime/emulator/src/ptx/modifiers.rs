//! Modifiers of instructions: which are known, and those that change operands or results of any function.

use super::{
    instruction::{Adjust, Function, Work},
    words::Words,
};
use crate::types::{Space, Type};

/// Directions of rounding that single functions know.
const DIRECTED: [&str; 3] = ["rz", "rm", "rp"];

/// Returns the modifiers that an instruction may have besides types and spaces. An instruction that is not here is refused elsewhere.
fn known(op: &str) -> Option<&'static [&'static str]> {
    Some(match op {
        "add" | "sub" => &["rn", "rz", "rm", "rp", "ftz", "sat"],
        "mul" => &["rn", "rz", "rm", "rp", "ftz", "sat", "lo", "hi", "wide"],
        "mad" | "fma" => &["rn", "rz", "rm", "rp", "ftz", "sat", "relu", "lo", "hi", "wide"],
        "div" => &["rn", "approx", "full", "ftz"],
        "min" | "max" => &["NaN", "ftz"],
        "sqrt" | "rcp" => &["rn", "approx", "ftz"],
        "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => &["approx", "ftz"],
        "abs" | "neg" => &["ftz"],
        "rem" | "and" | "or" | "xor" | "not" | "shl" | "shr" | "popc" | "clz" | "brev" | "selp" | "mov"
        | "copysign" | "bfe" | "prmt" | "dp4a" => &[],
        "shf" => &["l", "r", "wrap"],
        "setp" => &[
            "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu",
            "geu", "num", "nan", "ftz",
        ],
        "cvt" => &["rn", "rni", "rzi", "rmi", "rpi", "ftz", "sat", "relu"],
        "cvta" => &["to"],
        "ld" | "ldu" => &[
            "nc", "volatile", "relaxed", "weak", "cta", "gpu", "sys", "ca", "cg", "cs", "lu", "cv", "v2",
            "v4", "v8",
        ],
        "st" => {
            &["volatile", "relaxed", "weak", "cta", "gpu", "sys", "wb", "cg", "cs", "wt", "v2", "v4", "v8"]
        }
        "atom" | "red" => &[
            "exch", "cas", "add", "and", "or", "inc", "max", "min", "relaxed", "acquire", "release",
            "acq_rel", "cta", "gpu", "sys",
        ],
        "ldmatrix" => &["sync", "aligned", "m8n8", "x1", "x2", "x4", "trans"],
        "cp" => &["async", "commit_group", "wait_group", "wait_all", "ca", "cg"],
        "mma" => &["sync", "aligned", "m16n8k16", "m16n8k8", "m16n8k32", "row", "col"],
        "bar" | "barrier" => &["warp", "sync", "aligned", "cta"],
        "shfl" => &["sync", "up", "down", "bfly", "idx"],
        "vote" => &["sync", "ballot", "any", "all"],
        "bra" => &["uni"],
        "ret" => &["uni"],
        "griddepcontrol" => &["wait", "launch_dependents"],
        _ => return None,
    })
}

/// Refuses modifiers that are not known: they would be ignored.
pub(super) fn check(words: &Words<'_>) -> Result<(), String> {
    let Some(known) = known(words.op) else { return Ok(()) };
    // Hints to caches change no result.
    let is_hint = |name: &str| {
        ["L1::no_allocate", "L1::evict_first", "L1::evict_last", "L2::64B", "L2::128B", "L2::256B"]
            .contains(&name)
    };
    let is_known = |name: &&str| {
        known.contains(name) || Type::of(name).is_some() || Space::of(name).is_some() || is_hint(name)
    };
    match words.modifiers.iter().find(|name| !is_known(name)) {
        Some(name) => Err(format!("found .{name}, expected modifiers that the emulator knows")),
        None => Ok(()),
    }
}

/// Adds what modifiers change to an instruction, or refuses them where they are not known.
pub(super) fn adjusted(words: &Words<'_>, work: Work) -> Result<Work, String> {
    let (function, into) = match work {
        Work::Unary(function, into, x) => (Function::Unary(function, x), into),
        Work::Binary(function, into, operands) => (Function::Binary(function, operands), into),
        Work::Ternary(function, into, operands) => (Function::Ternary(function, operands), into),
        other => return Ok(other),
    };
    let types: Vec<_> = words.modifiers.iter().filter_map(|name| Type::of(name)).collect();
    let (Some(&to), Some(&from)) = (types.first(), types.last()) else { return Ok(work) };
    let refused =
        |name: &str| Err(format!("found .{name} of {to:?}, expected modifiers that the emulator knows"));
    let is_float = |ty| matches!(ty, Type::F32 | Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2);
    let is_integer = matches!(to, Type::Integer { .. });
    if let Some(name) = DIRECTED.iter().find(|name| words.has(name))
        && to != Type::F32
    {
        return refused(name);
    }
    let mut adjust = Adjust::default();
    if words.has("ftz") {
        // Those of f64 are approximations of a few bits, which Newton's method refines: their subnormal numbers stay.
        let is_double = matches!(words.op, "rcp" | "rsqrt") && to == Type::F64;
        if to != Type::F32 && from != Type::F32 && !is_double {
            return refused("ftz");
        }
        adjust.flushes_operands = from == Type::F32;
        adjust.flushes_result = to == Type::F32 && words.op != "setp";
    }
    if words.has("sat") {
        // Conversions of floats to integers saturate in any case.
        let saturates_itself = words.op == "cvt" && is_integer && is_float(from);
        if to != Type::F32 && !saturates_itself {
            return refused("sat");
        }
        adjust.saturates = to == Type::F32;
    }
    if words.has("relu") {
        if !matches!(to, Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2) {
            return refused("relu");
        }
        adjust.rectifies = Some(to);
    }
    if adjust == Adjust::default() { Ok(work) } else { Ok(Work::Adjusted(adjust, function, into)) }
}
