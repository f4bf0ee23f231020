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
    /// The bytes of small tensors that decide how others are stored.
    contents: BTreeMap<String, Vec<u8>>,
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
        Self { types: types.collect(), ..Self::default() }
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

    /// Adds the bytes of a tensor that [`Scheme::reads`](super::Scheme::reads).
    pub fn add_contents(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.contents.insert(name.into(), bytes.into());
    }

    /// Returns the bytes of a tensor, if they were added.
    pub(super) fn contents(&self, name: &str) -> Option<&[u8]> {
        self.contents.get(name).map(Vec::as_slice)
    }

    /// Returns the JSON of a tensor.
    ///
    /// # Errors
    /// There is none, or its bytes are something else.
    pub(super) fn json(&self, name: &str) -> Result<Value, WrongStorage> {
        let wrong = |problem: String| WrongStorage::new(name, problem);
        let bytes = self.contents(name).ok_or_else(|| wrong("missing, expected an object in JSON".into()))?;
        serde_json::from_slice(bytes).map_err(|error| wrong(format!("no JSON: {error}, expected an object")))
    }

    /// Returns the 32-bit integers of a tensor, if its bytes were added.
    fn integers(&self, name: &str) -> Option<Vec<i32>> {
        let (words, _) = self.contents(name)?.as_chunks::<4>();
        Some(words.iter().map(|word| i32::from_le_bytes(*word)).collect())
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
    order: Option<Vec<i32>>,
}

impl<'t> Parts<'t> {
    pub(super) fn new(all: &'t StoredTensors) -> Self {
        Self { all, found: Vec::new(), order: None }
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

    /// Takes the group of each column, of `groups` of `size` columns; `None` if groups are adjacent columns.
    ///
    /// # Errors
    /// As [`Parts::take`], or a group does not exist.
    pub(super) fn column_groups(
        &mut self,
        name: &str,
        columns: usize,
        [groups, size]: [usize; 2],
    ) -> Result<Option<Expr>, WrongStorage> {
        let index = self.take(name, &[Dtype::I32], &[columns])?.integers();
        let Some(order) = self.all.integers(name).filter(|order| order.len() == columns) else {
            return Ok(Some(index));
        };
        let mut sizes = vec![0; groups];
        for (column, &group) in order.iter().enumerate() {
            let Some(size) = usize::try_from(group).ok().and_then(|group| sizes.get_mut(group)) else {
                let problem =
                    format!("group {group} of column {column}, expected 0 to {}", groups.saturating_sub(1));
                return Err(WrongStorage::new(name, problem));
            };
            *size += 1;
        }
        // The last group may have fewer columns.
        if order.iter().enumerate().all(|(column, &group)| usize::try_from(group) == Ok(column / size)) {
            self.found.pop();
            return Ok(None);
        }
        let is_even = sizes.iter().all(|&found| found == size);
        self.order = is_even.then_some(order);
        Ok(Some(index))
    }

    /// Returns the storage of a weight with this coding.
    pub(super) fn finish(self, coding: Coding) -> Storage {
        Storage { tensors: self.found, coding: Some(coding), order: self.order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the groups of four columns, `size` in each of two groups. Returns whether they have an order of their own, and
    /// whether that is known.
    fn column_groups(groups: Option<[i32; 4]>, size: usize) -> Result<(bool, bool), String> {
        let tensor = StoredTensor { name: "g_idx".into(), dtype: Dtype::I32, shape: vec![4] };
        let mut tensors: StoredTensors = [tensor].into_iter().collect();
        if let Some(groups) = groups {
            tensors.add_contents("g_idx", groups.map(i32::to_le_bytes).as_flattened());
        }
        let mut parts = Parts::new(&tensors);
        let found = parts.column_groups("g_idx", 4, [2, size]).map_err(|wrong| wrong.problem)?;
        assert_eq!(parts.found.len(), usize::from(found.is_some()));
        Ok((found.is_some(), parts.order.is_some()))
    }

    #[test]
    fn groups_of_columns_are_checked() {
        assert_eq!(column_groups(Some([0, 0, 1, 1]), 2), Ok((false, false)));
        assert_eq!(column_groups(Some([0, 0, 0, 1]), 3), Ok((false, false)));
        assert_eq!(column_groups(Some([0, 1, 1, 0]), 2), Ok((true, true)));
        // Groups of other sizes, and unknown ones, stay as they are.
        assert_eq!(column_groups(Some([0, 1, 1, 1]), 2), Ok((true, false)));
        assert_eq!(column_groups(Some([0, 0, 1, 0]), 3), Ok((true, false)));
        assert_eq!(column_groups(None, 2), Ok((true, false)));
        let refused = |group: i32| format!("group {group} of column 2, expected 0 to 1");
        for group in [2, -1] {
            assert_eq!(column_groups(Some([0, 1, group, 1]), 2), Err(refused(group)));
        }
    }
}
