//! Arguments that several subcommands have.

use std::path::{Path, PathBuf};

use clap::Args;
use mlxcel_artifacts::{Bundle, BundleWriter, Destination, Error, Name, Store, StoreWriter};

/// The bundle that a command reads.
#[derive(Args)]
pub(crate) struct Source {
    /// The bundle: a folder, or a name in the store
    #[arg(value_name = "BUNDLE")]
    pub(crate) bundle: PathBuf,
}

impl Source {
    /// Opens the bundle and verifies all of it.
    pub(crate) fn open(&self) -> Result<Bundle, Error> {
        Bundle::open(&self.bundle)
    }

    /// Opens the bundle without reading its weights.
    pub(crate) fn open_without_weights(&self) -> Result<Bundle, Error> {
        open_without_weights(&self.bundle)
    }
}

/// Opens the bundle that is called `bundle`, a folder or a name in the store, without reading its weights.
pub(crate) fn open_without_weights(bundle: &Path) -> Result<Bundle, Error> {
    Bundle::open_without_weights(bundle)
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
        work: impl FnOnce(Box<dyn Destination>) -> Result<Bundle, Error>,
    ) -> Result<String, Error> {
        match (&self.name, &self.out) {
            (Some(name), _) => write_to_store(name, |to| work(Box::new(to))),
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
    name: &Name,
    work: impl FnOnce(StoreWriter) -> Result<Bundle, Error>,
) -> Result<String, Error> {
    if let Some(replaced) = Store::open(None)?.write(name, work)? {
        eprintln!("note: {replaced}");
    }
    Ok(format!("{name}\n"))
}
