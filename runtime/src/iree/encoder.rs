//! An encoder on IREE.

use mlxcel_artifacts::{Bundle, signature::OutcomeKind};

use super::{
    LoadOptions, failed,
    loaded::{EntryPoint, Loaded},
};
use crate::{Capabilities, Encoder, Error, encoder::size_for, weights::Weights};

/// A module on a device that keeps nothing from one call to the next.
pub(super) struct IreeEncoder {
    capabilities: Capabilities,
    width: usize,
    /// Ascending by size.
    entries: Vec<EntryPoint>,
}

impl IreeEncoder {
    pub(super) fn load(
        bundle: &Bundle,
        weights: Option<Weights>,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let Some(embedding) = &bundle.manifest().plan.embedding else {
            return Err(Error::NoEmbedding { model: bundle.manifest().model.clone() });
        };
        let Loaded { mut capabilities, entries, .. } = Loaded::new(bundle, weights, options)?;
        capabilities.prefill = entries.iter().map(EntryPoint::size).collect();
        Ok(Self { capabilities, width: embedding.width, entries })
    }
}

impl Encoder for IreeEncoder {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn width(&self) -> usize {
        self.width
    }

    fn embed(&mut self, tokens: &[u32]) -> Result<Vec<f32>, Error> {
        let entry = &mut self.entries[size_for(&self.capabilities, tokens)?];
        let mut results: Vec<_> = entry.run(tokens, 0)?.into_iter().map(Some).collect();
        let embedding = entry.take(OutcomeKind::Embedding, &mut results)?;
        let numbers = embedding.read::<f32>().map_err(failed(|| "read the embedding".into()))?;
        if numbers.len() != self.width {
            let (found, expected) = (numbers.len(), self.width);
            return Err(Error::Unsupported(format!("it gives {found} numbers, expected {expected}")));
        }
        Ok(numbers)
    }
}
