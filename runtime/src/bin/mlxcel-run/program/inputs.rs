//! Reads the arguments of a function from files and from the command line.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Result, anyhow, bail};
use mlxcel_artifacts::{Tensor, TensorFile, entry::Entry, type_text};
use mlxcel_runtime::nearest;
use safetensors::Dtype;

use super::literal;

/// Name and type of each argument.
type Types<'e> = Vec<(String, Dtype, &'e [usize])>;

/// Reads arguments for the first of several entry points that they fit, which differ in their shapes.
pub(super) fn read<'e>(
    inputs: &[String],
    entries: &[&'e Entry],
) -> Result<(&'e Entry, BTreeMap<String, Tensor>)> {
    let mut first = None;
    for entry in entries {
        match read_for(inputs, entry) {
            Ok(tensors) => return Ok((entry, tensors)),
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    Err(first.unwrap_or_else(|| anyhow!("found no function, expected one")))
}

/// Reads the arguments of an entry point, all of them.
fn read_for(inputs: &[String], entry: &Entry) -> Result<BTreeMap<String, Tensor>> {
    let types: Types<'_> =
        entry.inputs().map(|(name, spec)| (name, spec.dtype, spec.shape.as_slice())).collect();
    let mut tensors = BTreeMap::new();
    for input in inputs {
        for (name, tensor) in one(input, &types)? {
            if let Some(index) = types.iter().position(|(known, ..)| *known == name)
                && tensors.insert(name.clone(), tensor).is_some()
            {
                bail!(
                    "argument {} \"{name}\": found two values, expected one\nhint: leave one out",
                    index + 1
                );
            }
        }
    }
    for (index, (name, dtype, shape)) in types.iter().enumerate() {
        if !tensors.contains_key(name) {
            let expected = type_text(*dtype, shape);
            bail!(
                "argument {} \"{name}\": found nothing, expected {expected}\n\
                 hint: give it with --input \"{name}\"=@FILE.npy, or all in one file with --input @FILE.npz",
                index + 1
            );
        }
    }
    Ok(tensors)
}

/// Reads the tensors of one `--input`.
fn one(input: &str, types: &Types<'_>) -> Result<BTreeMap<String, Tensor>> {
    if let Some(path) = input.strip_prefix('@') {
        let file = TensorFile::open(Path::new(path))?;
        if !file.has_names() {
            // A function of one argument needs no name.
            let [(name, ..)] = types.as_slice() else {
                bail!("{path} has one array without a name, expected NAME=@{path}\nhint: name the argument");
            };
            return Ok([(name.clone(), file.read_as("", "argument", 0, types)?)].into());
        }
        return Ok(file.read_expected("argument", types)?);
    }
    let (index, value) = split(input, types)?;
    let (name, dtype, shape) = &types[index];
    let tensor = match value.strip_prefix('@') {
        Some(path) => {
            let file = TensorFile::open(Path::new(path))?;
            let all = file.tensors();
            // A file of one tensor needs not have the argument's name.
            let key = match all.as_slice() {
                [(only, ..)] => *only,
                _ => name.as_str(),
            };
            file.read_as(key, "argument", index, types)?
        }
        None => literal::read(value, *dtype, shape).map_err(|problem| {
            anyhow!(
                "argument {} \"{name}\": {problem}\nhint: write {name}=0.1, {name}=4xf32=1 2 3 4 or {name}=@FILE.npy",
                index + 1
            )
        })?,
    };
    Ok([(name.clone(), tensor)].into())
}

/// Splits `name=value`. A name may have the sign `=` itself.
fn split<'i>(input: &'i str, types: &Types<'_>) -> Result<(usize, &'i str)> {
    let value_of = |name: &str| input.strip_prefix(name)?.strip_prefix('=');
    let known = types.iter().enumerate().filter_map(|(index, (name, ..))| Some((index, value_of(name)?)));
    // Of two names that fit, the longer one leaves less for the value.
    if let Some(found) = known.min_by_key(|(_, value)| value.len()) {
        return Ok(found);
    }
    let names = types.iter().map(|(name, ..)| name.as_str());
    match input.split_once('=') {
        Some((name, _)) => bail!(
            "found no argument `{}`, expected {}\nhint: `mlxcel-bundle inspect BUNDLE` shows the arguments",
            name.escape_debug(),
            nearest(name, names)
        ),
        None => bail!(
            "found --input `{}`, expected NAME=VALUE, NAME=@FILE or @FILE\n\
             hint: the arguments are {}",
            input.escape_debug(),
            names.collect::<Vec<_>>().join(", ")
        ),
    }
}

#[cfg(test)]
mod tests;
