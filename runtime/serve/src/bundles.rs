//! Bundles on this machine, for the start and for reloads.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, mpsc},
};

use anyhow::{Context as _, Result, bail};
use bytesize::ByteSize;
use mlxcel_artifacts::{Bundle, Digest, Driver, Manifest, TargetArtifact, entry::Parameter, tensor_bytes};
use mlxcel_runtime::{
    CacheSize, CheckpointFiles, DeviceInfo, EncoderClient, EngineError, EngineSettings, Error, Request,
    StartedModel, TextFiles, Weights,
    engine::{EngineClient, EventKind},
    free_memory,
};
use mlxcel_serve::{Facts, LoadError, Loader, OpenedBundle, ServedModel, Signature};

use crate::{named::NamedBundle, note::note, options::Options};

/// Loads bundles as the options say.
#[derive(Debug)]
pub(crate) struct BundleLoader {
    options: Arc<Options>,
    /// For each name, the most memory that its cache shares. One bundle alone has all.
    shares: HashMap<String, u64>,
}

impl BundleLoader {
    /// Divides the memory among the bundles.
    pub(crate) fn new(options: Arc<Options>) -> Result<Self> {
        let shares = match options.bundles.len() {
            0 | 1 => HashMap::new(),
            _ => shares(&options)?,
        };
        Ok(Self { options, shares })
    }
}

impl Loader for BundleLoader {
    fn open(&self, bundle: &Path) -> Result<Box<dyn OpenedBundle>, LoadError> {
        let options = self.options.clone();
        let bundle = options.origin.open(bundle)?;
        let signature = Signature::new(options.origin.check(&bundle)?, bundle.signature_info()?);
        options.origin.note(&bundle)?;
        Ok(Box::new(Opened { options, bundle, signature, shares: self.shares.clone() }))
    }
}

/// A bundle that may run.
struct Opened {
    options: Arc<Options>,
    bundle: Bundle,
    signature: Option<Signature>,
    shares: HashMap<String, u64>,
}

impl OpenedBundle for Opened {
    fn digest(&self) -> Digest {
        self.bundle.digest()
    }

    fn load(self: Box<Self>, name: &str) -> Result<Arc<ServedModel>, LoadError> {
        Ok(self.load_and_step(name)?)
    }
}

impl Opened {
    /// Loads the bundle and runs a step.
    fn load_and_step(self, name: &str) -> Result<Arc<ServedModel>> {
        let Self { options, bundle, signature, shares } = self;
        let weights = Weights::choose(&bundle, options.weights.as_deref())?;
        if let Some(weights) = &weights {
            // The bundle's own weights were verified as it was opened.
            let is_vouched_for = options.weights.is_some() && options.receipt_key.is_some();
            let unused = check_weights(weights, &bundle.manifest().parameters, is_vouched_for)?;
            if let Some(first) = unused.first() {
                let (count, first) = (unused.len(), first.escape_debug());
                note(&format!("warning: the bundle does not use {count} of the weights, such as {first}"));
            }
        }
        let folder = options.weights.as_deref().filter(|path| path.is_dir());
        let files = CheckpointFiles::new(&bundle, folder);
        // Read before anything large is loaded.
        let text = TextFiles::read(&files)?;
        let load_options = options.load_options(shares.get(name).copied());
        let settings = EngineSettings { waiting: options.queue, ..EngineSettings::default() };
        let facts = |device: &DeviceInfo, context| Facts::new(&bundle, signature, device, context);
        match StartedModel::start(&bundle, weights, load_options, settings)? {
            StartedModel::Encoder(encoder) => {
                let client = encoder.client();
                embed(&client).with_context(|| format!("{name} cannot embed a text"))?;
                let facts = facts(client.device(), client.limits().context)?;
                Ok(ServedModel::embedder(name.to_owned(), facts, text.tokenizer, encoder))
            }
            StartedModel::Generator(engine) => {
                let client = engine.client();
                step(&client).with_context(|| format!("{name} cannot run a step"))?;
                let (context, whole) = (client.context(), client.limits().context);
                if context < whole {
                    note(&format!(
                        "{name}: the cache has room for {context} tokens of a context of {whole}\n\
                         hint: a larger --cache-size"
                    ));
                }
                let facts = facts(client.device(), context)?;
                Ok(ServedModel::generator(name.to_owned(), facts, text, engine))
            }
        }
    }
}

/// Checks that weights are those of the parameters. Returns the names of others.
///
/// A signed receipt vouches that a bundle gave an answer. So with `is_vouched_for` the weights have the digests that the bundle
/// states, and not its names and shapes alone.
fn check_weights(weights: &Weights, parameters: &[Parameter], is_vouched_for: bool) -> Result<Vec<String>> {
    let unused = weights.check(parameters)?;
    if is_vouched_for {
        weights.check_digests(parameters).context(
            "cannot sign receipts: they name the bundle, which was compiled with other weights\n\
             hint: leave out --receipt-key to serve these weights without signatures",
        )?;
    }
    Ok(unused)
}

/// Runs a step, so that a server that says that it is ready is.
fn step(client: &EngineClient) -> Result<(), Error> {
    let mut events = client.submit(Request { prompt: vec![0], max_tokens: 1, ..Request::default() })?;
    events.try_for_each(|event| match event {
        EventKind::Failed { error } => Err(error),
        _ => Ok(()),
    })
}

