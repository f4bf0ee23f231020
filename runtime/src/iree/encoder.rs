//! An encoder on IREE.

use mlxcel_artifacts::{
    Bundle,
    entry::{PAGE, ResultKind},
};

use super::{
    entry_point::{Cache, EntryPoint},
    loaded::LoadedModule,
    options::LoadOptions,
};
use crate::{
    encoder::Encoder,
    error::Error,
    model::SequenceRows,
    session::{Capabilities, check_append},
    weights::Weights,
};

/// An encoder on IREE. It keeps no state from one call to the next.
pub(super) struct IreeEncoder {
    capabilities: Capabilities,
    width: usize,
    /// Entry points, ascending by the rows of one sequence.
    entries: Vec<EntryPoint>,
    /// A cache without pools: texts attend to themselves.
    cache: Cache,
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
        let LoadedModule { info, entries, context, .. } = LoadedModule::new(bundle, weights, options)?;
        let capabilities = Capabilities {
            context,
            vocab: bundle.manifest().plan.vocab,
            prefill: entries.iter().map(|entry| entry.sizes().rows_of_a_sequence()).collect(),
            target: info.target,
            device: info.name,
            threads: info.threads,
            packed_at_load: info.packed_at_load,
        };
        Ok(Self { capabilities, width: embedding.width, entries, cache: Cache::none() })
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
        // Page 0 is for padding.
        let pages: Vec<u32> = (1..).take(tokens.len().div_ceil(PAGE)).collect();
        let rows = SequenceRows { tokens: tokens.to_vec(), start: 0, pages: vec![&pages], selected: vec![] };
        let mut results = entry.run(&[rows], &mut self.cache)?;
        let embedding = entry.take(ResultKind::Embedding, &mut results)?;
        let numbers = embedding.read_row::<f32>(0).map_err(Error::iree(|| "read the embedding".into()))?;
        if numbers.len() != self.width {
            let (found, expected) = (numbers.len(), self.width);
            return Err(Error::Unsupported(format!(
                "the embedding has {found} elements, expected {expected}"
            )));
        }
        Ok(numbers)
    }
}

/// Returns the index of the smallest `prefill` size that holds the tokens.
///
/// # Errors
/// [`check_append`] refuses the tokens.
fn size_for(capabilities: &Capabilities, tokens: &[u32]) -> Result<usize, Error> {
    check_append(capabilities, 0, tokens)?;
    // In a valid manifest the largest entry holds the context.
    Ok(capabilities.prefill.partition_point(|&size| size < tokens.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_runs_in_the_smallest_size_that_holds_it() {
        let capabilities =
            Capabilities { context: 100, vocab: 10, prefill: vec![8, 32, 128], ..Capabilities::default() };
        let size = |count: usize| size_for(&capabilities, &vec![1; count]).map_err(|error| error.to_string());
        for (count, expected) in [(1, 0), (8, 0), (9, 1), (32, 1), (33, 2), (100, 2)] {
            assert_eq!(size(count), Ok(expected), "{count}");
        }
        assert!(size(101).unwrap_err().starts_with("101 tokens, expected at most 100"));
        assert!(size(0).unwrap_err().starts_with("the prompt has no tokens, expected at least one"));
    }
}
