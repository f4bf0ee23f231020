//! Making a target's own parameters out of a checkpoint's tensors, with the module that the bundle has for it.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io::Write,
    rc::Rc,
};

use memmap2::MmapMut;
use mlxcel_artifacts::{
    Bundle, Cancel, Manifest, Packing, TargetArtifact,
    entry::{PACKING_MODULE_NAME, PackStep, Parameter, type_text},
    safetensors_prefix,
};
use safetensors::Dtype;

use super::{
    options::LoadOptions,
    select::{self, ThisMachine},
    vmfb,
};
use crate::{
    error::Error,
    ffi::{Call, Device, Module, Tensor},
    weights::Weights,
};

/// The parameters of the target's module: as the bundle carries them, or made of `given` or of the bundle's checkpoint.
/// Also whether they had to be packed.
pub(super) fn parameters(
    bundle: &Bundle,
    (name, target): (&str, &TargetArtifact),
    device: &Device,
    given: Option<Weights>,
) -> Result<(Weights, bool), Error> {
    let checkpoint = |given: Option<Weights>| {
        let weights = given.map_or_else(|| Weights::from_bundle(bundle), Ok)?;
        let parameters = &bundle.manifest().parameters;
        weights.check(parameters)?;
        Ok::<_, Error>(weights.with_aliases(parameters))
    };
    let Some(packing) = &target.packing else { return Ok((checkpoint(given)?, false)) };
    let Manifest { parameters, weights: own, .. } = bundle.manifest();
    let given = given.map(|given| given.with_aliases(parameters));
    let are_packed = |given: &Weights| {
        if own.is_empty() {
            bundle.is_packed_from(name, given.paths())
        } else {
            Ok(given.match_digests(parameters))
        }
    };
    // To compare with those given, and to find the packed ones whole, is to read them all: only where it is needed.
    if packing.weights.is_some()
        && given.as_ref().map_or(Ok(true), are_packed)?
        && let Some(packed) = bundle.packed_weights(name)?
    {
        let weights = Weights::from_files(&[packed])?;
        weights.check(&results(packing))?;
        return Ok((weights, false));
    }
    let weights = checkpoint(given)?;
    let prefix = prefix(packing)?;
    let mut image = MmapMut::map_anon(length(&prefix, packing)).map_err(Error::packed)?;
    let mut rest = &mut image[..];
    write(bundle, (name, packing), device, &weights, &mut rest, &mut |_, _| ())?;
    let image = image.make_read_only().map_err(Error::packed)?;
    Ok((Weights::from_mapping(image)?, true))
}

/// See [`super::pack`].
pub(super) fn pack(
    bundle: Bundle,
    given: Option<Weights>,
    options: &LoadOptions,
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
    let packed = bundle.with_packed_weights(&name, &made_from, |to| {
        write(&source, (&name, &packing), &device, &weights, &mut cancel.watch(to), progress)
    })?;
    Ok((name, packed))
}

/// What the target's module reads.
pub(super) fn results(packing: &Packing) -> Vec<Parameter> {
    packing.steps.iter().flat_map(|step| &step.results).cloned().collect()
}

/// Writes the packed parameters as a safetensors file. `progress` gets the bytes written and those to write.
pub(super) fn write(
    bundle: &Bundle,
    (target, packing): (&str, &Packing),
    device: &Device,
    weights: &Weights,
    to: &mut dyn Write,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<(), Error> {
    let program = vmfb::read(bundle, &packing.vmfb, target)?;
    let module = Module::load(device, program, Rc::new(Weights::empty()), "", &[])
        .map_err(Error::iree(|| "load the packing module".into()))?;
    let types: BTreeMap<&str, &Parameter> =
        bundle.manifest().parameters.iter().map(|parameter| (parameter.name.as_str(), parameter)).collect();
    let prefix = prefix(packing)?;
    let (mut done, total) = (prefix.len(), length(&prefix, packing));
    to.write_all(&prefix).map_err(Error::packed)?;
    let mut calls = BTreeMap::new();
    for PackStep { entry, sources, results } in &packing.steps {
        // A valid manifest reads parameters alone, and the weights were checked to have them.
        let inputs: Vec<&[u8]> =
            sources.iter().map(|name| weights.tensor(name).unwrap_or_default()).collect();
        match entry {
            None => inputs.iter().try_for_each(|bytes| to.write_all(bytes)).map_err(Error::packed)?,
            Some(entry) => {
                let call = match calls.entry(entry.as_str()) {
                    Entry::Occupied(call) => call.into_mut(),
                    Entry::Vacant(place) => {
                        let inputs: Vec<(Dtype, &[usize])> = sources
                            .iter()
                            .filter_map(|name| types.get(name.as_str()))
                            .map(|parameter| (parameter.dtype, parameter.shape.as_slice()))
                            .collect();
                        let call = Call::new(&module, &format!("{PACKING_MODULE_NAME}.{entry}"), &inputs);
                        place.insert(call.map_err(Error::iree(|| format!("prepare {entry}")))?)
                    }
                };
                let made = call.invoke(&inputs).map_err(Error::iree(|| format!("run {entry}")))?;
                copy(entry, &made, results, to)?;
            }
        }
        done += results.iter().filter_map(Parameter::bytes).sum::<usize>();
        progress(done, total);
    }
    to.flush().map_err(Error::packed)
}

/// Writes what a step made, if it is what the manifest says.
fn copy(entry: &str, made: &[Tensor], results: &[Parameter], to: &mut dyn Write) -> Result<(), Error> {
    if made.len() != results.len() {
        let (found, expected) = (made.len(), results.len());
        return Err(Error::Unsupported(format!("{entry} gives {found} results, expected {expected}")));
    }
    for (tensor, result) in made.iter().zip(results) {
        let mut bytes = vec![0; result.bytes().unwrap_or_default()];
        if tensor.shape() != result.shape {
            return Err(Error::Unsupported(format!(
                "{entry} gives a tensor of shape {:?}, expected {}",
                tensor.shape(),
                type_text(result.dtype, &result.shape)
            )));
        }
        tensor.copy_to(&mut bytes).map_err(Error::iree(|| format!("read from {entry}")))?;
        to.write_all(&bytes).map_err(Error::packed)?;
    }
    Ok(())
}

fn prefix(packing: &Packing) -> Result<Vec<u8>, Error> {
    let results = results(packing);
    let tensors = results.iter().map(|made| (made.name.as_str(), made.dtype, made.shape.as_slice()));
    // A valid manifest has sizes that fit, and no name twice.
    safetensors_prefix(tensors).map_err(|error| Error::Unsupported(error.to_string()))
}

fn length(prefix: &[u8], packing: &Packing) -> usize {
    prefix.len() + results(packing).iter().filter_map(Parameter::bytes).sum::<usize>()
}
