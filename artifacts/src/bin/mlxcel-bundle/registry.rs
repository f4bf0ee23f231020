//! `push` and `pull`: bundles in OCI registries.

use anyhow::Result;
use clap::Args;
use mlxcel_artifacts::{DockerConfig, Error, Name, Registry};

use crate::{
    arguments::{Source, StoreArguments, write_to_store},
    outcome::Outcome,
    progress::with_progress,
};

/// A bundle's address in a registry.
#[derive(Args)]
struct Address {
    /// The address in the registry, such as registry.example/models/demo:1
    reference: String,
    /// Use HTTP without TLS; always used for registries on this machine
    #[arg(long)]
    plain_http: bool,
}

impl Address {
    fn registry(&self) -> Result<Registry, Error> {
        connect(&self.reference, self.plain_http)
    }
}

/// Prepares transfers to and from an address, with the credentials that `docker login` stored.
pub(crate) fn connect(reference: &str, plain_http: bool) -> Result<Registry, Error> {
    Registry::new(reference, &DockerConfig::from_env(), plain_http)
}

/// Push a bundle to an OCI registry
///
/// Uses the credentials that `docker login` stored. Skips files that the registry already has.
#[derive(Args)]
pub(crate) struct Push {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    address: Address,
}

impl Push {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let bundle = self.source.open_without_weights(store)?;
        let registry = self.address.registry()?;
        let digest = with_progress(|progress| registry.push(&bundle, progress))?;
        Ok(format!("{}@{digest}\n", self.address.reference).into())
    }
}

/// Pull a bundle from an OCI registry into the store
///
/// Uses the credentials that `docker login` stored. Resumes a pull that was interrupted, and skips files that the store
/// already has.
#[derive(Args)]
pub(crate) struct Pull {
    #[command(flatten)]
    address: Address,
    /// The bundle's name in the store [default: REFERENCE]
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,
}

impl Pull {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let registry = self.address.registry()?;
        let name = self.name.clone().map_or_else(|| self.address.reference.parse(), Ok)?;
        Ok(write_to_store(&store.open()?, &name, |to| with_progress(|progress| registry.pull(to, progress)))?
            .into())
    }
}
