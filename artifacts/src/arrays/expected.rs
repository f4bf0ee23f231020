//! Reading from a file the tensors that a function takes or returns.

use std::collections::BTreeMap;

use safetensors::Dtype;

use super::{
    error::{Problem, TensorFileError},
    file::TensorFile,
    value::Tensor,
};
use crate::{nearest::nearest_names, safetensors::printable, tensor::type_text};

impl TensorFile {
    /// Reads all tensors of a file with names. Each must be one of those that are expected, of its type.
    ///
    /// `what` is what these are, `argument` or `result`. Types are compared before memory is taken for elements.
    ///
    /// # Errors
    /// A tensor has another name or type, or the file is damaged.
    pub fn read_expected(
        &self,
        what: &str,
        expected: &[(String, Dtype, &[usize])],
    ) -> Result<BTreeMap<String, Tensor>, TensorFileError> {
        let mut tensors = BTreeMap::new();
        for (name, ..) in self.tensors() {
            let index = expected.iter().position(|(known, ..)| known == name);
            let Some(index) = index else {
                let nearest = nearest_names(name, expected.iter().map(|(name, ..)| name.as_str()));
                let nearest = if nearest.is_empty() { "none".into() } else { nearest.join(", ") };
                let text = format!("found `{}`, expected a name of the {what}s: {nearest}", printable(name));
                return Err(
                    Problem::unsupported(text, "name each tensor as the program does").at(self.path())
                );
            };
            tensors.insert(name.to_owned(), self.read_as(name, what, index, expected)?);
        }
        Ok(tensors)
    }

    /// Reads a tensor as the expected one of this index. That of an npy file has an empty name.
    ///
    /// # Errors
    /// It has another type, or the file is damaged.
    pub fn read_as(
        &self,
        name: &str,
        what: &str,
        index: usize,
        expected: &[(String, Dtype, &[usize])],
    ) -> Result<Tensor, TensorFileError> {
        let all = self.tensors();
        let found = all.iter().find(|(other, ..)| *other == name).map(|(_, dtype, shape)| (*dtype, *shape));
        if let (Some((dtype, shape)), Some((known, right, right_shape))) = (found, expected.get(index))
            && (dtype, shape) != (*right, *right_shape)
        {
            let (found, right) = (type_text(dtype, shape), type_text(*right, right_shape));
            let known = printable(known);
            let text = format!("{what} {} \"{known}\": found {found}, expected {right}", index + 1);
            return Err(Problem::unsupported(text, "convert the tensor, or write it again").at(self.path()));
        }
        self.read(name)
    }
}
