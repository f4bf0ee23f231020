//! Bundles of scripted models.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex},
};

use mlxcel_artifacts::{Digest, Quant};
use mlxcel_runtime::{
    EngineSettings, Error, TextFiles,
    engine::{EngineClient, EngineThread},
    scripted::ScriptedModel,
};
use mlxcel_serve::{Facts, LoadError, Loader, OpenedBundle, ServedModel, Signature, Task};

/// A bundle of a scripted model.
pub(crate) struct ScriptedBundle {
    /// The digest of its manifest.
    pub(crate) digest: Digest,
    /// Makes the model, on the engine's thread.
    pub(crate) model: Box<dyn FnOnce() -> Result<ScriptedModel, Error> + Send>,
    pub(crate) text: TextFiles,
}

/// Opens scripted bundles, and remembers the engine of the latest one that was loaded.
pub(crate) struct ScriptedLoader {
    open: Open,
    latest: Latest,
}

/// Makes a bundle of a path.
type Open = Box<dyn Fn(&Path) -> Result<ScriptedBundle, LoadError> + Send + Sync>;

pub(crate) type Latest = Arc<Mutex<Option<EngineClient>>>;

impl ScriptedLoader {
    pub(crate) fn new(
        open: impl Fn(&Path) -> Result<ScriptedBundle, LoadError> + Send + Sync + 'static,
    ) -> (Box<Self>, Latest) {
        let latest = Latest::default();
        (Box::new(Self { open: Box::new(open), latest: latest.clone() }), latest)
    }
}

impl fmt::Debug for ScriptedLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedLoader")
    }
}

impl Loader for ScriptedLoader {
    fn open(&self, bundle: &Path) -> Result<Box<dyn OpenedBundle>, LoadError> {
        Ok(Box::new(Opened { bundle: (self.open)(bundle)?, latest: self.latest.clone() }))
    }
}

struct Opened {
    bundle: ScriptedBundle,
    latest: Latest,
}

impl OpenedBundle for Opened {
    fn digest(&self) -> Digest {
        self.bundle.digest
    }

    fn load(self: Box<Self>, name: &str) -> Result<Arc<ServedModel>, LoadError> {
        let Self { bundle: ScriptedBundle { digest, model, text }, latest } = *self;
        let settings = EngineSettings { waiting: 8, ..EngineSettings::default() };
        let engine = EngineThread::start(model, settings)?;
        let client = engine.client();
        let facts = Facts {
            digest,
            context: client.limits().context,
            target: "script".into(),
            device: client.device().name.clone(),
            quantization: Quant::Q4,
            signature: Some(Signature { key: "0123456789ABCDEF".into(), verified: true }),
            task: Task::Generation,
        };
        *latest.lock().unwrap() = Some(client);
        Ok(ServedModel::generator(name.into(), facts, text, engine))
    }
}
