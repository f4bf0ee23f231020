//! Checks of how weights are packed and calibrated.

use std::collections::{HashMap, HashSet};

use safetensors::Dtype;

use super::checks::{Check, check_tensors, ensure, file_name, text};
use crate::{
    error::Error,
    manifest::{
        CalibratedBy, FORMAT_OF_CALIBRATION, FORMAT_OF_PARTS, Packing,
        entry::{Calibration, CalibrationStep, PackCall, PackStep, Parameter},
    },
    tensor::type_text,
};

/// The most parts of a tensor. The longest vocabularies have some thousands.
const PARTS_MAX: usize = 1 << 20;

/// Checks that packing makes its results from the checkpoint's tensors.
pub(super) fn check_packing(format: u32, target: &str, packing: &Packing, parameters: &[Parameter]) -> Check {
    let Packing { build_key: _, vmfb, weights, made_from, calibrated_by, calibration, steps } = packing;
    let is_plain = calibration.is_none() && calibrated_by.is_none();
    ensure(is_plain || format >= FORMAT_OF_CALIBRATION, || {
        format!(
            "packing of target {target} in format {format} has calibration, expected none before format \
             {FORMAT_OF_CALIBRATION}"
        )
    })?;
    made_from.keys().try_for_each(|name| file_name("file", name))?;
    ensure(weights.is_some() || made_from.is_empty(), || {
        let found = made_from.len();
        format!("target {target} lists {found} sources of packed weights, expected none without these")
    })?;
    ensure(vmfb.size > 0, || format!("packing vmfb of target {target} has 0 bytes, expected more"))?;
    let known: HashMap<&str, &Parameter> = parameters.iter().map(|p| (p.name.as_str(), p)).collect();
    if let (None, Some(CalibratedBy { text, .. })) = (weights, calibrated_by) {
        return Err(Error::Invalid(format!(
            "target {target} names the text of packed weights, {text}, expected none without these"
        )));
    }
    let moments = calibration.as_ref().map(|calibration| check_calibration(target, calibration, &known));
    let moments = moments.transpose()?.unwrap_or_default();
    for PackStep { entry, sources, calibrated_entry, moments: wanted, calls, results } in steps {
        ensure(calls.is_empty() || entry.is_none() && format >= FORMAT_OF_PARTS, || {
            format!(
                "packing of target {target} in format {format} has a step in parts, expected none before format \
                 {FORMAT_OF_PARTS} and no whole function beside them"
            )
        })?;
        ensure(calibrated_entry.is_some() == wanted.is_some(), || {
            format!(
                "packing of target {target} has moments without a function for them, expected both or none"
            )
        })?;
        if let Some(name) = wanted {
            ensure(moments.contains(name.as_str()), || {
                let name = name.escape_default();
                format!(
                    "packing of target {target} takes the moments `{name}`, expected some that are collected"
                )
            })?;
        }
        if let Some(entry) = calibrated_entry {
            text(format_args!("packing entry of target {target}"), entry)?;
        }
        for source in sources {
            ensure(known.contains_key(source.as_str()), || {
                let source = source.escape_default();
                format!("packing of target {target} reads `{source}`, expected one of the parameters")
            })?;
        }
        calls.iter().try_for_each(|call| check_call(target, call, &known))?;
        match (entry, sources.as_slice(), results.as_slice()) {
            (Some(entry), _, [_, ..]) => text(format_args!("packing entry of target {target}"), entry)?,
            (None, _, [_, ..]) if !calls.is_empty() => {}
            (None, [source], [result]) => {
                known.get(source.as_str()).map_or(Ok(()), |stored| check_copy(target, stored, result))?;
            }
            (_, _, []) => {
                return Err(Error::Invalid(format!(
                    "packing of target {target} has a step with 0 results, expected at least one"
                )));
            }
            (None, ..) => {
                let problem = "a step that makes two tensors without a function, expected one";
                return Err(Error::Invalid(format!("packing of target {target} has {problem}")));
            }
        }
    }
    let results: Vec<_> = steps.iter().flat_map(|step| &step.results).cloned().collect();
    check_tensors(&results)
}

/// Checks that a tensor of the checkpoint keeps its type where it is copied.
fn check_copy(target: &str, stored: &Parameter, result: &Parameter) -> Check {
    ensure((stored.dtype, &stored.shape) == (result.dtype, &result.shape), || {
        let [found, expected] = [result, stored].map(|of| type_text(of.dtype, &of.shape));
        let name = stored.name.escape_default();
        format!("packing of target {target} keeps `{name}` as {found}, expected {expected}")
    })
}

/// Checks that a function can be called with parts of the checkpoint's tensors.
fn check_call(target: &str, call: &PackCall, known: &HashMap<&str, &Parameter>) -> Check {
    let PackCall { entry, sources, shared, parts } = call;
    text(format_args!("packing entry of target {target}"), entry)?;
    ensure((1..=PARTS_MAX).contains(parts), || {
        format!("packing of target {target} has a step in {parts} parts, expected 1 to {PARTS_MAX}")
    })?;
    ensure(!sources.is_empty(), || {
        format!("packing of target {target} has a step in parts of no tensors, expected some")
    })?;
    for source in sources.iter().chain(shared) {
        ensure(known.contains_key(source.as_str()), || {
            let source = source.escape_default();
            format!("packing of target {target} reads `{source}`, expected one of the parameters")
        })?;
    }
    for source in sources.iter().filter_map(|source| known.get(source.as_str())) {
        let divides = source.shape.first().is_some_and(|first| first.is_multiple_of(*parts));
        ensure(divides, || {
            let (name, found) = (source.name.escape_default(), type_text(source.dtype, &source.shape));
            format!(
                "packing of target {target} reads `{name}`, {found}, in {parts} parts, expected a first \
                 dimension that they divide"
            )
        })?;
    }
    Ok(())
}

/// Checks how moments are collected. Returns their names.
fn check_calibration<'m>(
    target: &str,
    calibration: &'m Calibration,
    known: &HashMap<&str, &Parameter>,
) -> Result<HashSet<&'m str>, Error> {
    let Calibration { window, hidden, steps } = calibration;
    for (what, &size) in [("tokens", window), ("numbers of a hidden state", hidden)] {
        ensure((1..=i32::MAX as usize).contains(&size), || {
            format!("calibration of target {target} is for {size} {what}, expected 1 to {}", i32::MAX)
        })?;
    }
    ensure(steps.len() > 1, || {
        format!("calibration of target {target} has {} steps, expected at least two", steps.len())
    })?;
    for CalibrationStep { entry, sources, moments } in steps {
        text(format_args!("calibration entry of target {target}"), entry)?;
        for source in sources {
            ensure(known.contains_key(source.as_str()), || {
                let source = source.escape_default();
                format!("calibration of target {target} reads `{source}`, expected one of the parameters")
            })?;
        }
        let is_square = |moments: &Parameter| matches!(*moments.shape, [rows, columns] if rows == columns);
        if let Some(odd) = moments.iter().find(|m| m.dtype != Dtype::F32 || !is_square(m)) {
            let found = type_text(odd.dtype, &odd.shape);
            return Err(Error::Invalid(format!(
                "moments of target {target} are {found}, expected a square of f32"
            )));
        }
    }
    let moments: Vec<_> = steps.iter().flat_map(|step| &step.moments).cloned().collect();
    check_tensors(&moments)?;
    Ok(steps.iter().flat_map(|step| &step.moments).map(|moments| moments.name.as_str()).collect())
}
