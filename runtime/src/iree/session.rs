//! A session on IREE: it fills the calls that the manifest describes and keeps the results on the device.

use std::time::Duration;

use mlxcel_artifacts::{
    Bundle, IREE_VERSION,
    signature::{ArgumentKind, Entry, MODULE_NAME, OutcomeKind, PARAMETER_SCOPE, Role},
};
use safetensors::Dtype;

use super::{
    LoadOptions,
    device::{self, Opened, ThisMachine},
    failed, packing,
};
use crate::{
    Dispatch, Error,
    device::DeviceSpec,
    ffi::{self, Call, Count, Device, Module, Profile, Tensor},
    session::{Capabilities, Session, check_append, check_rewind},
    weights::Weights,
};

const _: () = assert!(
    same(IREE_VERSION.as_bytes(), env!("MLXCEL_IREE_VERSION").as_bytes()),
    "the iree source is of another version than the bundles of this workspace: see IREE_VERSION in mlxcel-artifacts"
);

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

/// A function of the module.
struct EntryPoint {
    name: String,
    /// Tokens of a prefill, cache positions of a step.
    size: usize,
    call: Call,
    arguments: Vec<(ArgumentKind, Vec<i32>)>,
    /// Places among the results.
    next_token: usize,
    logits: usize,
}

impl IreeSession {
    pub(super) fn load(
        bundle: &Bundle,
        weights: Option<Weights>,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let manifest = bundle.manifest();
        let plan = &manifest.plan;
        if plan.batch != 1 {
            return Err(Error::Unsupported(format!("it has {} rows a call, expected 1", plan.batch)));
        }
        let context = options.context.unwrap_or(plan.context);
        if context == 0 || context > plan.context {
            return Err(Error::Context { asked: context, context: plan.context });
        }
        let devices = ThisMachine { threads: options.threads };
        let opened = device::open(&devices, &device::machine(), manifest, options.device)?;

        let vmfb = bundle.blob_path(&opened.target.vmfb);
        let program = ffi::map(&vmfb).map_err(Error::read(vmfb))?;
        let (weights, packed_at_load) =
            packing::parameters(bundle, (opened.target_name, opened.target), &opened.device, weights)?;
        let parameters = opened.target.packing.as_ref().map(packing::results);
        let parameters = parameters.as_ref().unwrap_or(&manifest.parameters);
        let parameters: Vec<&str> = parameters.iter().map(|p| p.name.as_str()).collect();
        let module = Module::load(&opened.device, program, weights, PARAMETER_SCOPE, &parameters)
            .map_err(failed(|| "load the module".into()))?;

        let (prefill, decode) = entry_points(&module, &opened.target.entries)?;
        let sizes = |entries: &[EntryPoint]| entries.iter().map(|entry| entry.size).collect();
        let capabilities = Capabilities {
            context,
            vocab: plan.vocab,
            prefill: sizes(&prefill),
            decode: sizes(&decode),
            target: opened.target_name.to_owned(),
            device: description(&opened),
            threads: opened.device.threads(),
            packed_at_load,
        };
        let device = opened.device;
        let reach = opened.target.rewind;
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
        let run = entry.run(tokens, position, vocab);
        self.written = self.written.max(position + writes);
        let (next, logits) = run?;
        if let Some(profile) = &mut self.profile {
            profile.flush().map_err(failed(|| "read the profile".into()))?;
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
        let values = logits.read::<f32>().map_err(failed(|| "read the logits".into()))?;
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
        let counts = profile.end().map_err(failed(|| "end the profile".into()))?;
        let dispatch = |Count { function, calls, span_ns }| Dispatch {
            name: function,
            calls,
            time: Duration::from_nanos(span_ns),
        };
        Ok(counts.into_iter().map(dispatch).collect())
    }
}

impl EntryPoint {
    fn new(module: &Module, entry: &Entry) -> Result<Self, Error> {
        let name = &entry.name;
        let inputs: Vec<(Dtype, &[usize])> =
            entry.arguments.iter().map(|argument| (argument.dtype, argument.shape.as_slice())).collect();
        let call = Call::new(module, &format!("{MODULE_NAME}.{name}"), &inputs)
            .map_err(failed(|| format!("prepare {name}")))?;
        let arguments = entry.arguments.iter().map(|a| (a.kind, vec![0; a.shape.iter().product()])).collect();
        let size = match entry.role {
            Role::Prefill { tokens } => tokens,
            Role::Decode { cache } => cache,
        };
        // A valid manifest has both; a place that does not exist is an error when it is read.
        let place =
            |kind| entry.results.iter().position(|outcome| outcome.kind == kind).unwrap_or(usize::MAX);
        let (next_token, logits) = (place(OutcomeKind::NextToken), place(OutcomeKind::Logits));
        Ok(Self { name: name.clone(), size, call, arguments, next_token, logits })
    }

