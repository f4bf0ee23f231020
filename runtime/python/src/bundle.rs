//! Bundles: opening, verifying, signing and moving them.

use std::{
    env,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
};

use mlxcel_artifacts::{
    Bundle, BundleWriter, Cancel, Destination, Differences, DockerConfig, Driver, Error, Machine, Manifest,
    Name, PublicKey, Registry, SecretKey, Store, Verdict, check_targets,
};
use pyo3::prelude::*;

use crate::{error, fork::check_process, load, wait};

/// A verdict: the target, whether it runs, the device, and reasons.
type Judgment = (String, &'static str, String, Vec<String>);

/// A bundle that was opened.
#[pyclass(frozen, module = "mlxcel._native")]
pub(crate) struct NativeBundle {
    bundle: Bundle,
    store: Option<PathBuf>,
}

impl NativeBundle {
    /// Opens the bundle again, with all of its files.
    fn verified(&self, py: Python<'_>) -> PyResult<Bundle> {
        let store = load::open_store(self.store.as_deref())?;
        let path = self.bundle.display_name();
        let path = Path::new(&path);
        py.detach(|| store.map_or_else(|| Bundle::open(path), |store| store.open(path)))
            .map_err(error::of_bundle)
    }
}

/// Transfers something to or from a registry, while other Python threads run.
///
/// # Errors
/// The transfer fails, or a signal's handler raises an exception meanwhile: KeyboardInterrupt for Ctrl-C.
fn transfer<T: Send>(
    py: Python<'_>,
    reference: &str,
    plain_http: bool,
    work: impl FnOnce(&Registry) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let cancel = Cancel::new();
    let (sender, receiver) = mpsc::channel();
    let ended = thread::scope(|scope| {
        let cancel = &cancel;
        let worker = scope.spawn(move || {
            let registry = Registry::new(reference, &DockerConfig::from_env(), plain_http);
            // Nobody receives it after an exception.
            _ = sender.send(registry.and_then(|registry| work(&registry.cancelled_by(cancel))));
        });
        let ended = wait::receive(py, receiver).inspect_err(|_| cancel.cancel());
        // Other Python threads run while this one waits for the thread to end.
        py.detach(|| worker.join()).unwrap_or_else(|panic| resume_unwind(panic));
        ended
    });
    ended?.map_err(error::of_bundle)
}

/// Checks which targets run on this machine, those of one driver or all.
fn judge(py: Python<'_>, manifest: &Manifest, driver: Option<&str>) -> PyResult<Vec<Judgment>> {
    let driver = driver.map(str::parse::<Driver>).transpose();
    let driver = driver.map_err(|problem| error::of_any("RequestError", &problem))?;
    let driver_files = env::var_os("VK_DRIVER_FILES").or_else(|| env::var_os("VK_ICD_FILENAMES"));
    let machine = py.detach(|| Machine::host_with_gpus(driver_files.as_deref()));
    let found = check_targets(manifest, &machine).into_iter();
    let found = found.filter(|found| driver.is_none_or(|driver| driver == found.artifact().driver));
    let judged = found.map(|found| {
        let verdict = match found.verdict {
            Verdict::Run => "run",
            Verdict::RunWithPacking => "run-with-packing",
            Verdict::Refuse => "refuse",
        };
        (found.target.to_owned(), verdict, found.device, found.reasons)
    });
    Ok(judged.collect())
}

/// Opens the store, which has to be there.
fn need_store(path: Option<&Path>) -> PyResult<Store> {
    check_process()?;
    Store::from_env(path).map_err(error::of_bundle)
}

/// Parses a name of the store.
fn name(text: &str) -> PyResult<Name> {
    text.parse().map_err(|error: mlxcel_artifacts::ParseNameError| error::of_bundle(error.into()))
}

#[pymethods]
impl NativeBundle {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, store: Option<PathBuf>) -> PyResult<Self> {
        let rules = load::rules(py, store.as_deref(), None)?;
        let bundle = py.detach(|| rules.open(&path)).map_err(error::of_bundle)?;
        Ok(Self { bundle, store })
    }

    /// Returns the folder or name.
    fn name(&self) -> String {
        self.bundle.display_name()
    }

    /// Returns the folder that the manifest lies in.
    fn path(&self) -> PathBuf {
        self.bundle.path().to_owned()
    }

    /// Returns the digest of the manifest.
    fn digest(&self) -> String {
        self.bundle.digest().to_string()
    }

    /// Returns the manifest as JSON.
    fn manifest(&self) -> PyResult<String> {
        let text = serde_json::to_string(self.bundle.manifest());
        text.map_err(|problem| error::of_any("BundleError", &problem))
    }

    /// Describes the bundle in lines, as `mlxcel-bundle inspect` does.
    fn describe(&self) -> String {
        mlxcel_artifacts::describe(&self.bundle)
    }

    /// Verifies all files, and the signature if a key is given. Returns the key and the comment of a signature.
    fn verify(&self, py: Python<'_>, key: Option<&str>) -> PyResult<Option<(String, String)>> {
        let key = key.map(PublicKey::find).transpose().map_err(error::of_bundle)?;
        let bundle = self.verified(py)?;
        let signed = match key {
            Some(key) => bundle.verify_signature(&key).map(Some),
            None => bundle.signature_info(),
        };
        Ok(signed.map_err(error::of_bundle)?.map(|signed| (signed.key, signed.comment)))
    }

    /// Checks which targets run on this machine, those of one driver or all.
    fn check(&self, py: Python<'_>, driver: Option<&str>) -> PyResult<Vec<Judgment>> {
        judge(py, self.bundle.manifest(), driver)
    }

    /// Checks which targets of a bundle in a registry run on this machine. Downloads its manifest alone.
    #[staticmethod]
    fn check_remote(
        py: Python<'_>,
        reference: &str,
        driver: Option<&str>,
        plain_http: bool,
    ) -> PyResult<Vec<Judgment>> {
        judge(py, &transfer(py, reference, plain_http, Registry::manifest)?, driver)
    }

    /// Signs the bundle. Returns the id of the key.
    fn sign(
        &self,
        py: Python<'_>,
        key: PathBuf,
        password: Option<String>,
        comment: &str,
    ) -> PyResult<String> {
        let ask = || {
            let missing = "the key is encrypted, expected its password\nhint: give password=";
            password.ok_or_else(|| std::io::Error::other(missing))
        };
        let bundle = self.verified(py)?;
        py.detach(|| SecretKey::open(&key, ask).and_then(|key| bundle.sign(&key, comment)))
            .map(|signed| signed.key)
            .map_err(error::of_bundle)
    }

    /// Returns each field that differs from another bundle, with a text that says how.
    fn diff(&self, other: &Self) -> PyResult<Vec<(String, String)>> {
        let differences = Differences::between(&self.bundle, &other.bundle).map_err(error::of_bundle)?;
        Ok(differences.iter().map(|(field, text)| (field.to_owned(), text.to_owned())).collect())
    }

    /// Pushes the bundle to a registry. Returns the digest that the reference has then.
    fn push(&self, py: Python<'_>, reference: &str, plain_http: bool) -> PyResult<String> {
        check_process()?;
        transfer(py, reference, plain_http, |registry| registry.push(&self.bundle, &mut |_| ()))
    }

    /// Pulls a bundle into the store, under a name or its reference.
    #[staticmethod]
    fn pull(
        py: Python<'_>,
        reference: &str,
        named: Option<&str>,
        store: Option<PathBuf>,
        plain_http: bool,
    ) -> PyResult<Self> {
        let (opened, named) = (need_store(store.as_deref())?, name(named.unwrap_or(reference))?);
        let bundle = transfer(py, reference, plain_http, |registry| {
            opened.write(&named, |to| registry.pull(to, &mut |_| ()))?;
            opened.open_without_weights(Path::new(&named.to_string()))
        })?;
        Ok(Self { bundle, store })
    }

    /// Returns a reference with the digest that it stands for now.
    #[staticmethod]
    fn resolve(py: Python<'_>, reference: &str, plain_http: bool) -> PyResult<String> {
        transfer(py, reference, plain_http, Registry::resolve)
    }

    /// Copies the bundle to a folder, or into the store under a name.
    fn copy(&self, py: Python<'_>, folder: Option<PathBuf>, named: Option<&str>) -> PyResult<Self> {
        // Copies into a folder verify files too, and open no store.
        check_process()?;
        let named = named.map(name).transpose()?;
        let store = match &named {
            Some(_) => Some(need_store(self.store.as_deref())?),
            None => None,
        };
        let copy = || match (&store, &named, &folder) {
            (Some(store), Some(named), _) => {
                store.write(named, |to| self.bundle.copy_to(Box::new(to)))?;
                store.open_without_weights(Path::new(&named.to_string()))
            }
            (_, _, folder) => {
                let to = BundleWriter::create(folder.as_deref().unwrap_or(Path::new("")))?;
                self.bundle.copy_to(Box::new(to) as Box<dyn Destination>)
            }
        };
        let bundle = py.detach(copy).map_err(error::of_bundle)?;
        Ok(Self { bundle, store: self.store.clone() })
    }
}
