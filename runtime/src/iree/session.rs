//! A session on IREE: it fills the calls that the manifest describes and keeps the results on the device.

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

/// A module on a device, with one sequence in its cache.
pub(super) struct IreeSession {
    capabilities: Capabilities,
    /// Ascending by size.
    prefill: Vec<EntryPoint>,
    /// Ascending by size.
    decode: Vec<EntryPoint>,
    /// What the cache holds.
    tokens: Vec<u32>,
    /// One past the last position that was written since the start, padding included.
    written: usize,
    /// How far back from there windows are still whole.
    reach: Option<usize>,
    /// After the last token appended.
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

    /// Appends what one call takes.
    fn append(
        &mut self,
        role: fn(&mut Self) -> &mut [EntryPoint],
        index: usize,
        tokens: &[u32],
    ) -> Result<u32, Error> {
        // First, so that its memory serves this call.
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
        // What lies behind the position in the cache is overwritten before it is read.
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
        // What windows saw there is overwritten.
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
        // A manifest is valid only if its largest bucket holds the context.
        let index = self.capabilities.decode.partition_point(|&cache| cache <= self.tokens.len());
        self.append(|session| &mut session.decode, index, &[token])
    }

    fn logits(&mut self) -> Result<Vec<f32>, Error> {
        let logits = self.logits.as_ref().ok_or(Error::NoLogits)?;
        let values = logits.read::<f32>().map_err(Error::iree(|| "read the logits".into()))?;
        if values.len() != self.capabilities.vocab {
            let (found, expected) = (values.len(), self.capabilities.vocab);
            return Err(Error::Unsupported(format!("it gives {found} logits, expected {expected}")));
        }
        Ok(values)
    }

    fn start_profile(&mut self) -> Result<(), Error> {
        // The drivers of the CPU time what they run; others would give the device's own clocks.
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

/// The next token and the logits among the results of a call.
fn answer(entry: &EntryPoint, results: Vec<Tensor>, vocab: usize) -> Result<(u32, Tensor), Error> {
    let name = &entry.entry.name;
    let mut results: Vec<_> = results.into_iter().map(Some).collect();
    let next = entry.take(ResultKind::NextToken, &mut results)?;
    let next = next.read::<i32>().map_err(Error::iree(|| format!("read from {name}")))?;
    let next = next.first().and_then(|&id| u32::try_from(id).ok()).filter(|&id| (id as usize) < vocab);
    let next = next.ok_or_else(|| Error::Unsupported(format!("{name} gives no token of the vocabulary")))?;
    Ok((next, entry.take(ResultKind::Logits, &mut results)?))
}

/// The bucket for the head of a prompt of `tokens`: the smallest that holds all of it if more than half of it would be
/// used, else the largest that the tokens fill.
fn chunk(buckets: &[usize], tokens: usize) -> usize {
    let holds = buckets.partition_point(|&bucket| bucket < tokens);
    match buckets.get(holds) {
        Some(&bucket) if holds == 0 || tokens > bucket / 2 => holds,
        _ => holds.saturating_sub(1),
    }
}

#[cfg(test)]
mod tests;
