//! The file of tensors that take the place of a program's arguments.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{BundleWriter, Cancel, Digest, SINGLE_FILE, nearest_names, type_text};
use mlxcel_emitter::{ImportedProgram, TensorType};

use crate::{
    build::{
        event::{Event, Progress},
        weights::BundledWeights,
    },
    documents::provenance::SourceFile,
    error::Error,
    model::tensor_file::TensorFile,
};

/// A safetensors file whose header was read.
pub(crate) struct ParameterFile {
    path: PathBuf,
    file: TensorFile,
}

impl ParameterFile {
    /// Opens the file.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { path: path.to_owned(), file: TensorFile::open(path)? })
    }

    /// Returns the tensor of each argument that has one: those of `bind`, or else those of the arguments' names.
    pub(crate) fn bind(
        &self,
        bind: &BTreeMap<String, String>,
        program: &ImportedProgram,
    ) -> Result<BTreeMap<String, String>, Error> {
        let tensors = self.file.tensors();
        if let Some((argument, tensor)) = bind.iter().find(|(_, tensor)| !tensors.contains_key(*tensor)) {
            let nearest = nearest_names(tensor, tensors.keys().map(String::as_str)).join(", ");
            let problem =
                format!("found no tensor `{tensor}` for `{argument}`, expected one such as {nearest}");
            return Err(self.refused(problem, "--bind takes ARGUMENT=TENSOR"));
        }
        if !bind.is_empty() {
            return Ok(bind.clone());
        }
        let arguments = program.functions.iter().flat_map(|function| function.arguments.iter().enumerate());
        let names = arguments.map(|(index, argument)| argument.shown_name(index));
        let bound: BTreeMap<_, _> =
            names.filter(|name| tensors.contains_key(name)).map(|name| (name.clone(), name)).collect();
        if bound.is_empty() {
            let some: Vec<_> = tensors.keys().take(3).map(String::as_str).collect();
            let problem = format!("found tensors such as {}, expected names of arguments", some.join(", "));
            return Err(self.refused(problem, "say which argument takes which with --bind ARGUMENT=TENSOR"));
        }
        Ok(bound)
    }

    /// Checks that the tensors have the types that the program reads.
    pub(crate) fn check(&self, parameters: &BTreeMap<String, TensorType>) -> Result<(), Error> {
        let tensors = self.file.tensors();
        for (name, expected) in parameters {
            let found = tensors.get(name);
            if found.is_none_or(|found| (found.dtype, &found.shape) != (expected.dtype, &expected.shape)) {
                let found = found.map_or("nothing".into(), |found| type_text(found.dtype, &found.shape));
                let expected = type_text(expected.dtype, &expected.shape);
                let problem = format!("tensor `{name}`: found {found}, expected {expected}");
                return Err(self.refused(problem, "convert the tensor, or bind another one"));
            }
        }
        Ok(())
    }

    /// Adds the file to a bundle.
    pub(crate) fn write(
        self,
        writer: &mut BundleWriter,
        cancel: &Cancel,
        progress: &mut Progress<'_>,
    ) -> Result<BundledWeights, Error> {
        progress(Event::Weights { file: SINGLE_FILE.to_owned() });
        let mut bundled = BundledWeights::default();
        bundled.add(SINGLE_FILE, &self.path, writer, cancel)?;
        let (digest, _) = Digest::of_file(&self.path).map_err(Error::io("read", &self.path))?;
        bundled.sources.push(SourceFile { name: SINGLE_FILE.to_owned(), digest });
        Ok(bundled)
    }

    fn refused(&self, problem: String, hint: &'static str) -> Error {
        Error::Parameters { path: self.path.clone(), problem, hint }
    }
}
