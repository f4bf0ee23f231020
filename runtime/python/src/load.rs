//! Opening bundles by folder or name, as the programs do.

use std::path::{Path, PathBuf};

use mlxcel_artifacts::{Bundle, Error as BundleError, PublicKey, Store};
use mlxcel_runtime::{CacheSize, DeviceSpec, LoadOptions, OriginRules};
use pyo3::prelude::*;

use crate::{error, fork::check_process};

/// Where a bundle is, and what is required of it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Where {
    bundle: PathBuf,
    store: Option<PathBuf>,
    require_signature: Option<String>,
}

/// The device, and what is loaded on it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Device {
    pub(crate) device: String,
    pub(crate) threads: Option<usize>,
}

impl Device {
    /// Parses the device's name.
    pub(crate) fn spec(&self) -> PyResult<DeviceSpec> {
        self.device.parse().map_err(|error| error::of_any("RequestError", &error))
    }
}

/// Opens the store at `path`, or that of the environment. `None` without a home folder.
///
/// What opens a bundle does so first, or checks the process itself.
pub(crate) fn open_store(path: Option<&Path>) -> PyResult<Option<Store>> {
    check_process()?;
    match Store::from_env(path) {
        Err(BundleError::NoStore) => Ok(None),
        store => store.map(Some).map_err(error::of_bundle),
    }
}

/// Returns what is required of a bundle, and where it is looked for.
pub(crate) fn rules(py: Python<'_>, store: Option<&Path>, key: Option<&str>) -> PyResult<OriginRules> {
    let store = open_store(store)?;
    let require_signature = key.map(PublicKey::find).transpose().map_err(error::of_bundle)?;
    // A wheel's data lie above the package: how far, depends on how it was installed.
    let package: PathBuf = py.import("mlxcel")?.getattr("__file__")?.extract()?;
    let shipped =
        package.ancestors().map(|folder| folder.join("share/mlxcel")).find(|folder| folder.is_dir());
    Ok(OriginRules { store, shipped, require_signature })
}

/// Opens a bundle without its weights, checks the signature that is required, and warns of code of unknown origin.
pub(crate) fn open(py: Python<'_>, place: &Where) -> PyResult<Bundle> {
    let rules = rules(py, place.store.as_deref(), place.require_signature.as_deref())?;
    let opened = py.detach(|| {
        let bundle = rules.open(&place.bundle)?;
        rules.check(&bundle)?;
        let note = rules.note(&bundle)?;
        Ok((bundle, note))
    });
    let (bundle, note) = opened.map_err(error::of_bundle)?;
    if let Some(note) = note {
        let hint = "require_signature=KEY runs only bundles that are signed with the key";
        let category = py.import("mlxcel.errors")?.getattr("OriginWarning")?;
        py.import("warnings")?.call_method1("warn", (format!("{note}\nhint: {hint}"), category, 4))?;
    }
    Ok(bundle)
}

/// Returns the options to load a model with.
///
/// # Errors
/// The device or the size of the cache is none.
pub(crate) fn load_options(
    device: &Device,
    context: Option<usize>,
    cache_size: Option<&Bound<'_, PyAny>>,
) -> PyResult<LoadOptions> {
    let cache = match cache_size {
        None => CacheSize::default(),
        Some(size) => match size.extract::<u64>() {
            Ok(bytes) if bytes > 0 => CacheSize::Bytes(bytes),
            Ok(_) => "0".parse().map_err(|error| error::of_any("RequestError", &error))?,
            Err(_) => {
                let text: String = size.extract()?;
                text.parse().map_err(|error| error::of_any("RequestError", &error))?
            }
        },
    };
    Ok(LoadOptions {
        device: device.spec()?,
        threads: device.threads,
        context,
        cache,
        ..LoadOptions::default()
    })
}
