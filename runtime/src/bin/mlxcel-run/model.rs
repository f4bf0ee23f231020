//! The model of a bundle: its weights, and the session that runs it.

use anyhow::Result;
use mlxcel_artifacts::Bundle;
use mlxcel_runtime::{Capabilities, Session, Weights, load};

use crate::{options::Options, render, stdio::note};

/// The checkpoint's weights; `None` where the bundle carries packed ones and no others were asked for.
pub(crate) fn open_weights(options: &Options, bundle: &Bundle) -> Result<Option<Weights>> {
    Ok(match &options.weights {
        Some(path) => Some(Weights::open(path)?),
        None if bundle.is_packed() => None,
        None => Some(Weights::from_bundle(bundle)?),
    })
}

pub(crate) fn open_session(
    options: &Options,
    bundle: &Bundle,
    weights: Option<Weights>,
) -> Result<Box<dyn Session>> {
    check_weights(bundle, weights.as_ref())?;
    options.origin.note(bundle)?;
    let session = load(bundle, weights, &options.load_options())?;
    note_packing(options, bundle, session.capabilities());
    Ok(session)
}

/// Whether these are the weights that the bundle needs; says which of them it does not.
pub(crate) fn check_weights(bundle: &Bundle, weights: Option<&Weights>) -> Result<()> {
    let unused = weights.map(|weights| weights.check(&bundle.manifest().parameters)).transpose()?;
    if let Some(unused) = unused.filter(|unused| !unused.is_empty()) {
        note(&render::unused(&unused));
    }
    Ok(())
}

/// Says that this start packed the weights, if it did.
pub(crate) fn note_packing(options: &Options, bundle: &Bundle, capabilities: &Capabilities) {
    if capabilities.packed_at_load {
        note(&render::packed_at_load(bundle, options.weights.as_deref()));
    }
}
