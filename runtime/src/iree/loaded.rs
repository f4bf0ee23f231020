//! A bundle's module on a device, and its entry points.

use std::rc::Rc;

use mlxcel_artifacts::{
    Bundle, FORMAT_OF_PAGES,
    entry::{Entry, PAGE, PARAMETER_SCOPE, Role},
};

use super::{
    entry_point::{Cache, EntryPoint},
    options::LoadOptions,
    packing,
    select::{self, OpenedDevice, ThisMachine},
    vmfb,
};
use crate::{
    device::DeviceSpec,
    error::Error,
    ffi::{Device, Module},
    session::Capabilities,
    weights::Weights,
};

/// A module on a device, with its weights.
pub(super) struct LoadedModule {
    /// Capabilities without the sizes of entry points, which differ for sessions and encoders.
    pub(super) capabilities: Capabilities,
    /// Steps or calls of an encoder, ascending by the rows of one sequence.
    pub(super) entries: Vec<EntryPoint>,
    pub(super) device: Device,
    pub(super) cache: Cache,
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
        if manifest.format < FORMAT_OF_PAGES {
            return Err(Error::OldFormat { found: manifest.format, expected: FORMAT_OF_PAGES });
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

        let takes_rows = |entry: &&Entry| !matches!(entry.role, Role::Best { .. });
        let entries = opened.target.entries.iter().filter(takes_rows);
        let entries = entries.map(|entry| EntryPoint::new(&module, entry));
        let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(|entry| (entry.sizes().rows_of_a_sequence(), entry.sizes().rows));
        let pools = opened.target.serving.as_ref().map_or(&[][..], |serving| &serving.pools);
        let cache =
            Cache::reserve(&module, pools, 1 + context.div_ceil(PAGE), !entries_skip_padding(&entries))?;
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
        Ok(Self { capabilities, entries, device: opened.device, cache })
    }
}

/// Returns whether calls read no more of a page than was written. Others read whole pages, whose rest must be numbers.
fn entries_skip_padding(entries: &[EntryPoint]) -> bool {
    entries.iter().all(|entry| !entry.sizes().uniform)
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
