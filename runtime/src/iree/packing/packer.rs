//! The functions of a packing module, and how steps call them.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    rc::Rc,
};

use mlxcel_artifacts::{
    Bundle, Packing,
    entry::{PACKING_MODULE_NAME, PackCall, PackStep, Parameter},
    signless, type_text,
};
use safetensors::Dtype;

use crate::{
    error::Error,
    ffi::{ArgumentType, Call, Device, Module, Tensor},
    iree::vmfb,
    weights::Weights,
};

/// The bytes of a result that are copied at a time.
const COPIED: usize = 4 << 20;

/// What takes the bytes of results, in their order.
type Sink<'s> = &'s mut dyn FnMut(&[u8]) -> Result<(), Error>;

/// The packing module of a target, with the functions that it has run.
pub(super) struct Packer<'a> {
    module: Module,
    /// The checkpoint's parameters and moments by name.
    types: BTreeMap<&'a str, &'a Parameter>,
    calls: BTreeMap<&'a str, Call>,
    /// Receives results from the device, some bytes at a time.
    chunk: Vec<u8>,
}

/// An argument of a function: the bytes and the type of a tensor, or of a part of it.
struct Argument<'w> {
    bytes: &'w [u8],
    dtype: Dtype,
    shape: Vec<usize>,
}

impl<'w> Argument<'w> {
    /// Returns one of the parts into which a valid manifest splits the first dimension.
    fn part(&self, index: usize, parts: usize) -> Argument<'w> {
        let mut shape = self.shape.clone();
        shape.iter_mut().take(1).for_each(|first| *first /= parts);
        let length = self.bytes.len() / parts;
        let bytes = self.bytes.get(index * length..).and_then(|rest| rest.get(..length)).unwrap_or_default();
        Argument { bytes, dtype: self.dtype, shape }
    }
}

impl<'a> Packer<'a> {
    /// Loads the packing module of a target.
    pub(super) fn load(
        bundle: &'a Bundle,
        (target, packing): (&str, &'a Packing),
        device: &Device,
    ) -> Result<Self, Error> {
        let program = vmfb::read(bundle, &packing.vmfb, target)?;
        let module = Module::load(device, program, Rc::new(Weights::empty()), "", &[])
            .map_err(Error::iree(|| "load the packing module".into()))?;
        let parameters = &bundle.manifest().parameters;
        let calibration = packing.calibration.iter();
        let moments = calibration.flat_map(|calibration| &calibration.steps).flat_map(|step| &step.moments);
        let types =
            parameters.iter().chain(moments).map(|parameter| (parameter.name.as_str(), parameter)).collect();
        Ok(Self { module, types, calls: BTreeMap::new(), chunk: vec![0; COPIED] })
    }

    /// Runs one step.
    pub(super) fn run(
        &mut self,
        step: &'a PackStep,
        (weights, all_moments): (&Weights, Option<&Weights>),
        to: Sink<'_>,
    ) -> Result<(), Error> {
        let PackStep { entry, sources, calibrated_entry, moments, calls, results } = step;
        if let (Some(calibrated), Some(name), Some(all_moments)) = (calibrated_entry, moments, all_moments) {
            let mut arguments = self.arguments(sources, weights);
            arguments.extend(self.argument(name, all_moments));
            return self.whole(calibrated, &arguments, results, to);
        }
        let arguments = self.arguments(sources, weights);
        match entry {
            Some(entry) => self.whole(entry, &arguments, results, to),
            // Copied as they are.
            None if calls.is_empty() => arguments.iter().try_for_each(|argument| to(argument.bytes)),
            None => self.in_parts(calls, weights, results, to),
        }
    }

    /// Makes results by one call.
    fn whole(
        &mut self,
        entry: &'a str,
        arguments: &[Argument<'_>],
        results: &[Parameter],
        to: Sink<'_>,
    ) -> Result<(), Error> {
        let tensors = self.call(entry, arguments)?;
        check_count(entry, &tensors, results)?;
        for (tensor, result) in tensors.iter().zip(results) {
            if rows_of(tensor, result) != Some(rows(&result.shape)) {
                return Err(wrong_type(entry, tensor, result));
            }
            self.copy(entry, tensor, to)?;
        }
        Ok(())
    }

    /// Makes results by several calls, one part after the other.
    fn in_parts(
        &mut self,
        calls: &'a [PackCall],
        weights: &Weights,
        results: &[Parameter],
        to: Sink<'_>,
    ) -> Result<(), Error> {
        let mut rows_so_far = vec![0; results.len()];
        // A file has the whole first result before the second, which has the scales and so is small.
        let mut later: Vec<Vec<u8>> = vec![Vec::new(); results.len().saturating_sub(1)];
        for PackCall { entry, sources, shared, parts } in calls {
            let [split, shared] = [sources, shared].map(|names| self.arguments(names, weights));
            for index in 0..*parts {
                let part = split.iter().map(|argument| argument.part(index, *parts));
                let whole = shared.iter().map(|argument| argument.part(0, 1));
                let tensors = self.call(entry, &part.chain(whole).collect::<Vec<_>>())?;
                check_count(entry, &tensors, results)?;
                for (place, (tensor, result)) in tensors.iter().zip(results).enumerate() {
                    let more = rows_of(tensor, result).map(|more| rows_so_far[place] + more);
                    let more = more.filter(|&more| more <= rows(&result.shape));
                    rows_so_far[place] = more.ok_or_else(|| wrong_type(entry, tensor, result))?;
                    match place.checked_sub(1) {
                        None => self.copy(entry, tensor, to)?,
                        Some(place) => self.copy(entry, tensor, &mut |bytes| {
                            later[place].extend_from_slice(bytes);
                            Ok(())
                        })?,
                    }
                }
            }
        }
        for (result, found) in results.iter().zip(rows_so_far) {
            if found != rows(&result.shape) {
                return Err(Error::Unsupported(format!(
                    "packing returns {found} rows of {}, expected {}",
                    result.name,
                    type_text(result.dtype, &result.shape)
                )));
            }
        }
        later.iter().try_for_each(|bytes| to(bytes))
    }

    /// Reads a result.
    fn copy(&mut self, entry: &str, tensor: &Tensor, to: Sink<'_>) -> Result<(), Error> {
        let read = |error| Error::iree(|| format!("read from {entry}"))(error);
        let total = tensor.size();
        for begin in (0..total).step_by(COPIED) {
            let chunk = &mut self.chunk[..COPIED.min(total - begin)];
            tensor.copy_from(begin, chunk).map_err(read)?;
            to(chunk)?;
        }
        Ok(())
    }

    /// Returns tensors of the checkpoint. A valid manifest names parameters as sources, and the weights were checked to have
    /// all parameters.
    fn arguments<'w>(&self, names: &[String], weights: &'w Weights) -> Vec<Argument<'w>> {
        names.iter().filter_map(|name| self.argument(name, weights)).collect()
    }

