//! Collects the moments of the inputs of a model's layers over a text, one part of the model after the other.
//!
//! What a part has given is kept in files beside the bundle, or where the caller says. Their folder or their names have the
//! digest of all that determines it. So a run that was interrupted goes on after the last complete part, and gives the same
//! bits.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    rc::Rc,
};

use mlxcel_artifacts::{
    Blob, Bundle, CalibratedBy, Cancel, Digest, Packing,
    entry::{Calibration, CalibrationStep, PACKING_MODULE_NAME, Parameter},
    safetensors_prefix, signless,
};
use safetensors::Dtype;
use tempfile::Builder;

use super::{options::Calibrate, vmfb};
use crate::{
    error::{CalibrationError, Error},
    ffi::{ArgumentType, Call, Device, Input, Module, Tensor, bytes},
    text::tokenizer::Tokenizer,
    weights::Weights,
};

/// The name of the file that the process which collects keeps locked.
const LOCK: &str = "lock";

/// The moments of a text.
pub(super) struct Moments {
    pub(super) tensors: Weights,
    pub(super) by: CalibratedBy,
    kept: KeptParts,
}

impl Moments {
    /// Removes their files.
    pub(super) fn remove(self) -> io::Result<()> {
        let Self { tensors, by: _, kept } = self;
        drop(tensors);
        kept.remove()
    }
}

/// Runs the model on a text and returns the moments of its layers' inputs. The weights are those of the files.
pub(super) fn collect(
    bundle: &Bundle,
    (target, packing): (&str, &Packing),
    device: &Device,
    (weights, files): (&Weights, &[Blob]),
    calibrate: Calibrate<'_>,
    cancel: &Cancel,
) -> Result<Moments, Error> {
    let not_compiled = || CalibrationError::NotCompiled { target: target.to_owned() };
    let calibration = packing.calibration.as_ref().ok_or_else(not_compiled)?;
    let Calibrate { text, keep_in, progress } = calibrate;
    let tokens = Tokenizer::from_bundle(bundle)?.encode(text, true)?;
    let (count, window) = (tokens.len() / calibration.window, calibration.window);
    if count == 0 {
        return Err(CalibrationError::ShortText { found: tokens.len(), expected: window }.into());
    }
    // A valid vocabulary has ids that fit.
    let ids: Vec<i32> = tokens[..count * window].iter().map(|&id| id.cast_signed()).collect();
    let kept = KeptParts::open(bundle, packing, files, bytes(&ids), keep_in)?;
    let steps = &calibration.steps;
    let done = kept.complete(steps.len(), count.saturating_mul(state_bytes(calibration)))?;
    let mut states = match done {
        0 => bytes(&ids).to_vec(),
        _ if done == steps.len() => Vec::new(),
        _ => kept.states(done - 1)?,
    };
    let program = vmfb::read(bundle, &packing.vmfb, target)?;
    let module = Module::load(device, program, Rc::new(Weights::empty()), "", &[])
        .map_err(Error::iree(|| "load the packing module".into()))?;
    let parameters = &bundle.manifest().parameters;
    let mut run = Run { module, calibration, parameters, weights, count, cancel, progress };
    for (index, step) in steps.iter().enumerate().skip(done) {
        let (next, moments) = run.step(index, &states)?;
        kept.keep(index, &next, &step.moments, &moments)?;
        states = next;
    }
    let (tensors, digest) = kept.moments(steps)?;
    let by = CalibratedBy { text: Digest::of(text.as_bytes()), tokens: count * window, moments: digest };
    Ok(Moments { tensors, by, kept })
}

