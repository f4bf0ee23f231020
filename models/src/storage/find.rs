//! Finds the tensors of a checkpoint that store weights.

use super::{
    coding::Storage,
    scheme::Scheme,
    tensors::{StoredTensors, WrongStorage, check_floats},
};
use crate::layers::Weight;

/// The tensors of a checkpoint, and the scheme that its config.json names.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointTensors<'t> {
    /// The tensors.
    pub tensors: &'t StoredTensors,
    /// The scheme; `None` if no weight is quantized.
    pub scheme: Option<&'t Scheme>,
}

impl CheckpointTensors<'_> {
    /// Returns whether a weight of this name is stored, in whatever form.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.tensors.has(name) || self.scheme.is_some_and(|scheme| scheme.stores(name, self.tensors))
    }

    /// Returns how a weight is stored.
    ///
    /// # Errors
    /// A tensor is missing, or has another type or shape than the scheme's.
    pub fn storage(&self, weight: &Weight) -> Result<Storage, WrongStorage> {
        let is_used = |scheme: &&Scheme| scheme.is_container() || scheme.stores(&weight.name, self.tensors);
        if let Some(scheme) = self.scheme.filter(is_used) {
            return scheme.storage(weight, self.tensors);
        }
        let Some(found) = self.tensors.get(&weight.name) else {
            let problem = format!("missing, expected shape {:?}", weight.shape);
            return Err(WrongStorage::new(&weight.name, problem));
        };
        if found.shape != weight.shape {
            let problem = format!("shape {:?}, expected {:?}", found.shape, weight.shape);
            return Err(WrongStorage::new(&weight.name, problem));
        }
        check_floats(&found)?;
        Ok(Storage::plain(weight, found.dtype))
    }
}
