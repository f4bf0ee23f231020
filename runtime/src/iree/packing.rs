//! Packs a checkpoint's tensors into the parameters of a target, with the target's packing module.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io::Write,
    rc::Rc,
};

use memmap2::MmapMut;
use mlxcel_artifacts::{
    Bundle, Cancel, Manifest, Packing, TargetArtifact,
    entry::{PACKING_MODULE_NAME, PackStep, Parameter},
    safetensors_prefix, signless, type_text,
};
use safetensors::Dtype;

use super::{
    calibration::{self, Moments},
    options::{Calibrate, LoadOptions},
    select::{self, ThisMachine},
    vmfb,
};
use crate::{
    error::Error,
    ffi::{Call, Device, Module, Tensor},
    weights::Weights,
};

/// Returns the parameters of the target's module, and whether they had to be packed.
///
/// They are the bundle's packed weights if these were made from `given`. Otherwise they are made of `given`, or else of
/// the bundle's checkpoint.
pub(super) fn parameters(
    bundle: &Bundle,
    (name, target): (&str, &TargetArtifact),
    device: &Device,
    given: Option<Weights>,
) -> Result<(Weights, bool), Error> {
    let Manifest { parameters, weights: own, .. } = bundle.manifest();
    let checkpoint = |given: Option<Weights>| {
        let weights = given.map_or_else(|| Weights::from_bundle(bundle), Ok)?;
        weights.check(parameters)?;
        Ok::<_, Error>(weights.with_aliases(parameters))
    };
    let Some(packing) = &target.packing else { return Ok((checkpoint(given)?, false)) };
    let given = given.map(|given| given.with_aliases(parameters));
    let is_packed_from = |given: &Weights| {
        if own.is_empty() {
            bundle.is_packed_from(name, given.paths())
        } else {
            Ok(given.match_digests(parameters))
        }
    };
    // Comparing digests and verifying the packed weights read whole files, so each runs only if it is needed.
    if packing.weights.is_some()
        && given.as_ref().map_or(Ok(true), is_packed_from)?
        && let Some(packed) = bundle.packed_weights(name)?
    {
        let weights = Weights::from_files(&[packed])?;
        weights.check(&results(packing))?;
        return Ok((weights, false));
    }
    let weights = checkpoint(given)?;
    let prefix = prefix(packing)?;
    let bytes = length(&prefix, packing);
    let no_memory =
        |source| Error::Allocate { purpose: "the packed weights", bytes, hint: PACK_ONCE, source };
    let mut image = MmapMut::map_anon(bytes).map_err(no_memory)?;
    let mut rest = &mut image[..];
    write(bundle, (name, packing), device, (&weights, None), &mut rest, &mut |_, _| ())?;
    let image = image.make_read_only().map_err(no_memory)?;
    Ok((Weights::from_mapping(image)?, true))
}

/// The remedy if the packed weights do not fit the memory.
const PACK_ONCE: &str = "run mlxcel-pack, which packs into a file, once for all starts";

