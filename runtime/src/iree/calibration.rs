//! Collects the moments of the inputs of a model's layers over a text, one part of the model after the other.
//!
//! What a part has given is kept beside the bundle, in a folder whose name is the digest of all that determines it. So a run
//! that was interrupted goes on after the last complete part, and gives the same bits.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    rc::Rc,
};

use mlxcel_artifacts::{
    Bundle, CalibratedBy, Cancel, Digest, Packing,
    entry::{Calibration, CalibrationStep, PACKING_MODULE_NAME, Parameter},
    safetensors_prefix, signless,
};
use safetensors::Dtype;

use super::{options::Calibrate, vmfb};
use crate::{
    error::{CalibrationError, Error},
    ffi::{ArgumentType, Call, Device, Input, Module, Tensor, bytes},
    text::tokenizer::Tokenizer,
    weights::Weights,
};

/// The moments of a text.
pub(super) struct Moments {
    pub(super) tensors: Weights,
    pub(super) by: CalibratedBy,
    folder: PathBuf,
}

impl Moments {
    /// Removes their files.
    pub(super) fn remove(self) -> io::Result<()> {
        let Self { tensors, by: _, folder } = self;
        drop(tensors);
        fs::remove_dir_all(folder)
    }
}

/// Runs the model on a text and returns the moments of its layers' inputs.
pub(super) fn collect(
    bundle: &Bundle,
    (target, packing): (&str, &Packing),
    device: &Device,
    weights: &Weights,
    calibrate: Calibrate<'_>,
    cancel: &Cancel,
) -> Result<Moments, Error> {
    let not_compiled = || CalibrationError::NotCompiled { target: target.to_owned() };
    let calibration = packing.calibration.as_ref().ok_or_else(not_compiled)?;
    let Calibrate { text, progress } = calibrate;
    let tokens = Tokenizer::from_bundle(bundle)?.encode(text, true)?;
    let (count, window) = (tokens.len() / calibration.window, calibration.window);
    if count == 0 {
        return Err(CalibrationError::ShortText { found: tokens.len(), expected: window }.into());
    }
    // A valid vocabulary has ids that fit.
    let ids: Vec<i32> = tokens[..count * window].iter().map(|&id| id.cast_signed()).collect();
    let kept = KeptParts::new(bundle, packing, weights, bytes(&ids))?;
    let done = kept.complete(calibration.steps.len());
    let states = if done == 0 { bytes(&ids).to_vec() } else { kept.states(done - 1)? };
    let program = vmfb::read(bundle, &packing.vmfb, target)?;
    let module = Module::load(device, program, Rc::new(Weights::empty()), "", &[])
        .map_err(Error::iree(|| "load the packing module".into()))?;
    let parameters = &bundle.manifest().parameters;
    let mut run = Run { module, calibration, parameters, weights, count, cancel, progress };
    let mut states = states;
    for index in done..calibration.steps.len() {
        let (next, moments) = run.step(index, &states)?;
        kept.keep(index, &next, &calibration.steps[index].moments, &moments)?;
        states = next;
    }
    let (tensors, digest) = kept.moments(&calibration.steps)?;
    let by = CalibratedBy { text: Digest::of(text.as_bytes()), tokens: count * window, moments: digest };
    Ok(Moments { tensors, by, folder: kept.folder })
}

/// A run of the model on the windows of a text.
struct Run<'r> {
    module: Module,
    calibration: &'r Calibration,
    parameters: &'r [Parameter],
    weights: &'r Weights,
    /// The number of windows.
    count: usize,
    cancel: &'r Cancel,
    progress: &'r mut dyn FnMut(usize, usize),
}

impl Run<'_> {
    /// Runs a part on the states of all windows. Returns the states for the next part, and the part's moments.
    fn step(&mut self, index: usize, states: &[u8]) -> Result<(Vec<u8>, Vec<Tensor>), Error> {
        let Calibration { window, hidden, steps } = self.calibration;
        let CalibrationStep { entry, sources, moments } = &steps[index];
        let is_last = index + 1 == steps.len();
        let mut call = self.call(index)?;
        let sources: Vec<_> =
            sources.iter().map(|name| self.weights.tensor(name).unwrap_or_default()).collect();
        let zeros = |moments: &Parameter| {
            let zeros = Tensor::allocate(&self.module, moments.dtype, &moments.shape, true);
            zeros.map_err(Error::iree(|| format!("allocate {}", moments.name)))
        };
        let mut sums = moments.iter().map(zeros).collect::<Result<Vec<_>, _>>()?;
        let size = window * hidden * size_of::<f32>();
        let mut next = vec![0; if is_last { 0 } else { self.count * size }];
        for (number, state) in states.chunks(states.len() / self.count).enumerate() {
            if self.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let mut inputs = vec![Input::Bytes(state)];
            inputs.extend(sources.iter().map(|bytes| Input::Bytes(bytes)));
            inputs.extend(sums.iter().map(Input::Tensor));
            let results = call.invoke_with(inputs).map_err(Error::iree(|| format!("run {entry}")))?;
            let expected = moments.len() + usize::from(!is_last);
            if results.len() != expected {
                let found = results.len();
                return Err(Error::Unsupported(format!(
                    "{entry} returns {found} results, expected {expected}"
                )));
            }
            let mut results = results.into_iter();
            if let Some(to) = next.get_mut(number * size..(number + 1) * size)
                && let Some(state) = results.next()
            {
                state.copy_to(to).map_err(Error::iree(|| format!("read from {entry}")))?;
            }
            sums = results.collect();
            (self.progress)(index * self.count + number + 1, steps.len() * self.count);
        }
        Ok((next, sums))
    }

    /// Prepares the call of a part.
    fn call(&self, index: usize) -> Result<Call, Error> {
        let Calibration { window, hidden, steps } = self.calibration;
        let CalibrationStep { entry, sources, moments } = &steps[index];
        let (tokens, states) = ([1, *window], [1, *window, *hidden]);
        let input = match index {
            0 => ArgumentType::Copied(Dtype::I32, &tokens),
            _ => ArgumentType::Copied(Dtype::F32, &states),
        };
        let source = |name: &String| {
            let parameter = self.parameters.iter().find(|parameter| parameter.name == *name)?;
            Some(ArgumentType::Copied(signless(parameter.dtype), &parameter.shape))
        };
        let given = moments.iter().map(|_| ArgumentType::Tensor);
        let inputs: Vec<_> =
            [input].into_iter().chain(sources.iter().filter_map(source)).chain(given).collect();
        let call = Call::new(&self.module, &format!("{PACKING_MODULE_NAME}.{entry}"), &inputs);
        call.map_err(Error::iree(|| format!("prepare {entry}")))
    }
}

