//! Names of modules and of their tensors.

use crate::{error::Error, json::Json, layers::Weight, storage::tensors::WrongStorage};

/// Modules that config.json says are not quantized.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Excluded(Vec<String>);

impl Excluded {
    /// Reads the list at a key.
    ///
    /// # Errors
    /// It is no list of names.
    pub(super) fn read(json: &Json<'_>, key: &str) -> Result<Self, Error> {
        let names = |value: &serde_json::Value| {
            let names = value.as_array()?.iter().map(|name| Some(name.as_str()?.to_owned()));
            names.collect::<Option<Vec<_>>>()
        };
        match json.value(key) {
            None => Ok(Self::default()),
            Some(value) => {
                names(value).map(Self).ok_or_else(|| json.invalid(key, "a list of names, or null"))
            }
        }
    }

    /// Refuses a module that has quantized tensors, although it is in the list or in a module of the list.
    ///
    /// # Errors
    /// It is one.
    pub(super) fn check(&self, weight: &Weight) -> Result<(), WrongStorage> {
        let module = module(&weight.name).unwrap_or(&weight.name);
        let is_in = |name: &&String| {
            let rest = module.strip_prefix(name.as_str());
            let is_end = module.strip_suffix(name.as_str()).is_some_and(|before| before.ends_with('.'));
            is_end || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        match self.0.iter().find(is_in) {
            None => Ok(()),
            Some(name) => {
                let problem =
                    format!("quantized, but config.json excludes `{name:.200}`, expected a float tensor");
                Err(WrongStorage::new(&weight.name, problem))
            }
        }
    }
}

/// Returns the name of the module whose `weight` this is.
pub(super) fn module(name: &str) -> Option<&str> {
    name.strip_suffix(".weight")
}

/// Returns rows and columns of a weight of two dimensions.
///
/// # Errors
/// The weight has another number of dimensions, which the scheme has no form for.
pub(super) fn matrix(weight: &Weight) -> Result<[usize; 2], WrongStorage> {
    match weight.shape.as_slice() {
        &[rows, columns] => Ok([rows, columns]),
        shape => {
            let problem = format!("a quantized tensor of shape {shape:?}, expected rows and columns");
            Err(WrongStorage::new(&weight.name, problem))
        }
    }
}

/// Returns the number of groups of `size` columns, of which the last may not be smaller.
///
/// # Errors
/// The columns are no multiple of the size.
pub(super) fn whole_groups(name: &str, columns: usize, size: usize) -> Result<usize, WrongStorage> {
    if columns.is_multiple_of(size) {
        return Ok(columns / size);
    }
    let problem = format!("rows of {columns} elements, expected a multiple of the group size {size}");
    Err(WrongStorage::new(name, problem))
}
