//! `copy`: a bundle in another place.

use anyhow::Result;
use clap::Args;

use crate::{
    arguments::{Source, Target},
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
    pub(crate) fn run(&self) -> Result<Outcome> {
        let bundle = self.source.open_without_weights()?;
        Ok(self.target.write(|to| bundle.copy_to(to))?.into())
    }
}
