//! A session on IREE, whose calls follow the manifest and whose results stay on the device.

use std::time::Duration;

use mlxcel_artifacts::{
    Bundle,
    entry::{CallSizes, PAGE, ResultKind},
};

use super::{
    entry_point::{Cache, EntryPoint, SequenceRows},
    loaded::LoadedModule,
    options::LoadOptions,
};
use crate::{
    error::Error,
    ffi::{Device, DispatchCount, Profile, Tensor},
    session::{Capabilities, Dispatch, Session, check_append, check_rewind},
    weights::Weights,
};

/// A session on IREE: a module with one sequence in its cache.
pub(super) struct IreeSession {
    capabilities: Capabilities,
    /// Ascending by the rows of one sequence.
    entries: Vec<EntryPoint>,
    cache: Cache,
    /// The sequence's pages in each pool.
    pages: Vec<Vec<u32>>,
    /// Tokens in the cache.
    position: usize,
    /// Logits after the last token.
    logits: Option<Tensor>,
    device: Device,
    profile: Option<Profile>,
}

impl IreeSession {
    pub(super) fn load(
        bundle: &Bundle,
        weights: Option<Weights>,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        if bundle.manifest().plan.embedding.is_some() {
            return Err(Error::OnlyEmbedding { model: bundle.manifest().model.clone() });
        }
        let LoadedModule { mut capabilities, entries, device, cache } =
            LoadedModule::new(bundle, weights, options)?;
        let rows = entries.iter().map(|entry| entry.sizes().rows_of_a_sequence());
        capabilities.prefill = rows.filter(|&rows| rows > 1).collect();
        if capabilities.prefill.is_empty() {
            capabilities.prefill = vec![1];
        }
        capabilities.decode = vec![capabilities.context];
        // Page 0 is for padding.
        let pages: Vec<u32> = (1..).take(capabilities.context.div_ceil(PAGE)).collect();
        let pages = vec![pages; cache.pools()];
        Ok(Self { capabilities, entries, cache, pages, position: 0, logits: None, device, profile: None })
    }

    /// Appends the tokens of one call.
    fn append(&mut self, index: usize, tokens: &[u32]) -> Result<u32, Error> {
        // Dropped first, so that this call can use the memory.
        self.logits = None;
        let entry = &mut self.entries[index];
        let rows = SequenceRows {
            tokens,
            position: self.position,
            pages: &self.pages,
            selected: tokens.len() - 1..tokens.len(),
        };
        let mut results = entry.run(&[rows], &mut self.cache)?;
        let (next, logits) = answer(entry, &mut results, self.capabilities.vocab)?;
        if let Some(profile) = &mut self.profile {
            profile.flush().map_err(Error::iree(|| "read the profile".into()))?;
        }
        self.position += tokens.len();
        self.logits = Some(logits);
        Ok(next)
    }
}

impl Session for IreeSession {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn position(&self) -> usize {
        self.position
    }

    fn rewind(&mut self, position: usize) -> Result<(), Error> {
        check_rewind(self.position, position)?;
        // What lies behind the position is overwritten before it is read.
        self.position = position;
        self.logits = None;
        Ok(())
    }

    fn prefill(&mut self, tokens: &[u32]) -> Result<u32, Error> {
        check_append(&self.capabilities, self.position, tokens)?;
        let (mut rest, mut next) = (tokens, 0);
        while !rest.is_empty() {
            let sizes: Vec<_> = self.entries.iter().map(EntryPoint::sizes).collect();
            let index = entry_for(&sizes, rest.len());
            let (head, tail) = rest.split_at(rest.len().min(sizes[index].rows_of_a_sequence()));
            next = self.append(index, head)?;
            rest = tail;
        }
        Ok(next)
    }

    fn decode_step(&mut self, token: u32) -> Result<u32, Error> {
        check_append(&self.capabilities, self.position, &[token])?;
        self.append(0, &[token])
    }

    fn logits(&mut self) -> Result<Vec<f32>, Error> {
        let logits = self.logits.as_ref().ok_or(Error::NoLogits)?;
        let values = logits.read_row::<f32>(0).map_err(Error::iree(|| "read the logits".into()))?;
        if values.len() != self.capabilities.vocab {
            let (found, expected) = (values.len(), self.capabilities.vocab);
            return Err(Error::Unsupported(format!("it returns {found} logits, expected {expected}")));
        }
        Ok(values)
    }

    fn start_profile(&mut self) -> Result<(), Error> {
        // Drivers of the CPU record host times. Other drivers record the device's clock, which is not read here.
        let started = Profile::begin(&self.device);
        self.profile =
            Some(started.map_err(|_| Error::NoProfile { device: self.capabilities.device.clone() })?);
        Ok(())
    }

    fn end_profile(&mut self) -> Result<Vec<Dispatch>, Error> {
        let Some(profile) = self.profile.take() else { return Ok(Vec::new()) };
        let counts = profile.end().map_err(Error::iree(|| "end the profile".into()))?;
        let dispatch = |DispatchCount { function, calls, span_ns }| Dispatch {
            name: function,
            calls,
            time: Duration::from_nanos(span_ns),
        };
        Ok(counts.into_iter().map(dispatch).collect())
    }
}

/// Returns the next token and the logits of a call.
fn answer(entry: &EntryPoint, results: &mut [Option<Tensor>], vocab: usize) -> Result<(u32, Tensor), Error> {
    let name = entry.name();
    let next = entry.take(ResultKind::NextToken, results)?;
    let next = next.read::<i32>().map_err(Error::iree(|| format!("read from {name}")))?;
    let next = next.first().and_then(|&id| u32::try_from(id).ok()).filter(|&id| (id as usize) < vocab);
    let next =
        next.ok_or_else(|| Error::Unsupported(format!("{name} returns no token of the vocabulary")))?;
    Ok((next, entry.take(ResultKind::Logits, results)?))
}

/// Returns the index of the entry for the start of a prompt of `tokens`.
///
/// Calls of any length skip their padding: the smallest that holds all tokens. Uniform ones compute it: the smallest that
/// holds all tokens if they use more than half of it, or else the largest that they fill.
fn entry_for(sizes: &[CallSizes], tokens: usize) -> usize {
    let rows = |sizes: &CallSizes| sizes.rows_of_a_sequence();
    let fitting = sizes.iter().position(|sizes| rows(sizes) >= tokens && !sizes.uniform);
    if let Some(index) = fitting {
        return index;
    }
    let largest = |most: usize| {
        let of = |index: &usize| rows(&sizes[*index]);
        (0..sizes.len()).filter(|index| of(index) <= most).max_by_key(of).unwrap_or(0)
    };
    let holding = (0..sizes.len()).filter(|&index| rows(&sizes[index]) >= tokens);
    match holding.min_by_key(|&index| rows(&sizes[index])) {
        Some(index) if tokens > rows(&sizes[index]) / 2 => index,
        _ => largest(tokens),
    }
}

#[cfg(test)]
mod tests;
