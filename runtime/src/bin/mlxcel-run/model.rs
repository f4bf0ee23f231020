//! The weights of a bundle, and the engine that runs it.

use anyhow::Result;
use mlxcel_artifacts::Bundle;
use mlxcel_runtime::{Engine, EngineSettings, LoadOptions, ModelRunner, Weights, load};

use crate::{options::Options, render, stdio::note};

/// Opens the weights of --weights or of the bundle; `None` if the bundle's packed weights are used.
pub(crate) fn open_weights(options: &Options, bundle: &Bundle) -> Result<Option<Weights>> {
    Ok(Weights::choose(bundle, options.weights.as_deref())?)
}

/// Loads the bundle after checking its weights.
pub(crate) fn open_engine(
    options: &Options,
    bundle: &Bundle,
    weights: Option<Weights>,
) -> Result<Engine<Box<dyn ModelRunner>>> {
    open_engine_with(options, bundle, weights, &options.load_options())
}

/// Loads the bundle with other options after checking its weights.
pub(crate) fn open_engine_with(
    options: &Options,
    bundle: &Bundle,
    weights: Option<Weights>,
    load_options: &LoadOptions,
) -> Result<Engine<Box<dyn ModelRunner>>> {
    check_weights(bundle, weights.as_ref())?;
    options.origin.note(bundle)?;
    let span = options.timeline.span("load");
    let model = load(bundle, weights, load_options)?;
    drop(span);
    note_packing(options, bundle, model.device().packed_at_load);
    Ok(Engine::new(model, EngineSettings::default())?)
}

/// Checks that the weights are those of the bundle; warns of tensors that it does not use.
pub(crate) fn check_weights(bundle: &Bundle, weights: Option<&Weights>) -> Result<()> {
    let unused = weights.map(|weights| weights.check(&bundle.manifest().parameters)).transpose()?;
    if let Some(unused) = unused.filter(|unused| !unused.is_empty()) {
        note(&render::unused_tensors(&unused));
    }
    Ok(())
}

/// Notes on stderr that this start packed the weights, if it did.
pub(crate) fn note_packing(options: &Options, bundle: &Bundle, packed_at_load: bool) {
    if packed_at_load {
        note(&render::packed_at_load(bundle, options.weights.as_deref()));
    }
}
