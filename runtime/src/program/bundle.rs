//! A program's bundle, and the device that it runs on.

use std::path::Path;

use mlxcel_artifacts::{Bundle, entry::Entry};

use crate::{device::DeviceSpec, error::Error, trace::Trace};

/// The work of the largest call that runs on the calling thread.
///
/// Starting a dispatch on several threads takes some 20 µs more than on one, in which a core computes or reads some hundred
/// thousand numbers. So several threads are worth it from about a millisecond on.
#[cfg(feature = "iree")]
const SMALL_WORK: u64 = 4_000_000;

/// The device to run a program on.
#[derive(Debug, Clone, Default)]
pub struct DeviceOptions {
    /// The device. [`DeviceSpec::Auto`] is the best one that the bundle has a target for; on a CPU, one thread for programs
    /// whose calls are short.
    pub device: DeviceSpec,
    /// Threads of [`DeviceSpec::LocalTask`]; `None` is one for each physical core.
    pub threads: Option<usize>,
    /// The timeline on which loading and the device are recorded; off by default.
    pub trace: Trace,
}

/// A bundle of a program.
///
/// ```no_run
/// # fn main() -> Result<(), mlxcel_runtime::Error> {
/// # let (x, w) = (mlxcel_runtime::Tensor::scalar(1f32), mlxcel_runtime::Tensor::scalar(0f32));
/// use mlxcel_runtime::{DeviceOptions, Program};
///
/// let program = Program::open("step.bundle")?.load(DeviceOptions::default())?;
/// // `x` is an input of every call, and each call takes the `w` that the one before returned.
/// let mut step = program.function("main")?.bind("x", &x)?.state("w", &w)?;
/// for _ in 0..10_000 {
///     step.call()?;
/// }
/// let w = step.read("w")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Program {
    bundle: Bundle,
}

impl Program {
    /// Opens the bundle in a folder. Weights that it carries are verified when it is loaded.
    ///
    /// # Errors
    /// The folder is not a bundle, or the bundle has a language model.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::new(Bundle::open_without_weights(folder.as_ref())?)
    }

    /// Takes a bundle that was opened, such as one of a store.
    ///
    /// # Errors
    /// The bundle has a language model.
    pub fn new(bundle: Bundle) -> Result<Self, Error> {
        bundle.manifest().functions()?;
        Ok(Self { bundle })
    }

    /// Returns the bundle.
    #[must_use]
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Returns the functions.
    #[must_use]
    pub fn functions(&self) -> &[Entry] {
        // `new` has found them.
        self.bundle.manifest().functions().unwrap_or_default()
    }
}

/// Returns the device of the CPU for these functions, if none was asked for.
#[cfg(feature = "iree")]
pub(crate) fn cpu_for(functions: &[Entry], options: &DeviceOptions) -> DeviceSpec {
    let is_small = |entry: &Entry| (1..=SMALL_WORK).contains(&entry.work);
    if options.threads.is_none() && functions.iter().all(is_small) {
        DeviceSpec::LocalSync
    } else {
        DeviceSpec::LocalTask
    }
}

#[cfg(test)]
#[cfg(feature = "iree")]
mod tests {
    use mlxcel_artifacts::sample;

    use super::*;

    #[test]
    fn short_calls_run_on_one_thread() {
        let of = |work: &[u64], threads| {
            let functions: Vec<_> = work.iter().map(|&work| Entry { work, ..sample::function() }).collect();
            cpu_for(&functions, &DeviceOptions { threads, ..DeviceOptions::default() })
        };
        assert_eq!(of(&[SMALL_WORK], None), DeviceSpec::LocalSync);
        assert_eq!(of(&[SMALL_WORK + 1], None), DeviceSpec::LocalTask);
        assert_eq!(of(&[1, SMALL_WORK + 1], None), DeviceSpec::LocalTask);
        // Unknown work may be any.
        assert_eq!(of(&[0], None), DeviceSpec::LocalTask);
        // Whoever asks for threads gets them.
        assert_eq!(of(&[1], Some(2)), DeviceSpec::LocalTask);
    }
}
