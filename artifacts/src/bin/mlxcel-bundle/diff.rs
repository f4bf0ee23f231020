//! `diff`: two bundles compared.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use mlxcel_artifacts::Differences;

use crate::{arguments::StoreArguments, outcome::Outcome};

/// The exit status when the bundles differ, as diff(1) has it.
const DIFFERENT: u8 = 1;

/// Show the differences between two bundles
///
/// Exits with 0 if there are none, with 1 if there are some, and with 2 on an error.
#[derive(Args)]
pub(crate) struct Diff {
    /// The first bundle: a folder, or a name in the store
    first: PathBuf,
    /// The second bundle: a folder, or a name in the store
    second: PathBuf,
}

impl Diff {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let (first, second) =
            (store.open_without_weights(&self.first)?, store.open_without_weights(&self.second)?);
        let differences = Differences::between(&first, &second)?;
        let status = if differences.is_empty() { 0 } else { DIFFERENT };
        Ok(Outcome { text: differences.to_string(), status })
    }
}
