//! Names of modules and of their tensors.

use crate::{layers::Weight, storage::WrongStorage};

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
pub(super) fn whole_groups(weight: &Weight, columns: usize, size: usize) -> Result<usize, WrongStorage> {
    if columns.is_multiple_of(size) {
        return Ok(columns / size);
    }
    let problem = format!("rows of {columns} elements, expected a multiple of the group size {size}");
    Err(WrongStorage::new(&weight.name, problem))
}