/// Embeds a text of one token, for the same reason.
fn embed(client: &EncoderClient) -> Result<(), Error> {
    let (sender, answer) = mpsc::channel();
    let _guard = client.try_embed_to(vec![vec![0]], Box::new(move |found| _ = sender.send(found)))?;
    answer.recv().unwrap_or_else(|_| Err(EngineError::Closed.into())).map(drop)
}

/// Divides the memory that weights leave by what caches would take.
fn shares(options: &Options) -> Result<HashMap<String, u64>> {
    let open = |named: &NamedBundle| Ok((named.name.clone(), options.origin.open(&named.bundle)?));
    let bundles: Vec<(String, Bundle)> = options.bundles.iter().map(open).collect::<Result<_>>()?;
    let Some(free) = free_memory() else { return Ok(HashMap::new()) };
    let weights = bundles.iter().map(|(_, bundle)| weight_bytes(bundle.manifest())).sum();
    let left = free.saturating_sub(weights);
    let is_local = |manifest: &Manifest| match options.device.driver() {
        Some(driver) => driver == Driver::Local,
        None => manifest.targets.values().all(|target| target.driver == Driver::Local),
    };
    let needs = bundles.iter().filter(|(_, bundle)| is_local(bundle.manifest()));
    let needs: Vec<(&String, u64)> =
        needs.map(|(name, bundle)| (name, context_bytes(bundle.manifest()))).collect();
    let needs = || needs.iter().filter(|(_, bytes)| *bytes > 0);
    if let Some(CacheSize::Bytes(bytes)) = options.cache_size {
        let (count, all) = (needs().count(), bytes.saturating_mul(needs().count() as u64));
        if all > left {
            bail!(
                "{count} caches of {} and {} of weights, expected at most the {} of free memory\n\
                 hint: give a smaller --cache-size, or fewer bundles",
                ByteSize(bytes),
                ByteSize(weights),
                ByteSize(free)
            );
        }
    }
    Ok(divide(left, needs()))
}

/// Divides memory in the ratio of needs.
fn divide<'a>(
    memory: u64,
    needs: impl Iterator<Item = &'a (&'a String, u64)> + Clone,
) -> HashMap<String, u64> {
    let all: u128 = needs.clone().map(|(_, bytes)| u128::from(*bytes)).sum();
    let share = |bytes: u64| u128::from(memory) * u128::from(bytes) / all.max(1);
    needs.map(|(name, bytes)| ((*name).clone(), u64::try_from(share(*bytes)).unwrap_or(memory))).collect()
}

/// Returns the bytes of weights that are mapped or packed when a bundle runs.
fn weight_bytes(manifest: &Manifest) -> u64 {
    let packed = |target: &TargetArtifact| Some(target.packing.as_ref()?.weights.as_ref()?.size);
    let packed = manifest.targets.values().filter_map(packed).max();
    packed.unwrap_or_else(|| {
        let bytes = manifest.parameters.iter().filter_map(|one| tensor_bytes(one.dtype, &one.shape));
        bytes.map(|bytes| bytes as u64).fold(0, u64::saturating_add)
    })
}

/// Returns the bytes of cache of a whole context; 0 for an encoder.
fn context_bytes(manifest: &Manifest) -> u64 {
    let Some(plan) = &manifest.plan else { return 0 };
    if plan.embedding.is_some() {
        return 0;
    }
    let of = |positions: usize, bytes: u64| bytes.saturating_mul(positions as u64);
    let windows = plan.windows.iter();
    let windows = windows.map(|window| of(window.positions.min(plan.context), window.position_bytes));
    windows.fold(of(plan.context, plan.position_bytes), u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use mlxcel_artifacts::report;
    use serde_json::json;

    use super::*;

    #[test]
    fn signed_receipts_are_of_the_weights_of_the_bundle() {
        let header = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[1; 8]].concat();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("finetune.safetensors");
        fs::write(&path, bytes).unwrap();
        let weights = Weights::open(&path).unwrap();
        let parameter = |source: Option<Digest>| -> Parameter {
            serde_json::from_value(json!({ "name": "a", "dtype": "F32", "shape": [2], "source": source }))
                .unwrap()
        };
        let check = |source, is_vouched_for| check_weights(&weights, &[parameter(source)], is_vouched_for);
        let (same, other) = (Digest::of(&[1; 8]), Digest::of(b"other"));
        // Without a key, other weights are served. A bundle without weights states no digest.
        for (source, is_vouched_for) in [(other, false), (same, true)] {
            assert!(check(Some(source), is_vouched_for).unwrap().is_empty());
        }
        assert!(check(None, true).unwrap().is_empty());
        let error = check(Some(other), true).unwrap_err();
        let report = report(error.as_ref());
        assert!(report.starts_with("error: cannot sign receipts: they name the bundle"), "{report}");
        assert!(report.contains(&format!("a: {same}, expected {other}")), "{report}");
        assert!(report.contains("hint: leave out --receipt-key"), "{report}");
    }

    #[test]
    fn memory_is_divided_by_need() {
        let (large, small) = ("large".to_owned(), "small".to_owned());
        let shares = divide(1000, [(&large, 30), (&small, 10)].iter());
        assert_eq!(shares, HashMap::from([(large, 750), (small, 250)]));
        assert_eq!(divide(1000, [].iter()), HashMap::new());
    }
}