    /// How many positions a call writes, padding included.
    fn tokens(&self) -> usize {
        let tokens = self.arguments.iter().find(|(kind, _)| *kind == ArgumentKind::Tokens);
        tokens.map_or(0, |(_, values)| values.len())
    }

    /// Runs it on the one row; gives the next token and the logits.
    fn run(&mut self, tokens: &[u32], position: usize, vocab: usize) -> Result<(u32, Tensor), Error> {
        // A manifest is valid only if the vocabulary and the context fit an i32.
        for (kind, values) in &mut self.arguments {
            match kind {
                ArgumentKind::Tokens => {
                    // What is behind the tokens is padding; any id will do.
                    values.fill(0);
                    values.iter_mut().zip(tokens).for_each(|(value, &token)| *value = token as i32);
                }
                ArgumentKind::Positions => values.fill(position as i32),
                ArgumentKind::Lengths => values.fill(tokens.len() as i32),
                // The padding too: its keys and values are written.
                ArgumentKind::End => values.fill((position + self.size) as i32),
            }
        }
        let inputs: Vec<&[u8]> = self.arguments.iter().map(|(_, values)| ffi::bytes(values)).collect();
        let mut results = self.call.invoke(&inputs).map_err(failed(|| format!("run {}", self.name)))?;
        if results.len() <= self.next_token.max(self.logits) {
            let (found, name) = (results.len(), &self.name);
            return Err(Error::Unsupported(format!(
                "{name} gives {found} results, expected a token and logits"
            )));
        }
        let next =
            results[self.next_token].read::<i32>().map_err(failed(|| format!("read from {}", self.name)))?;
        let next = next.first().and_then(|&id| u32::try_from(id).ok()).filter(|&id| (id as usize) < vocab);
        let next = next
            .ok_or_else(|| Error::Unsupported(format!("{} gives no token of the vocabulary", self.name)))?;
        Ok((next, results.swap_remove(self.logits)))
    }
}

/// The functions of the module, ascending by size.
fn entry_points(module: &Module, entries: &[Entry]) -> Result<(Vec<EntryPoint>, Vec<EntryPoint>), Error> {
    let (mut prefill, mut decode) = (Vec::new(), Vec::new());
    for entry in entries {
        let list = match entry.role {
            Role::Prefill { .. } => &mut prefill,
            Role::Decode { .. } => &mut decode,
        };
        list.push(EntryPoint::new(module, entry)?);
    }
    prefill.sort_by_key(|entry: &EntryPoint| entry.size);
    decode.sort_by_key(|entry: &EntryPoint| entry.size);
    Ok((prefill, decode))
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

/// What to tell people of a device.
fn description(opened: &Opened<'_, Device>) -> String {
    let Opened { device, spec, name, target_name: _, target: _ } = opened;
    match (spec, name) {
        (DeviceSpec::LocalTask, _) => match device.threads() {
            1 => "local-task, 1 thread".into(),
            threads => format!("local-task, {threads} threads"),
        },
        (_, Some(name)) => format!("{spec}, {name}"),
        (_, None) => spec.to_string(),
    }
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

#[cfg(test)]
mod tests;