/// Packs the weights into the bundle; see [`super::pack`].
pub(super) fn pack(
    bundle: Bundle,
    given: Option<Weights>,
    options: &LoadOptions,
    calibrate: Option<Calibrate<'_>>,
    cancel: &Cancel,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<(String, Bundle), Error> {
    let machine = ThisMachine { threads: options.threads };
    let opened = select::open(&machine, &select::machine(), bundle.manifest(), options.device)?;
    let name = opened.target_name.to_owned();
    let Some(packing) = opened.target.packing.clone() else {
        return Err(mlxcel_artifacts::Error::NothingToPack { target: name }.into());
    };
    let (weights, made_from) = match given {
        None => (Weights::from_bundle(&bundle)?, Vec::new()),
        Some(given) => {
            let files = given.paths().to_vec();
            (given, files)
        }
    };
    let Manifest { parameters, weights: own, .. } = bundle.manifest();
    weights.check(parameters)?;
    let weights = weights.with_aliases(parameters);
    if !made_from.is_empty() && !own.is_empty() && !weights.match_digests(parameters) {
        return Err(Error::OtherWeights(bundle.path().to_path_buf()));
    }
    let made_from = if own.is_empty() { made_from } else { Vec::new() };
    let device = opened.device;
    let source = bundle.clone();
    let collect =
        |calibrate| calibration::collect(&source, (&name, &packing), &device, &weights, calibrate, cancel);
    let moments = calibrate.map(collect).transpose()?;
    let calibrated_by = moments.as_ref().map(|moments| moments.by);
    let from = (&weights, moments.as_ref().map(|moments| &moments.tensors));
    let packed = bundle.with_packed_weights(&name, &made_from, calibrated_by, |to| {
        write(&source, (&name, &packing), &device, from, &mut cancel.watch(to), progress)
    })?;
    // It has served. If it cannot be removed, it is in nobody's way.
    _ = moments.map(Moments::remove);
    Ok((name, packed))
}

/// Returns the parameters that the target's module reads.
pub(super) fn results(packing: &Packing) -> Vec<Parameter> {
    packing.steps.iter().flat_map(|step| &step.results).cloned().collect()
}

/// Writes the packed parameters, made of weights and rounded by moments if there are any, as a safetensors file. `progress`
/// gets the bytes written and their total.
pub(super) fn write(
    bundle: &Bundle,
    (target, packing): (&str, &Packing),
    device: &Device,
    from: (&Weights, Option<&Weights>),
    to: &mut dyn Write,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<(), Error> {
    let prefix = prefix(packing)?;
    let mut packer = Packer::load(bundle, (target, packing), device)?;
    let (mut done, total) = (prefix.len(), length(&prefix, packing));
    to.write_all(&prefix).map_err(Error::write_packed)?;
    for step in &packing.steps {
        packer.run(step, from, to)?;
        done += step.results.iter().filter_map(Parameter::bytes).sum::<usize>();
        progress(done, total);
    }
    to.flush().map_err(Error::write_packed)
}

/// The packing module of a target, with the functions that it has run.
struct Packer<'a> {
    module: Module,
    /// The checkpoint's parameters and moments by name.
    types: BTreeMap<&'a str, &'a Parameter>,
    calls: BTreeMap<&'a str, Call>,
}

impl<'a> Packer<'a> {
    /// Loads the packing module of a target.
    fn load(
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
        Ok(Self { module, types, calls: BTreeMap::new() })
    }

    /// Runs one step and writes its results.
    fn run(
        &mut self,
        step: &'a PackStep,
        (weights, all_moments): (&Weights, Option<&Weights>),
        to: &mut dyn Write,
    ) -> Result<(), Error> {
        let PackStep { entry, sources, calibrated_entry, moments, results } = step;
        // A valid manifest names parameters as sources, and the weights were checked to have all parameters.
        let mut names: Vec<_> = sources.iter().map(String::as_str).collect();
        let mut inputs: Vec<&[u8]> =
            names.iter().map(|name| weights.tensor(name).unwrap_or_default()).collect();
        let mut entry = entry.as_ref();
        if let (Some(calibrated), Some(name), Some(all_moments)) = (calibrated_entry, moments, all_moments) {
            entry = Some(calibrated);
            names.push(name);
            inputs.push(all_moments.tensor(name).unwrap_or_default());
        }
        let Some(entry) = entry else {
            // Copied as they are.
            return inputs.iter().try_for_each(|bytes| to.write_all(bytes)).map_err(Error::write_packed);
        };
        let tensors = self.call(entry, &names)?.invoke(&inputs);
        copy(entry, &tensors.map_err(Error::iree(|| format!("run {entry}")))?, results, to)
    }

    /// Returns the call of a function, which is prepared once.
    fn call(&mut self, entry: &'a str, sources: &[&str]) -> Result<&mut Call, Error> {
        let place = match self.calls.entry(entry) {
            Entry::Occupied(call) => return Ok(call.into_mut()),
            Entry::Vacant(place) => place,
        };
        let inputs: Vec<(Dtype, &[usize])> = sources
            .iter()
            .filter_map(|name| self.types.get(name))
            .map(|parameter| (signless(parameter.dtype), parameter.shape.as_slice()))
            .collect();
        let call = Call::new(&self.module, &format!("{PACKING_MODULE_NAME}.{entry}"), &inputs);
        Ok(place.insert(call.map_err(Error::iree(|| format!("prepare {entry}")))?))
    }
}

/// The bytes of a result that are copied at a time.
const COPIED: usize = 4 << 20;

/// Writes the results of a step after comparing them with the manifest.
fn copy(entry: &str, tensors: &[Tensor], results: &[Parameter], to: &mut dyn Write) -> Result<(), Error> {
    if tensors.len() != results.len() {
        let (found, expected) = (tensors.len(), results.len());
        return Err(Error::Unsupported(format!("{entry} returns {found} results, expected {expected}")));
    }
    for (tensor, result) in tensors.iter().zip(results) {
        if tensor.shape() != result.shape {
            return Err(Error::Unsupported(format!(
                "{entry} returns a tensor of shape {:?}, expected {}",
                tensor.shape(),
                type_text(result.dtype, &result.shape)
            )));
        }
        let read = |error| Error::iree(|| format!("read from {entry}"))(error);
        let total = result.bytes().unwrap_or_default();
        if tensor.size() != total {
            let size = tensor.size();
            return Err(Error::Unsupported(format!("{entry} returns {size} bytes, expected {total}")));
        }
        let mut chunk = vec![0; COPIED.min(total)];
        for begin in (0..total).step_by(COPIED) {
            let chunk = &mut chunk[..COPIED.min(total - begin)];
            tensor.copy_from(begin, chunk).map_err(read)?;
            to.write_all(chunk).map_err(Error::write_packed)?;
        }
    }
    Ok(())
}

/// Returns the header of the safetensors file, with its length before it.
fn prefix(packing: &Packing) -> Result<Vec<u8>, Error> {
    let results = results(packing);
    let tensors = results.iter().map(|result| (result.name.as_str(), result.dtype, result.shape.as_slice()));
    // Does not fail for a valid manifest, whose sizes fit and whose names are unique.
    safetensors_prefix(tensors).map_err(|error| Error::Unsupported(error.to_string()))
}

/// Returns the length of the safetensors file.
fn length(prefix: &[u8], packing: &Packing) -> usize {
    prefix.len() + results(packing).iter().filter_map(Parameter::bytes).sum::<usize>()
}
