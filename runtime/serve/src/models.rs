//! The models of a server, which can be exchanged while it runs.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use mlxcel_artifacts::Digest;

use crate::{
    model::ServedModel,
    reload::{LoadError, Reload, ReloadError, Reloaded},
};

/// Opens the bundles of a server, at its start and later.
pub trait Loader: fmt::Debug + Send + Sync {
    /// Opens a bundle, a folder or a name in the store, and checks that its code may run. Runs nothing of it.
    ///
    /// # Errors
    /// There is no such bundle, or its code may not run.
    fn open(&self, bundle: &Path) -> Result<Box<dyn OpenedBundle>, LoadError>;
}

/// A bundle that was opened.
pub trait OpenedBundle {
    /// Returns the digest of its manifest.
    fn digest(&self) -> Digest;

    /// Loads it, to be served under a name.
    ///
    /// # Errors
    /// It does not run on this machine, or has no room.
    fn load(self: Box<Self>, name: &str) -> Result<Arc<ServedModel>, LoadError>;
}

/// The models of a server. Clones share them.
#[derive(Debug, Clone)]
pub struct Models(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    loader: Box<dyn Loader>,
    /// In the order in which they were added.
    served: RwLock<Vec<Served>>,
    /// The names of models that are being reloaded.
    reloading: Mutex<HashSet<String>>,
    /// Held while a bundle is loaded, so that each sees the memory that the one before has left.
    turn: Mutex<()>,
}

/// A model, and where it came from.
#[derive(Debug)]
struct Served {
    model: Arc<ServedModel>,
    bundle: PathBuf,
}

impl Models {
    /// Serves nothing so far.
    #[must_use]
    pub fn new(loader: Box<dyn Loader>) -> Self {
        Self(Arc::new(Inner {
            loader,
            served: RwLock::default(),
            reloading: Mutex::default(),
            turn: Mutex::default(),
        }))
    }

    /// Loads a bundle and serves it under a name, which no other has.
    ///
    /// # Errors
    /// The bundle cannot be served.
    pub fn add(&self, name: &str, bundle: &Path) -> Result<Arc<ServedModel>, LoadError> {
        let model = self.0.loader.open(bundle)?.load(name)?;
        let served = Served { model: model.clone(), bundle: bundle.to_owned() };
        self.0.served.write().unwrap_or_else(PoisonError::into_inner).push(served);
        Ok(model)
    }

    /// Returns the models that are served now.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<ServedModel>> {
        let served = self.0.served.read().unwrap_or_else(PoisonError::into_inner);
        served.iter().map(|one| one.model.clone()).collect()
    }

    /// Returns the model with a name. The empty name is that of the only one.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<ServedModel>, ReloadError> {
        let all = self.all();
        let found = match (name, all.as_slice()) {
            ("", [only]) => Some(only),
            _ => all.iter().find(|model| model.name() == name),
        };
        let not_served = || {
            let served = all.iter().map(|model| model.name().to_owned()).collect();
            match name {
                "" => ReloadError::NotNamed { served },
                _ => ReloadError::NotServed { name: name.to_owned(), served },
            }
        };
        found.cloned().ok_or_else(not_served)
    }

    /// Loads a model's bundle again and puts it in the place of the old one, unless that has the same digest and works. Waits.
    ///
    /// Answers that run end on the old model, which is dropped with the last of them.
    ///
    /// # Errors
    /// The model is not served or is being reloaded, or the bundle cannot be served. Then the old one goes on.
    pub fn reload(&self, name: &str, order: Reload) -> Result<Reloaded, ReloadError> {
        let old = self.find(name)?;
        let name = old.name();
        let _reloading = Reloading::begin(&self.0, name)?;
        let _turn = lock(&self.0.turn);
        let Reload { bundle, digest: expected } = order;
        let bundle = bundle.or_else(|| self.bundle(name)).unwrap_or_default();
        let failed = |source| ReloadError::Load { bundle: bundle.clone(), source };
        let opened = self.0.loader.open(&bundle).map_err(failed)?;
        let digest = opened.digest();
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(ReloadError::OtherDigest { found: digest, expected });
        }
        let is_loaded = digest != old.digest() || !old.is_ready();
        let model = if is_loaded { opened.load(name).map_err(failed)? } else { old.clone() };
        if is_loaded {
            model.warm();
        }
        let mut served = self.0.served.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(served) = served.iter_mut().find(|served| served.model.name() == name) {
            *served = Served { model, bundle };
        }
        Ok(Reloaded { previous: old.digest(), digest, is_loaded })
    }

    fn bundle(&self, name: &str) -> Option<PathBuf> {
        let served = self.0.served.read().unwrap_or_else(PoisonError::into_inner);
        served.iter().find(|served| served.model.name() == name).map(|served| served.bundle.clone())
    }
}

/// Marks a model as being reloaded while it lives.
struct Reloading<'a> {
    names: &'a Mutex<HashSet<String>>,
    name: String,
}

impl<'a> Reloading<'a> {
    fn begin(inner: &'a Inner, name: &str) -> Result<Self, ReloadError> {
        let (names, name) = (&inner.reloading, name.to_owned());
        if lock(names).insert(name.clone()) { Ok(Self { names, name }) } else { Err(ReloadError::Busy(name)) }
    }
}

impl Drop for Reloading<'_> {
    fn drop(&mut self) {
        lock(self.names).remove(&self.name);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
