//! An encoder on IREE.

mod calls;

use mlxcel_artifacts::{
    Bundle,
    entry::{PAGE, ResultKind},
};

use super::{
    entry_point::{Cache, EntryPoint},
    loaded::LoadedModule,
    lost,
    options::LoadOptions,
};
use crate::{
    device::DeviceInfo,
    encoder::contract::{Encoder, EncoderLimits, check_texts},
    error::Error,
    ffi::Device,
    model::SequenceRows,
    weights::Weights,
};

use self::calls::{PlannedCall, plan_calls};

/// An encoder on IREE. It keeps no state from one call to the next.
pub(super) struct IreeEncoder {
    limits: EncoderLimits,
    info: DeviceInfo,
    /// Entry points, ascending by the rows of one sequence.
    entries: Vec<EntryPoint>,
    /// A cache without pools: texts attend to themselves.
    cache: Cache,
    device: Device,
}

impl IreeEncoder {
    pub(super) fn load(
        bundle: &Bundle,
        weights: Option<Weights>,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let spec = bundle.manifest().model_spec()?;
        let Some(embedding) = &spec.embedding else {
            return Err(Error::NoEmbedding { model: bundle.manifest().model.clone() });
        };
        let LoadedModule { info, entries, context, device, .. } =
            LoadedModule::new(bundle, weights, options)?;
        let limits = EncoderLimits {
            context,
            vocab: spec.vocab,
            width: embedding.width,
            rows: entries.iter().map(|entry| entry.sizes().rows_of_a_sequence()).collect(),
        };
        Ok(Self { limits, info, entries, cache: Cache::none(), device })
    }
}

impl Encoder for IreeEncoder {
    fn limits(&self) -> &EncoderLimits {
        &self.limits
    }

    fn device(&self) -> &DeviceInfo {
        &self.info
    }

    fn embed(&mut self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>, Error> {
        check_texts(&self.limits, texts)?;
        let lengths: Vec<usize> = texts.iter().map(|tokens| tokens.len()).collect();
        let sizes: Vec<_> = self.entries.iter().map(EntryPoint::sizes).collect();
        let mut embeddings = vec![Vec::new(); texts.len()];
        for PlannedCall { entry, texts: of_call } in plan_calls(&lengths, &sizes) {
            let tokens: Vec<&[u32]> = of_call.iter().map(|&text| texts[text]).collect();
            let found = lost::named(self.call(entry, &tokens), &self.info)?;
            for (text, embedding) in of_call.into_iter().zip(found.chunks(self.limits.width)) {
                embeddings[text] = embedding.to_vec();
            }
        }
        Ok(embeddings)
    }
}

impl IreeEncoder {
    /// Computes the embeddings of texts that fit an entry point, `[texts, width]`; more rows may follow.
    fn call(&mut self, entry: usize, texts: &[&[u32]]) -> Result<Vec<f32>, Error> {
        self.device.check().map_err(Error::iree(|| "begin a call".into()))?;
        let entry = &mut self.entries[entry];
        let pages = pages(texts);
        let rows = texts.iter().zip(&pages);
        let rows = rows.map(|(&tokens, pages)| SequenceRows {
            tokens: tokens.to_vec(),
            start: 0,
            pages: vec![pages],
            selected: vec![],
        });
        let mut results = entry.run(&rows.collect::<Vec<_>>(), &mut self.cache)?;
        let embedding = entry.function().take(ResultKind::Embedding, &mut results)?;
        let numbers = embedding.read::<f32>().map_err(Error::iree(|| "read the embeddings".into()))?;
        let (found, expected) = (numbers.len(), entry.sizes().sequences * self.limits.width);
        if found != expected {
            let name = &entry.function().entry().name;
            return Err(Error::Unsupported(format!(
                "the embeddings of {name} have {found} elements, expected {expected}"
            )));
        }
        Ok(numbers)
    }
}

/// Returns the pages of each text, for the one pool that a call has. Page 0 is for padding.
fn pages(texts: &[&[u32]]) -> Vec<Vec<u32>> {
    let mut next = 1..;
    texts.iter().map(|tokens| next.by_ref().take(tokens.len().div_ceil(PAGE)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_share_no_page() {
        let [short, long] = [&[1; 64][..], &[1; 65]];
        assert_eq!(pages(&[long, short, short]), [vec![1, 2], vec![3], vec![4]]);
    }
}
