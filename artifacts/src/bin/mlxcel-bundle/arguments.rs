//! Arguments that several subcommands have.

use std::path::{Path, PathBuf};

use clap::Args;
use mlxcel_artifacts::{Bundle, BundleWriter, Destination, Error, Name, Store, StoreWriter};

/// The store that every command uses.
#[derive(Args)]
pub(crate) struct StoreArguments {
    /// The store's folder [default: $MLXCEL_STORE, else $XDG_CACHE_HOME/mlxcel, else ~/.cache/mlxcel]
    #[arg(long, value_name = "FOLDER", global = true)]
    store: Option<PathBuf>,
}

impl StoreArguments {
    /// Opens the store.
    pub(crate) fn open(&self) -> Result<Store, Error> {
        Store::from_env(self.store.as_deref())
    }

    /// Opens the store, if the environment has a folder for it: bundles in folders need none.
    fn find(&self) -> Result<Option<Store>, Error> {
        match self.open() {
            Err(Error::NoStore) => Ok(None),
            store => store.map(Some),
        }
    }

    /// Opens a bundle without reading its weights.
    pub(crate) fn open_without_weights(&self, bundle: &Path) -> Result<Bundle, Error> {
        match self.find()? {
            Some(store) => store.open_without_weights(bundle),
            None => Bundle::open_without_weights(bundle),
        }
    }
}

/// The bundle that a command reads.
#[derive(Args)]
pub(crate) struct Source {
    /// The bundle: a folder, or a name in the store
    #[arg(value_name = "BUNDLE")]
    pub(crate) bundle: PathBuf,
}

impl Source {
    /// Opens the bundle and verifies all of it.
    pub(crate) fn open(&self, store: &StoreArguments) -> Result<Bundle, Error> {
        match store.find()? {
            Some(store) => store.open(&self.bundle),
            None => Bundle::open(&self.bundle),
        }
    }

    /// Opens the bundle without reading its weights.
    pub(crate) fn open_without_weights(&self, store: &StoreArguments) -> Result<Bundle, Error> {
        store.open_without_weights(&self.bundle)
    }
}

/// Where a command writes a bundle.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// Write the bundle to this folder, replacing a bundle that is there
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Add the bundle to the store under this name
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,
}

impl Target {
    /// Writes a bundle with `work`. Returns the line to print: the bundle's folder, or its name.
    pub(crate) fn write(
        &self,
        store: &StoreArguments,
        work: impl FnOnce(Box<dyn Destination>) -> Result<Bundle, Error>,
    ) -> Result<String, Error> {
        match (&self.name, &self.out) {
            (Some(name), _) => write_to_store(&store.open()?, name, |to| work(Box::new(to))),
            // clap requires one of the two.
            (None, out) => {
                let to = BundleWriter::create(out.as_deref().unwrap_or(Path::new("")))?;
                Ok(format!("{}\n", work(Box::new(to))?.path().display()))
            }
        }
    }
}

/// Adds a bundle to the store with `work`, and prints a note if the name meant another bundle. Returns the line to print.
pub(crate) fn write_to_store(
    store: &Store,
    name: &Name,
    work: impl FnOnce(StoreWriter) -> Result<Bundle, Error>,
) -> Result<String, Error> {
    if let Some(replaced) = store.write(name, work)? {
        eprintln!("note: {replaced}");
    }
    Ok(format!("{name}\n"))
}
