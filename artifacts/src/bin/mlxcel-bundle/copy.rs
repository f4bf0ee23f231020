//! `copy`: a bundle in another place.

use anyhow::Result;
use clap::Args;

use crate::{
    arguments::{Source, StoreArguments, Target},
    outcome::Outcome,
};

/// Copy a bundle to a folder or into the store
#[derive(Args)]
pub(crate) struct Copy {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    target: Target,
}

impl Copy {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let bundle = self.source.open_without_weights(store)?;
        Ok(self.target.write(store, |to| bundle.copy_to(to))?.into())
    }
}