/// Returns the bytes of the hidden states of a window.
fn state_bytes(calibration: &Calibration) -> usize {
    calibration.window.saturating_mul(calibration.hidden).saturating_mul(size_of::<f32>())
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
        let steps = &self.calibration.steps;
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
        let size = state_bytes(self.calibration);
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

/// What complete parts have given, in files. Locked against other processes while it lives.
struct KeptParts {
    folder: PathBuf,
    /// The start of the files' names. Empty in a folder of their own.
    prefix: String,
    _lock: File,
}

impl KeptParts {
    /// Opens the files for tokens, the code and the weights, which are these files. By default they are beside the bundle.
    ///
    /// Not for a text: a bundle with another tokenizer makes other tokens of it.
    fn open(
        bundle: &Bundle,
        packing: &Packing,
        files: &[Blob],
        tokens: &[u8],
        keep_in: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let mut key = format!("{}\n{}\n", packing.vmfb.digest, Digest::of(tokens));
        for Blob { digest, .. } in files {
            key.push_str(&format!("{digest}\n"));
        }
        let key = &Digest::of(key.as_bytes()).hex()[..16];
        if let Some(folder) = keep_in {
            return Self::in_folder(folder, format!("calibration-{key}."));
        }
        let path = bundle.path().canonicalize().map_err(Error::read(bundle.path()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let own = path.with_file_name(format!("{name}.calibration-{key}"));
        Self::in_folder(own, String::new())
    }

    /// Opens and locks the files in a folder whose names begin with `prefix`. Creates the folder if it does not exist.
    fn in_folder(folder: PathBuf, prefix: String) -> Result<Self, Error> {
        let path = folder.join(format!("{prefix}{LOCK}"));
        loop {
            let opened = fs::create_dir_all(&folder)
                .and_then(|()| File::options().create(true).append(true).open(&path));
            let lock = opened.map_err(cannot_keep(&folder))?;
            // On a file system without locks, two processes write the same bytes.
            if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
                return Err(Error::CalibrationInUse(folder));
            }
            // The process that had the lock may have removed the files, and this one with them, before it let go.
            if lock.metadata().is_ok_and(|found| found.nlink() > 0) {
                return Ok(Self { folder, prefix, _lock: lock });
            }
        }
    }

    /// Returns how many parts, of this many, are complete and can be followed by the next one, which takes so many bytes.
    ///
    /// If none can, removes what there is.
    fn complete(&self, parts: usize, state_bytes: usize) -> Result<usize, Error> {
        let has_moments = |part: &usize| self.moments_path(*part).is_file();
        let done = (0..parts).take_while(has_moments).count();
        let has_states = |part: usize| {
            fs::metadata(self.states_path(part)).is_ok_and(|found| found.len() == state_bytes as u64)
        };
        if done == parts || done > 0 && has_states(done - 1) {
            return Ok(done);
        }
        self.remove_files().map_err(cannot_keep(&self.folder))?;
        Ok(0)
    }

    /// Returns the states that a complete part returned.
    fn states(&self, part: usize) -> Result<Vec<u8>, Error> {
        fs::read(self.states_path(part)).map_err(cannot_keep(&self.folder))
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
            let (digest, _) = Digest::of_file(path).map_err(cannot_keep(&self.folder))?;
            digests.push_str(&format!("{digest}\n"));
        }
        let tensors = Weights::from_files(&paths)?;
        let parameters: Vec<_> = steps.iter().flat_map(|step| &step.moments).cloned().collect();
        tensors.check(&parameters)?;
        Ok((tensors, Digest::of(digests.as_bytes())))
    }

    /// Writes a file that is there as a whole or not at all, also after the machine lost its power.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let write = || -> io::Result<()> {
            let mut name = Builder::new();
            name.prefix(&self.prefix).suffix(".partial");
            let mut partial = name.tempfile_in(&self.folder)?;
            partial.write_all(bytes)?;
            partial.as_file().sync_all()?;
            partial.persist(path)?;
            Ok(())
        };
        write().map_err(cannot_keep(&self.folder))
    }

    /// Removes the files, and then their own folder.
    fn remove(self) -> io::Result<()> {
        self.remove_files()?;
        // Last, because another process begins anew once it has the lock.
        fs::remove_file(self.path(LOCK))?;
        if self.prefix.is_empty() { fs::remove_dir(&self.folder) } else { Ok(()) }
    }

    /// Removes all files but the lock.
    fn remove_files(&self) -> io::Result<()> {
        let lock = self.path(LOCK);
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let is_ours = entry.file_name().to_string_lossy().starts_with(&self.prefix);
            if is_ours && entry.path() != lock {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn states_path(&self, part: usize) -> PathBuf {
        self.path(&format!("states-{part}"))
    }

    fn moments_path(&self, part: usize) -> PathBuf {
        self.path(&format!("moments-{part}.safetensors"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}{name}", self.prefix))
    }
}

/// Makes an error of an I/O error in a folder, for `map_err`.
fn cannot_keep(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    |source| CalibrationError::Keep { path: path.to_path_buf(), source }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE_BYTES: usize = 8;

    /// Keeps two of three parts in a folder.
    fn kept(folder: &Path, prefix: &str) -> KeptParts {
        let kept = KeptParts::in_folder(folder.to_owned(), prefix.to_owned()).unwrap();
        for part in 0..2 {
            kept.keep(part, &[1; STATE_BYTES], &[], &[]).unwrap();
        }
        kept
    }

    fn count(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_run_goes_on_after_its_last_part() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path(), "");
        assert_eq!(kept.complete(3, STATE_BYTES).unwrap(), 2);
        assert_eq!(kept.states(1).unwrap(), [1; STATE_BYTES]);
        assert_eq!(kept.complete(2, STATE_BYTES).unwrap(), 2);
        // The lock, states of the last part and moments of both.
        assert_eq!(count(folder.path()), 4);
    }

    #[test]
    fn states_of_another_length_are_collected_anew() {
        let folder = tempfile::tempdir().unwrap();
        let other: [&[u8]; 2] = [&[], &[1; STATE_BYTES - 1]];
        for bytes in other {
            let kept = kept(folder.path(), "");
            fs::write(kept.states_path(1), bytes).unwrap();
            assert_eq!(kept.complete(3, STATE_BYTES).unwrap(), 0);
            assert_eq!(count(folder.path()), 1);
        }
    }

    #[test]
    fn one_process_collects_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("b.calibration-0");
        let open = || KeptParts::in_folder(own.clone(), String::new());
        let first = kept(&own, "");
        assert_eq!(
            open().err().unwrap().to_string(),
            format!(
                "another process calibrates this bundle in {}, expected none\n\
                 hint: wait for it, then repeat the command",
                own.display()
            )
        );
        drop(first);
        let second = open().unwrap();
        assert_eq!(second.complete(3, STATE_BYTES).unwrap(), 2);
        second.remove().unwrap();
        assert_eq!(count(folder.path()), 0);
        assert_eq!(open().unwrap().complete(3, STATE_BYTES).unwrap(), 0);
    }

    #[test]
    fn files_of_others_in_the_same_folder_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        fs::write(at.join("download.part"), "half").unwrap();
        let [one, other] = ["calibration-1.", "calibration-2."].map(|prefix| kept(at, prefix));
        assert_eq!(count(at), 9);
        // Garbage collection of the store removes files without an extension at once.
        let mut paths = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
        assert!(paths.all(|path| path.extension().is_some()));
        one.remove().unwrap();
        assert_eq!(count(at), 5);
        assert_eq!(other.complete(3, STATE_BYTES).unwrap(), 2);
    }
}
