//! What a manifest describes: a model or a program.

use super::{FORMAT_OF_PAGES, Manifest, ModelSpec, entry::Entry, program::BundleKind};
use crate::error::Error;

impl Manifest {
    /// Returns the specification of the bundle's model.
    ///
    /// # Errors
    /// The bundle has a program.
    pub fn model_spec(&self) -> Result<&ModelSpec, Error> {
        // A valid manifest has one if and only if it is of a model.
        self.plan.as_ref().ok_or_else(|| Error::NotAModel { name: self.model.clone() })
    }

    /// Returns the oldest format that runs, if the bundle's is older: its entry points are called in another way.
    #[must_use]
    pub fn newer_format_needed(&self) -> Option<u32> {
        (self.plan.is_some() && self.format < FORMAT_OF_PAGES).then_some(FORMAT_OF_PAGES)
    }

    /// Returns the functions of the bundle's program. They are the same for all targets.
    ///
    /// # Errors
    /// The bundle has a model.
    pub fn functions(&self) -> Result<&[Entry], Error> {
        let first = self.targets.values().next().filter(|_| self.kind == BundleKind::Program);
        let first = first.ok_or_else(|| Error::NotAProgram { name: self.model.clone() })?;
        Ok(&first.entries)
    }
}
