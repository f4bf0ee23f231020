//! Checks of programs: their functions, and the recorded calls of these.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Display,
};

use safetensors::Dtype;

use super::checks::{Check, ensure, text, within_target};
use crate::{
    error::Error,
    manifest::{
        SMALL_FILE_LIMIT_BYTES, TargetArtifact,
        entry::{ArgumentKind, ArgumentSpec, Entry, ResultKind, ResultSpec, Role},
        program::{Golden, ProgramSpec},
    },
    tensor::{tensor_bytes, type_text},
};

/// The most arguments, and the most results, of a function.
const LONGEST_LIST: usize = 1 << 16;

/// The most dimensions of a tensor, as in NumPy up to version 1.
const RANK_MAX: usize = 32;

/// Checks a program's functions, which are the same for all targets, and its recorded calls.
pub(super) fn check_program(
    program: &ProgramSpec,
    targets: &BTreeMap<String, TargetArtifact>,
    goldens: &[Golden],
) -> Check {
    let ProgramSpec { stablehlo, source: _ } = program;
    stablehlo.iter().try_for_each(|version| text("program.stablehlo", version))?;
    let mut first: Option<(&str, &[Entry])> = None;
    for (name, target) in targets {
        check_target(target).map_err(|error| within_target(name, error))?;
        let (first, functions) = *first.get_or_insert((name, &target.entries));
        ensure(target.entries == functions, || {
            format!("target {name} has other functions than target {first}, expected the same")
        })?;
    }
    let functions = first.map_or(&[][..], |(_, functions)| functions);
    goldens.iter().try_for_each(|golden| check_golden(golden, functions))
}

fn check_target(target: &TargetArtifact) -> Check {
    let TargetArtifact { entries, step_bytes, serving, rewind, packing, .. } = target;
    let is_plain = *step_bytes == 0 && serving.is_none() && rewind.is_none() && packing.is_none();
    ensure(is_plain, || "found step_bytes, serving, rewind or packing, expected none in a program".into())?;
    ensure(!entries.is_empty(), || "no entry, expected at least one".into())?;
    let mut names = HashSet::new();
    for entry in entries {
        text("name of a function", &entry.name)?;
        ensure(names.insert(&entry.name), || format!("entry {} is listed twice", entry.name))?;
        check_function(entry)?;
    }
    Ok(())
}

fn check_function(entry: &Entry) -> Check {
    let Entry { name, function, role, work: _, arguments, results } = entry;
    function.iter().try_for_each(|function| text("name of a function", function))?;
    ensure(*role == Role::Function, || format!("entry {name} is no function, expected one in a program"))?;
    let longest = arguments.len().max(results.len());
    ensure(longest <= LONGEST_LIST, || {
        format!("function {name} has {longest} arguments or results, expected at most {LONGEST_LIST}")
    })?;
    fits_toml(name, entry.work)?;
    for ResultSpec { name: _, kind, dtype, shape } in results {
        ensure(*kind == ResultKind::Output, || format!("function {name} gives {kind}, expected an output"))?;
        check_type(name, "a result", *dtype, shape)?;
    }
    check_arguments(name, arguments, results)?;
    check_names(name, "argument", entry.inputs().map(|(name, _)| name))?;
    check_names(name, "result", entry.outputs().map(|(name, _)| name))
}

/// Checks that each state has the type of its result and a storage, and that storages come last.
fn check_arguments(name: &str, arguments: &[ArgumentSpec], results: &[ResultSpec]) -> Check {
    let (mut states, mut storages) = (HashSet::new(), HashSet::new());
    for argument in arguments {
        let ArgumentSpec { name: given, kind, dtype, shape } = argument;
        check_type(name, "an argument", *dtype, shape)?;
        let (result, seen) = match *kind {
            ArgumentKind::Input => {
                ensure(storages.is_empty(), || after_storage(name))?;
                continue;
            }
            ArgumentKind::State { result } => {
                ensure(storages.is_empty(), || after_storage(name))?;
                (result, &mut states)
            }
            ArgumentKind::Storage { result } => {
                ensure(given.is_none(), || {
                    format!("a storage of function {name} has a name, expected none")
                })?;
                (result, &mut storages)
            }
            _ => return Err(Error::Invalid(format!("function {name} takes {kind}, expected none"))),
        };
        ensure(seen.insert(result), || format!("function {name} has two of {kind} for result {result}"))?;
        let expected = results.get(result).map(|result| (result.dtype, &result.shape));
        ensure(expected == Some((*dtype, shape)), || {
            let found = type_text(*dtype, shape);
            let expected = expected.map_or("no such result".into(), |(dtype, shape)| type_text(dtype, shape));
            format!("{kind} of function {name} is {found}, and result {result} is {expected}")
        })?;
    }
    ensure(states == storages, || {
        format!("function {name} has {} states and {} storages for them", states.len(), storages.len())
    })
}

fn after_storage(name: &str) -> String {
    format!("an argument of function {name} follows a storage, expected storages last")
}

/// Checks that callers can tell arguments or results from each other.
fn check_names(function: &str, what: &str, names: impl Iterator<Item = String>) -> Check {
    let mut seen = HashSet::new();
    for name in names {
        text(format_args!("name of an {what} of function {function}"), &name)?;
        let shown = name.clone();
        ensure(seen.insert(name), || format!("function {function} has two of {what} `{shown}`"))?;
    }
    Ok(())
}

fn check_type(function: &str, what: impl Display, dtype: Dtype, shape: &[usize]) -> Check {
    ensure(shape.len() <= RANK_MAX, || {
        format!("{what} of function {function} has {} dimensions, expected at most {RANK_MAX}", shape.len())
    })?;
    ensure(tensor_bytes(dtype, shape).is_some_and(|bytes| isize::try_from(bytes).is_ok()), || {
        let found = type_text(dtype, shape);
        format!("{what} of function {function} is {found}: its size overflows or is not whole bytes")
    })
}

fn fits_toml(function: &str, work: u64) -> Check {
    ensure(i64::try_from(work).is_ok(), || format!("work of function {function} is {work}: it is too large"))
}

fn check_golden(golden: &Golden, functions: &[Entry]) -> Check {
    let Golden { function, rtol, atol, inputs, outputs } = golden;
    ensure(functions.iter().any(|entry| entry.name == *function), || {
        format!("a golden is of function `{}`, which is not there", function.escape_default())
    })?;
    for tolerance in [rtol, atol] {
        ensure(tolerance.is_finite() && *tolerance >= 0.0, || {
            format!("a golden has the tolerance {tolerance}, expected 0 or more")
        })?;
    }
    for blob in [inputs, outputs] {
        ensure(blob.size <= SMALL_FILE_LIMIT_BYTES, || {
            format!("a golden has {} bytes, expected at most {SMALL_FILE_LIMIT_BYTES}", blob.size)
        })?;
    }
    Ok(())
}
