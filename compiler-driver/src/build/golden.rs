//! Recorded calls of a program's functions.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use mlxcel_artifacts::{
    BundleWriter, Golden, SMALL_FILE_LIMIT_BYTES, Tensor, TensorFile, entry::Entry, safetensors_bytes,
};
use safetensors::Dtype;

use crate::error::Error;

/// The files of a call to record: `in.npz:out.npz`, or `function=in.npz:out.npz`.
#[derive(Debug, Clone, PartialEq)]
pub struct GoldenFiles {
    /// The function, if the program has several.
    pub function: Option<String>,
    /// The file of its arguments.
    pub inputs: PathBuf,
    /// The file of what it must return.
    pub outputs: PathBuf,
    /// The largest difference of two numbers, relative to the one that is expected.
    pub rtol: f64,
    /// What is added to that difference.
    pub atol: f64,
}

impl FromStr for GoldenFiles {
    type Err = String;

    /// The tolerances are those of numpy's `assert_allclose` for single precision.
    fn from_str(text: &str) -> Result<Self, String> {
        let (function, files) = match text.split_once('=') {
            Some((function, files)) if !function.contains(':') => (Some(function.to_owned()), files),
            _ => (None, text),
        };
        let (inputs, outputs) = files
            .split_once(':')
            .filter(|(inputs, outputs)| !inputs.is_empty() && !outputs.is_empty())
            .ok_or_else(|| "expected two files: [FUNCTION=]IN.npz:OUT.npz".to_owned())?;
        Ok(Self { function, inputs: inputs.into(), outputs: outputs.into(), rtol: 1e-4, atol: 1e-5 })
    }
}

impl fmt::Display for GoldenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.function.iter().try_for_each(|function| write!(f, "{function}="))?;
        write!(f, "{}:{}", self.inputs.display(), self.outputs.display())
    }
}

/// A call to record, of which the tensors are known to fit.
pub(crate) struct RecordedCall {
    function: String,
    rtol: f64,
    atol: f64,
    inputs: Vec<u8>,
    outputs: Vec<u8>,
}

/// Name and type of each tensor that a function takes or returns.
type Types<'e> = Vec<(String, Dtype, &'e [usize])>;

impl RecordedCall {
    /// Reads the files of a call and compares their tensors with the function's arguments and results.
    pub(crate) fn read(files: &GoldenFiles, entries: &[Entry]) -> Result<Self, Error> {
        let refused = |problem: String| Error::Golden { golden: files.to_string(), problem };
        let inputs = TensorFile::open(&files.inputs)?;
        let is_meant = |entry: &&Entry| {
            files.function.as_ref().is_none_or(|name| entry.name == *name || entry.function_name() == name)
        };
        let meant: Vec<_> = entries.iter().filter(is_meant).collect();
        let fits = |entry: &&&Entry| arguments(entry) == types_of(&inputs);
        let Some(entry) = meant.iter().find(fits).or(meant.first()) else {
            let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
            return Err(refused(format!("found no such function, expected one of {}", names.join(", "))));
        };
        let (arguments, results) = (arguments(entry), results(entry));
        let inputs = inputs.read_expected("argument", &arguments)?;
        let outputs = TensorFile::open(&files.outputs)?.read_expected("result", &results)?;
        let missing = arguments.iter().find(|(name, ..)| !inputs.contains_key(name));
        if let Some((name, ..)) = missing {
            return Err(refused(format!(
                "{} has no argument `{name}`, expected all",
                files.inputs.display()
            )));
        }
        if outputs.is_empty() {
            return Err(refused(format!("{} has no result, expected at least one", files.outputs.display())));
        }
        Ok(Self {
            function: entry.name.clone(),
            rtol: files.rtol,
            atol: files.atol,
            inputs: bytes(&files.inputs, &inputs, &refused)?,
            outputs: bytes(&files.outputs, &outputs, &refused)?,
        })
    }

    /// Adds the tensors to a bundle.
    pub(crate) fn write(self, writer: &mut BundleWriter) -> Result<Golden, Error> {
        let Self { function, rtol, atol, inputs, outputs } = self;
        let (inputs, outputs) = (writer.add_bytes(&inputs)?, writer.add_bytes(&outputs)?);
        Ok(Golden { function, rtol, atol, inputs, outputs })
    }
}

fn arguments(entry: &Entry) -> Types<'_> {
    entry.inputs().map(|(name, spec)| (name, spec.dtype, spec.shape.as_slice())).collect()
}

fn results(entry: &Entry) -> Types<'_> {
    entry.outputs().map(|(name, spec)| (name, spec.dtype, spec.shape.as_slice())).collect()
}

fn types_of(file: &TensorFile) -> Types<'_> {
    file.tensors().into_iter().map(|(name, dtype, shape)| (name.to_owned(), dtype, shape)).collect()
}

/// Returns the safetensors file of a golden.
fn bytes(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    refused: &dyn Fn(String) -> Error,
) -> Result<Vec<u8>, Error> {
    let bytes = safetensors_bytes(tensors).map_err(Error::io("read", path))?;
    if bytes.len() as u64 > SMALL_FILE_LIMIT_BYTES {
        let (path, found) = (path.display(), bytes.len());
        return Err(refused(format!("{path} has {found} bytes, expected at most {SMALL_FILE_LIMIT_BYTES}")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_the_function_if_there_is_one() {
        let parsed = |text: &str| text.parse::<GoldenFiles>();
        let golden = parsed("in.npz:out.npz").unwrap();
        assert_eq!((golden.function.as_deref(), golden.to_string().as_str()), (None, "in.npz:out.npz"));
        let golden = parsed("main=a=b.npz:out.npz").unwrap();
        assert_eq!(golden.function.as_deref(), Some("main"));
        assert_eq!(golden.inputs, Path::new("a=b.npz"));
        for text in ["", "in.npz", ":out.npz", "in.npz:", "main="] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
