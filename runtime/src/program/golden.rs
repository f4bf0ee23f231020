//! Recorded calls of a program, replayed on a device.

use mlxcel_artifacts::{Golden, Tensor, safetensors_tensors};

#[cfg(not(feature = "iree"))]
use super::absent::LoadedProgram;
#[cfg(feature = "iree")]
use super::loaded::LoadedProgram;
use super::{
    bundle::Program,
    compare::{Difference, Tolerance, compare},
};
use crate::error::Error;

/// The result of a recorded call.
#[derive(Debug, Clone, PartialEq)]
pub struct GoldenResult {
    /// The function.
    pub function: String,
    /// For each recorded result its name, and the largest distance of two elements, or how it differs.
    pub results: Vec<(String, Result<f64, Difference>)>,
}

impl GoldenResult {
    /// Returns whether all results are near those that were recorded.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.results.iter().all(|(_, result)| result.is_ok())
    }
}

impl LoadedProgram {
    /// Makes a recorded call of `program`, which was loaded, and compares its results.
    ///
    /// # Errors
    /// The recorded tensors are damaged or do not fit, or the device fails.
    pub fn replay(&self, program: &Program, golden: &Golden) -> Result<GoldenResult, Error> {
        let read = |blob| -> Result<Vec<(String, Tensor)>, Error> {
            let tensors = safetensors_tensors(&program.bundle().read_small(blob)?);
            let damaged = |reason| Error::Unsupported(format!("a golden is damaged: {reason}"));
            Ok(tensors.map_err(damaged)?.into_iter().collect())
        };
        let mut function = self.function(&golden.function)?;
        for (name, tensor) in read(&golden.inputs)? {
            function.set(&name, &tensor)?;
        }
        function.call()?;
        let tolerance = Tolerance { rtol: golden.rtol, atol: golden.atol };
        let mut results = Vec::new();
        for (name, expected) in read(&golden.outputs)? {
            let found = function.read(&name)?;
            results.push((name, compare(&found, &expected, tolerance)));
        }
        Ok(GoldenResult { function: golden.function.clone(), results })
    }
}