    fn argument<'w>(&self, name: &str, weights: &'w Weights) -> Option<Argument<'w>> {
        let Parameter { dtype, shape, .. } = self.types.get(name)?;
        Some(Argument { bytes: weights.tensor(name)?, dtype: signless(*dtype), shape: shape.clone() })
    }

    /// Calls a function, which is prepared once.
    fn call(&mut self, entry: &'a str, arguments: &[Argument<'_>]) -> Result<Vec<Tensor>, Error> {
        let call = match self.calls.entry(entry) {
            Entry::Occupied(call) => call.into_mut(),
            Entry::Vacant(place) => {
                let types: Vec<_> =
                    arguments.iter().map(|a| ArgumentType::Copied(a.dtype, &a.shape)).collect();
                let call = Call::new(&self.module, &format!("{PACKING_MODULE_NAME}.{entry}"), &types);
                place.insert(call.map_err(Error::iree(|| format!("prepare {entry}")))?)
            }
        };
        let inputs: Vec<&[u8]> = arguments.iter().map(|argument| argument.bytes).collect();
        call.invoke(&inputs).map_err(Error::iree(|| format!("run {entry}")))
    }
}

fn check_count(entry: &str, tensors: &[Tensor], results: &[Parameter]) -> Result<(), Error> {
    if tensors.len() == results.len() {
        return Ok(());
    }
    let (found, expected) = (tensors.len(), results.len());
    Err(Error::Unsupported(format!("{entry} returns {found} results, expected {expected}")))
}

/// Returns how many rows of a result a tensor has, if it has the result's type. A number is one row.
fn rows_of(tensor: &Tensor, result: &Parameter) -> Option<usize> {
    let shape = tensor.shape();
    let rows = rows(&shape);
    let bytes = result.bytes()?.checked_div(self::rows(&result.shape))? * rows;
    (shape.get(1..) == result.shape.get(1..) && tensor.size() == bytes).then_some(rows)
}

fn rows(shape: &[usize]) -> usize {
    shape.first().copied().unwrap_or(1)
}

fn wrong_type(entry: &str, tensor: &Tensor, result: &Parameter) -> Error {
    let (shape, size) = (tensor.shape(), tensor.size());
    let expected = type_text(result.dtype, &result.shape);
    Error::Unsupported(format!(
        "{entry} returns {size} bytes of shape {shape:?}, expected {expected} or rows of it"
    ))
}
