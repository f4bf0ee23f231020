//! A bundle's module on a device, and its entry points.

use std::rc::Rc;

use mlxcel_artifacts::{
    Bundle,
    entry::{ArgumentKind, Entry, MODULE_NAME, PARAMETER_SCOPE, ResultKind},
};
use safetensors::Dtype;

use super::{
    options::LoadOptions,
    packing,
    select::{self, OpenedDevice, ThisMachine},
    vmfb,
};
use crate::{
    device::DeviceSpec,
    error::Error,
    ffi::{self, Call, Device, Module, Tensor},
    session::Capabilities,
    weights::Weights,
};

/// A module on a device, with its weights.
pub(super) struct LoadedModule {
    /// Capabilities without the sizes of entry points, which differ for sessions and encoders.
    pub(super) capabilities: Capabilities,
    pub(super) entries: Vec<EntryPoint>,
    pub(super) device: Device,
    /// The manifest's [`rewind`](mlxcel_artifacts::TargetArtifact::rewind).
    pub(super) rewind: Option<usize>,
}

impl LoadedModule {
    /// Opens a device and loads the module with its weights; see [`load`](super::load).
    pub(super) fn new(
        bundle: &Bundle,
        weights: Option<Weights>,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let manifest = bundle.manifest();
        let plan = &manifest.plan;
        if plan.batch != 1 {
            return Err(Error::Unsupported(format!("it has a batch of {}, expected 1", plan.batch)));
        }
        let context = options.context.unwrap_or(plan.context);
        if context == 0 || context > plan.context {
            return Err(Error::ContextSize { asked: context, context: plan.context });
        }
        let devices = ThisMachine { threads: options.threads };
        let opened = select::open(&devices, &select::machine(), manifest, options.device)?;

        let program = vmfb::read(bundle, &opened.target.vmfb, opened.target_name)?;
        let (weights, packed_at_load) =
            packing::parameters(bundle, (opened.target_name, opened.target), &opened.device, weights)?;
        let parameters = opened.target.packing.as_ref().map(packing::results);
        let parameters = parameters.as_ref().unwrap_or(&manifest.parameters);
        let parameters: Vec<&str> = parameters.iter().map(|p| p.name.as_str()).collect();
        let module = Module::load(&opened.device, program, Rc::new(weights), PARAMETER_SCOPE, &parameters)
            .map_err(Error::iree(|| "load the module".into()))?;

        let entries = opened.target.entries.iter().map(|entry| EntryPoint::new(&module, entry));
        let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(|entry| entry.entry.role.size());
        let capabilities = Capabilities {
            context,
            vocab: plan.vocab,
            prefill: Vec::new(),
            decode: Vec::new(),
            target: opened.target_name.to_owned(),
            device: description(&opened),
            threads: opened.device.threads(),
            packed_at_load,
        };
        let rewind = opened.target.rewind;
        Ok(Self { capabilities, entries, device: opened.device, rewind })
    }
}

/// An entry point of the module.
pub(super) struct EntryPoint {
    pub(super) entry: Entry,
    call: Call,
    /// Values of the arguments, in their order.
    values: Vec<Vec<i32>>,
}

impl EntryPoint {
    /// Finds the function of `entry` and allocates its arguments.
    fn new(module: &Module, entry: &Entry) -> Result<Self, Error> {
        let name = &entry.name;
        let inputs: Vec<(Dtype, &[usize])> =
            entry.arguments.iter().map(|argument| (argument.dtype, argument.shape.as_slice())).collect();
        let call = Call::new(module, &format!("{MODULE_NAME}.{name}"), &inputs)
            .map_err(Error::iree(|| format!("prepare {name}")))?;
        let values = entry.arguments.iter().map(|a| vec![0; a.shape.iter().product()]).collect();
        Ok(Self { entry: entry.clone(), call, values })
    }

    /// Returns the size of the entry point, see [`Role::size`](mlxcel_artifacts::entry::Role::size).
    pub(super) fn size(&self) -> usize {
        self.entry.role.size()
    }

    /// Returns the number of tokens that a call takes, including padding.
    pub(super) fn tokens(&self) -> usize {
        let mut arguments = self.entry.arguments.iter().zip(&self.values);
        arguments.find(|(argument, _)| argument.kind == ArgumentKind::Tokens).map_or(0, |(_, v)| v.len())
    }

    /// Runs the function on one row, whose first token is at `position`.
    pub(super) fn run(&mut self, tokens: &[u32], position: usize) -> Result<Vec<Tensor>, Error> {
        let written = self.tokens();
        // In a valid manifest the vocabulary and the context fit an i32.
        for (argument, values) in self.entry.arguments.iter().zip(&mut self.values) {
            match argument.kind {
                ArgumentKind::Tokens => {
                    // The rest is padding, for which any id will do.
                    values.fill(0);
                    values.iter_mut().zip(tokens).for_each(|(value, &token)| *value = token as i32);
                }
                ArgumentKind::Positions => values.fill(position as i32),
                ArgumentKind::Lengths => values.fill(tokens.len() as i32),
                // Includes the padding, whose keys and values are written to the cache.
                ArgumentKind::End => values.fill((position + written) as i32),
            }
        }
        let inputs: Vec<&[u8]> = self.values.iter().map(|values| ffi::bytes(values)).collect();
        self.call.invoke(&inputs).map_err(Error::iree(|| format!("run {}", self.entry.name)))
    }

    /// Takes the result of this kind out of `results`.
    pub(super) fn take(&self, kind: ResultKind, results: &mut [Option<Tensor>]) -> Result<Tensor, Error> {
        // A valid manifest lists the kind. A module that differs from its manifest may return fewer results.
        let index = self.entry.results.iter().position(|result| result.kind == kind);
        let found = index.and_then(|index| results.get_mut(index)).and_then(Option::take);
        found.ok_or_else(|| {
            let (name, found) = (&self.entry.name, results.len());
            Error::Unsupported(format!("{name} returns {found} results, expected {kind} among them"))
        })
    }
}

/// Describes a device for messages.
fn description(opened: &OpenedDevice<'_, Device>) -> String {
    let OpenedDevice { device, spec, name, target_name: _, target: _ } = opened;
    match (spec, name) {
        (DeviceSpec::LocalTask, _) => match device.threads() {
            1 => "local-task, 1 thread".into(),
            threads => format!("local-task, {threads} threads"),
        },
        (_, Some(name)) => format!("{spec}, {name}"),
        (_, None) => spec.to_string(),
    }
}
