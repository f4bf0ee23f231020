//! Packs a checkpoint's tensors into the parameters of a target, with the target's packing module.

mod packer;

use std::io::Write;

use memmap2::MmapMut;
use mlxcel_artifacts::{
    Bundle, Cancel, Manifest, Packing, TargetArtifact, entry::Parameter, safetensors_prefix,
};

use self::packer::Packer;
use super::{
    calibration::{self, Moments},
    options::{Calibrate, LoadOptions},
    select::{self, ThisMachine},
};
use crate::{error::Error, ffi::Device, weights::Weights};

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
        if parameters.is_empty() {
            return Ok(Weights::empty());
        }
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
    let machine = ThisMachine { threads: options.threads, trace: options.trace.clone() };
    let opened = select::open(&machine, &select::machine(), bundle.manifest(), &options.device_choice())?;
    let name = opened.target_name.to_owned();
    let Some(packing) = opened.target.packing.clone() else {
        return Err(mlxcel_artifacts::Error::NothingToPack { target: name }.into());
    };
    let is_given = given.is_some();
    let weights = given.map_or_else(|| Weights::from_bundle(&bundle), Ok)?;
    let Manifest { parameters, weights: own, .. } = bundle.manifest();
    // Checked before the work, which takes long.
    let listed = weights.paths().iter().filter(|_| is_given && own.is_empty());
    let names: Vec<String> = listed.map(|path| Manifest::listed_name(path)).collect::<Result<_, _>>()?;
    weights.check(parameters)?;
    let weights = weights.with_aliases(parameters);
    if is_given && !own.is_empty() && !weights.match_digests(parameters) {
        return Err(Error::OtherWeights(bundle.path().to_path_buf()));
    }
    let files = if names.is_empty() && calibrate.is_none() { Vec::new() } else { weights.blobs()? };
    let made_from = names.into_iter().zip(files.iter().copied()).collect();
    let device = opened.device;
    let source = bundle.clone();
    let from = (&weights, files.as_slice());
    let collect =
        |calibrate| calibration::collect(&source, (&name, &packing), &device, from, calibrate, cancel);
    let moments = calibrate.map(collect).transpose()?;
    let calibrated_by = moments.as_ref().map(|moments| moments.by);
    let from = (&weights, moments.as_ref().map(|moments| &moments.tensors));
    let packed = bundle.with_packed_weights(&name, made_from, calibrated_by, |to| {
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
        packer.run(step, from, &mut |bytes| {
            to.write_all(bytes).map_err(Error::write_packed)?;
            done += bytes.len();
            progress(done, total);
            Ok(())
        })?;
    }
    to.flush().map_err(Error::write_packed)
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
