//! A session on IREE, whose calls follow the manifest and whose results stay on the device.

use std::time::Duration;

use mlxcel_artifacts::{
    Bundle,
    entry::{ResultKind, Role},
};

use super::{
    loaded::{EntryPoint, LoadedModule},
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
    /// Prefill entry points, ascending by size.
    prefill: Vec<EntryPoint>,
    /// Decode entry points, ascending by size.
    decode: Vec<EntryPoint>,
    /// Tokens in the cache.
    tokens: Vec<u32>,
    /// One past the last position written since the start, including padding.
    written: usize,
    /// Positions before `written` that the windows still hold; `None` if there are no windows.
    reach: Option<usize>,
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
        let LoadedModule { mut capabilities, entries, device, rewind: reach } =
            LoadedModule::new(bundle, weights, options)?;
        let is_prefill = |entry: &EntryPoint| matches!(entry.entry.role, Role::Prefill { .. });
        let (prefill, decode): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_prefill);
        let sizes = |entries: &[EntryPoint]| entries.iter().map(EntryPoint::size).collect();
        (capabilities.prefill, capabilities.decode) = (sizes(&prefill), sizes(&decode));
        let (tokens, written, logits, profile) = (Vec::new(), 0, None, None);
        Ok(Self { capabilities, prefill, decode, tokens, written, reach, logits, device, profile })
    }

    /// Appends the tokens of one call.
    fn append(
        &mut self,
        role: fn(&mut Self) -> &mut [EntryPoint],
        index: usize,
        tokens: &[u32],
    ) -> Result<u32, Error> {
        // Dropped first, so that this call can use the memory.
        self.logits = None;
        let (position, vocab) = (self.tokens.len(), self.capabilities.vocab);
        let entry = &mut role(self)[index];
        let writes = entry.tokens();
        let run = entry.run(tokens, position);
        let answer = run.and_then(|results| answer(entry, results, vocab));
        self.written = self.written.max(position + writes);
        let (next, logits) = answer?;
        if let Some(profile) = &mut self.profile {
            profile.flush().map_err(Error::iree(|| "read the profile".into()))?;
        }
        self.tokens.extend(tokens);
        self.logits = Some(logits);
        Ok(next)
    }
}

impl Session for IreeSession {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn position(&self) -> usize {
        self.tokens.len()
    }

    fn rewind(&mut self, position: usize) -> Result<(), Error> {
        check_rewind(self.tokens.len(), position)?;
        // Cache entries after the position are overwritten before they are read.
        let mut kept = std::mem::take(&mut self.tokens);
        kept.truncate(position);
        self.logits = None;
        if position == 0 {
            self.written = 0;
        }
        if self.reach.is_none_or(|reach| position + reach >= self.written) {
            self.tokens = kept;
            return Ok(());
        }
        // The windows have overwritten positions that are needed: compute them again.
        self.written = 0;
        self.prefill(&kept)?;
        self.logits = None;
        Ok(())
    }

    fn prefill(&mut self, tokens: &[u32]) -> Result<u32, Error> {
        check_append(&self.capabilities, self.tokens.len(), tokens)?;
        let (mut rest, mut next) = (tokens, 0);
        while !rest.is_empty() {
            let index = chunk(&self.capabilities.prefill, rest.len());
            let (head, tail) = rest.split_at(rest.len().min(self.capabilities.prefill[index]));
            next = self.append(|session| &mut session.prefill, index, head)?;
            rest = tail;
        }
        Ok(next)
    }

    fn decode_step(&mut self, token: u32) -> Result<u32, Error> {
        check_append(&self.capabilities, self.tokens.len(), &[token])?;
        // In a valid manifest the largest bucket holds the context.
        let index = self.capabilities.decode.partition_point(|&cache| cache <= self.tokens.len());
        self.append(|session| &mut session.decode, index, &[token])
    }

    fn logits(&mut self) -> Result<Vec<f32>, Error> {
        let logits = self.logits.as_ref().ok_or(Error::NoLogits)?;
        let values = logits.read::<f32>().map_err(Error::iree(|| "read the logits".into()))?;
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
fn answer(entry: &EntryPoint, results: Vec<Tensor>, vocab: usize) -> Result<(u32, Tensor), Error> {
    let name = &entry.entry.name;
    let mut results: Vec<_> = results.into_iter().map(Some).collect();
    let next = entry.take(ResultKind::NextToken, &mut results)?;
    let next = next.read::<i32>().map_err(Error::iree(|| format!("read from {name}")))?;
    let next = next.first().and_then(|&id| u32::try_from(id).ok()).filter(|&id| (id as usize) < vocab);
    let next =
        next.ok_or_else(|| Error::Unsupported(format!("{name} returns no token of the vocabulary")))?;
    Ok((next, entry.take(ResultKind::Logits, &mut results)?))
}

/// Chooses the bucket for the start of a prompt of `tokens`.
///
/// Returns the index of the smallest bucket that holds all tokens if they use more than half of it, or else of the
/// largest bucket that they fill.
fn chunk(buckets: &[usize], tokens: usize) -> usize {
    let holds = buckets.partition_point(|&bucket| bucket < tokens);
    match buckets.get(holds) {
        Some(&bucket) if holds == 0 || tokens > bucket / 2 => holds,
        _ => holds.saturating_sub(1),
    }
}

#[cfg(test)]
mod tests;
