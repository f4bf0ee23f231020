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
    /// The contents of small tensors that are the groups of columns.
    orders: BTreeMap<String, Vec<i32>>,
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

    /// Adds the bytes of a tensor that [`Scheme::reads`](super::Scheme::reads): integers, or a text in JSON.
    ///
    /// # Errors
    /// They are no JSON.
    pub fn add_contents(&mut self, name: &str, bytes: &[u8]) -> Result<(), WrongStorage> {
        if self.types.get(name).is_some_and(|(dtype, _)| *dtype == Dtype::I32) {
            let (words, _) = bytes.as_chunks::<4>();
            self.orders.insert(name.to_owned(), words.iter().map(|word| i32::from_le_bytes(*word)).collect());
            return Ok(());
        }
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
        let Some(order) = self.all.orders.get(name).filter(|order| order.len() == columns) else {
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
        let is_even = sizes.iter().all(|&found| found == size);
        if is_even && order.is_sorted() {
            self.found.pop();
            return Ok(None);
        }
        self.order = is_even.then(|| order.clone());
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

    /// Takes the groups of four columns, two in each of two groups. Returns whether they have an order of their own, and
    /// whether that is known.
    fn column_groups(groups: Option<[i32; 4]>) -> Result<(bool, bool), String> {
        let tensor = StoredTensor { name: "g_idx".into(), dtype: Dtype::I32, shape: vec![4] };
        let mut tensors: StoredTensors = [tensor].into_iter().collect();
        if let Some(groups) = groups {
            tensors.add_contents("g_idx", groups.map(i32::to_le_bytes).as_flattened()).unwrap();
        }
        let mut parts = Parts::new(&tensors);
        let found = parts.column_groups("g_idx", 4, [2, 2]).map_err(|wrong| wrong.problem)?;
        assert_eq!(parts.found.len(), usize::from(found.is_some()));
        Ok((found.is_some(), parts.order.is_some()))
    }

    #[test]
    fn groups_of_columns_are_checked() {
        assert_eq!(column_groups(Some([0, 0, 1, 1])), Ok((false, false)));
        assert_eq!(column_groups(Some([0, 1, 1, 0])), Ok((true, true)));
        // Groups of other sizes, and unknown ones, stay as they are.
        assert_eq!(column_groups(Some([0, 1, 1, 1])), Ok((true, false)));
        assert_eq!(column_groups(None), Ok((true, false)));
        let refused = |group: i32| format!("group {group} of column 2, expected 0 to 1");
        for group in [2, -1] {
            assert_eq!(column_groups(Some([0, 1, group, 1])), Err(refused(group)));
        }
    }
}
