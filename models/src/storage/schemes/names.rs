//! Names of modules and of their tensors.

use crate::{error::Error, json::Json, layers::Weight, storage::tensors::WrongStorage};

/// Modules that config.json says are not quantized.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::storage) struct Excluded(Vec<String>);

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
        match self.0.iter().find(|name| is_in(&weight.name, name)) {
            None => Ok(()),
            Some(name) => {
                let problem =
                    format!("quantized, but config.json excludes `{name:.200}`, expected a float tensor");
                Err(WrongStorage::new(&weight.name, problem))
            }
        }
    }

    /// Returns the names that no weight's module has. Patterns are none.
    pub(in crate::storage) fn unmatched(&self, weights: &[&Weight]) -> Vec<&str> {
        let is_pattern = |name: &str| name.starts_with(PATTERN) || name.contains('*');
        let has_none = |name: &&str| !weights.iter().any(|weight| is_in(&weight.name, name));
        let names = self.0.iter().map(String::as_str).filter(|name| !is_pattern(name));
        names.filter(has_none).collect()
    }
}

/// What a pattern begins with.
const PATTERN: &str = "re:";

/// Returns whether the module of a weight is the one of this name, or in it. Names may leave out what they begin with.
fn is_in(weight: &str, name: &str) -> bool {
    let module = weight.rsplit_once('.').map_or(weight, |(module, _)| module);
    let rest = module.strip_prefix(name);
    let is_end = module.strip_suffix(name).is_some_and(|before| before.ends_with('.'));
    is_end || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
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
