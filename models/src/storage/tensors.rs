//! The tensors of a checkpoint.

use std::collections::BTreeMap;

use safetensors::Dtype;
use serde_json::Value;

use super::{
    coding::{Coding, Storage, StoredTensor},
    expr::Expr,
};

/// The tensors of a checkpoint, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredTensors {
    types: BTreeMap<String, (Dtype, Vec<usize>)>,
    /// The contents of small tensors that are JSON.
    texts: BTreeMap<String, Value>,
}

/// Why a weight cannot be made of a checkpoint's tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongStorage {
    /// The tensor.
    pub tensor: String,
    /// What is wrong with it: found and expected.
    pub problem: String,
}

impl WrongStorage {
    pub(crate) fn new(tensor: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { tensor: tensor.into(), problem: problem.into() }
    }
}

impl FromIterator<StoredTensor> for StoredTensors {
    fn from_iter<T: IntoIterator<Item = StoredTensor>>(tensors: T) -> Self {
        let types = tensors.into_iter().map(|StoredTensor { name, dtype, shape }| (name, (dtype, shape)));
        Self { types: types.collect(), texts: BTreeMap::new() }
    }
}

/// Element types of weights that are stored as they are.
const FLOATS: [Dtype; 3] = [Dtype::F32, Dtype::BF16, Dtype::F16];

impl StoredTensors {
    /// Returns whether there is a tensor of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.types.contains_key(name)
    }

    /// Returns the tensor of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<StoredTensor> {
        let (dtype, shape) = self.types.get(name)?;
        Some(StoredTensor { name: name.to_owned(), dtype: *dtype, shape: shape.clone() })
    }

    /// Returns the names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.types.keys().map(String::as_str)
    }

    /// Adds the bytes of a tensor that are a text in JSON.
    ///
    /// # Errors
    /// They are no JSON.
    pub fn add_text(&mut self, name: &str, bytes: &[u8]) -> Result<(), WrongStorage> {
        let no_json = |error| WrongStorage::new(name, format!("no JSON: {error}, expected an object"));
        self.texts.insert(name.to_owned(), serde_json::from_slice(bytes).map_err(no_json)?);
        Ok(())
    }

    /// Returns the text of a tensor.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn text(&self, name: &str) -> Result<&Value, WrongStorage> {
        self.texts.get(name).ok_or_else(|| WrongStorage::new(name, "missing, expected an object in JSON"))
    }
}

/// Checks that a tensor is stored as it is, in one of [`FLOATS`].
///
/// # Errors
/// It has another type.
pub(super) fn check_floats(tensor: &StoredTensor) -> Result<(), WrongStorage> {
    if FLOATS.contains(&tensor.dtype) {
        return Ok(());
    }
    let problem = format!("dtype {:?}, expected F32, BF16 or F16", tensor.dtype);
    Err(WrongStorage::new(&tensor.name, problem))
}

/// The tensors of one weight, under construction.
pub(super) struct Parts<'t> {
    all: &'t StoredTensors,
    found: Vec<StoredTensor>,
}

impl<'t> Parts<'t> {
    pub(super) fn new(all: &'t StoredTensors) -> Self {
        Self { all, found: Vec::new() }
    }

    /// Takes a tensor, which must have one of these types and this shape.
    ///
    /// # Errors
    /// It is missing, or has another type or shape.
    pub(super) fn take(
        &mut self,
        name: &str,
        dtypes: &[Dtype],
        shape: &[usize],
    ) -> Result<Expr, WrongStorage> {
        let Some(tensor) = self.all.get(name) else {
            return Err(WrongStorage::new(name, format!("missing, expected shape {shape:?}")));
        };
        if tensor.shape != shape {
            let problem = format!("shape {:?}, expected {shape:?}", tensor.shape);
            return Err(WrongStorage::new(name, problem));
        }
        if !dtypes.contains(&tensor.dtype) {
            let names: Vec<_> = dtypes.iter().map(|dtype| format!("{dtype:?}")).collect();
            let problem = format!("dtype {:?}, expected {}", tensor.dtype, names.join(" or "));
            return Err(WrongStorage::new(name, problem));
        }
        self.found.push(tensor);
        Ok(Expr::Stored(self.found.len() - 1))
    }

    /// Returns how many matrices a stack has, which must be more than `index`.
    ///
    /// # Errors
    /// It is missing, or has fewer.
    pub(super) fn stack(&self, name: &str, index: usize) -> Result<usize, WrongStorage> {
        let expected = || format!("a stack of more than {index}");
        let Some(tensor) = self.all.get(name) else {
            return Err(WrongStorage::new(name, format!("missing, expected {}", expected())));
        };
        let count = tensor.shape.first().copied().filter(|&count| count > index);
        count.ok_or_else(|| {
            WrongStorage::new(name, format!("shape {:?}, expected {}", tensor.shape, expected()))
        })
    }

    /// Takes floating-point numbers of any of the plain types.
    ///
    /// # Errors
    /// As [`Parts::take`].
    pub(super) fn floats(&mut self, name: &str, shape: &[usize]) -> Result<Expr, WrongStorage> {
        Ok(self.take(name, &FLOATS, shape)?.floats())
    }

    /// Returns the storage of a weight with this coding.
    pub(super) fn finish(self, coding: Coding) -> Storage {
        Storage { tensors: self.found, coding: Some(coding) }
    }
}