/// What complete parts have given, in files.
struct KeptParts {
    folder: PathBuf,
}

impl KeptParts {
    /// Finds or makes the folder for tokens, the code and the weights.
    ///
    /// Not for a text: a bundle with another tokenizer makes other tokens of it.
    fn new(bundle: &Bundle, packing: &Packing, weights: &Weights, tokens: &[u8]) -> Result<Self, Error> {
        let mut key = format!("{}\n{}\n", packing.vmfb.digest, Digest::of(tokens));
        for path in weights.paths() {
            let (digest, _) = Digest::of_file(path).map_err(keep_in(path))?;
            key.push_str(&format!("{digest}\n"));
        }
        let path = bundle.path().canonicalize().map_err(keep_in(bundle.path()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{name}.calibration-{}", &Digest::of(key.as_bytes()).hex()[..16]);
        let folder = path.with_file_name(name);
        fs::create_dir_all(&folder).map_err(keep_in(&folder))?;
        Ok(Self { folder })
    }

    /// Returns how many parts, of this many, are complete and can be followed by the next one.
    fn complete(&self, parts: usize) -> usize {
        let has_moments = |part: &usize| self.moments_path(*part).is_file();
        let done = (0..parts).take_while(has_moments).count();
        let can_follow = done == parts || done == 0 || self.states_path(done - 1).is_file();
        if can_follow { done } else { 0 }
    }

    /// Returns the states that a part returned.
    fn states(&self, part: usize) -> Result<Vec<u8>, Error> {
        // The last part returns none.
        let path = self.states_path(part);
        if path.is_file() { fs::read(&path).map_err(keep_in(&self.folder)) } else { Ok(Vec::new()) }
    }

    /// Keeps what a part has given. A part is complete once its moments are there.
    fn keep(
        &self,
        part: usize,
        states: &[u8],
        parameters: &[Parameter],
        moments: &[Tensor],
    ) -> Result<(), Error> {
        self.write(&self.states_path(part), states)?;
        let tensors = parameters.iter().map(|one| (one.name.as_str(), one.dtype, one.shape.as_slice()));
        // Does not fail for a valid manifest, whose names are unique.
        let mut file = safetensors_prefix(tensors).map_err(|error| Error::Unsupported(error.to_string()))?;
        for (parameter, tensor) in parameters.iter().zip(moments) {
            let begin = file.len();
            file.resize(begin + parameter.bytes().unwrap_or_default(), 0);
            tensor.copy_to(&mut file[begin..]).map_err(Error::iree(|| "read moments".into()))?;
        }
        self.write(&self.moments_path(part), &file)?;
        if let Some(before) = part.checked_sub(1) {
            // It is not needed any more, and does no harm.
            _ = fs::remove_file(self.states_path(before));
        }
        Ok(())
    }

    /// Returns the moments of all parts, and their digest.
    fn moments(&self, steps: &[CalibrationStep]) -> Result<(Weights, Digest), Error> {
        let with_moments = steps.iter().enumerate().filter(|(_, step)| !step.moments.is_empty());
        let paths: Vec<_> = with_moments.map(|(part, _)| self.moments_path(part)).collect();
        let mut digests = String::new();
        for path in &paths {
            let (digest, _) = Digest::of_file(path).map_err(keep_in(&self.folder))?;
            digests.push_str(&format!("{digest}\n"));
        }
        let tensors = Weights::from_files(&paths)?;
        let parameters: Vec<_> = steps.iter().flat_map(|step| &step.moments).cloned().collect();
        tensors.check(&parameters)?;
        Ok((tensors, Digest::of(digests.as_bytes())))
    }

    /// Writes a file that is there as a whole or not at all, also after the machine lost its power.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let partial = path.with_extension("partial");
        let write = |mut file: File| file.write_all(bytes).and_then(|()| file.sync_all());
        let written = File::create(&partial).and_then(write).and_then(|()| fs::rename(&partial, path));
        written.map_err(keep_in(&self.folder))
    }

    fn states_path(&self, part: usize) -> PathBuf {
        self.folder.join(format!("states-{part}"))
    }

    fn moments_path(&self, part: usize) -> PathBuf {
        self.folder.join(format!("moments-{part}.safetensors"))
    }
}

/// Makes an error of an I/O error in a folder, for `map_err`.
fn keep_in(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    |source| CalibrationError::Keep { path: path.to_path_buf(), source }.into()
}
