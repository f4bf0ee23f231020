//! A bundle's module on a device, and its entry points.

use std::rc::Rc;

use mlxcel_artifacts::{
    Bundle, Driver, Serving, TargetArtifact,
    entry::{Entry, PAGE, PARAMETER_SCOPE, Role},
};

use super::{
    best::BestEntry,
    entry_point::EntryPoint,
    options::LoadOptions,
    packing,
    select::{self, DeviceChoice, OpenedDevice, ThisMachine},
    vmfb,
};
use crate::{
    device::{DeviceInfo, DeviceSpec},
    error::Error,
    ffi::{Device, Module},
    weights::Weights,
};

/// A module on a device, with its weights.
pub(super) struct LoadedModule {
    pub(super) module: Module,
    pub(super) info: DeviceInfo,
    /// Steps or calls of an encoder, ascending by the rows of one sequence.
    pub(super) entries: Vec<EntryPoint>,
    /// Entries that find the best tokens of logits.
    pub(super) bests: Vec<BestEntry>,
    pub(super) device: Device,
    pub(super) driver: Driver,
    /// The cache that the entries take; encoders have none.
    pub(super) serving: Serving,
    /// The longest sequence, in tokens.
    pub(super) context: usize,
    /// The bytes of the weights, mapped or copied.
    pub(super) weight_bytes: u64,
    /// The bytes of memory that a GPU had left before the weights, if its driver says.
    pub(super) gpu_bytes: Option<u64>,
}

/// A module on a device, with its weights, of which nothing was called yet.
pub(crate) struct OpenedModule<'m> {
    pub(crate) module: Module,
    pub(crate) info: DeviceInfo,
    pub(crate) device: Device,
    pub(crate) target: &'m TargetArtifact,
    /// The bytes of the weights, mapped or copied.
    pub(crate) weight_bytes: u64,
    /// The bytes of memory that a GPU had left before the weights, if its driver says.
    pub(crate) gpu_bytes: Option<u64>,
}

impl<'m> OpenedModule<'m> {
    /// Opens the device that was asked for and loads the bundle's module for it.
    pub(crate) fn new(
        bundle: &'m Bundle,
        weights: Option<Weights>,
        choice: &DeviceChoice,
    ) -> Result<Self, Error> {
        let manifest = bundle.manifest();
        let trace = &choice.trace;
        let span = trace.span("open the device");
        let devices = ThisMachine { threads: choice.threads, trace: trace.clone() };
        let opened = select::open(&devices, &select::machine(), manifest, choice)?;
        trace.name_device(&description(&opened));
        drop(span);

        let span = trace.span("read the program and its weights");
        let program = vmfb::read(bundle, &opened.target.vmfb, opened.target_name)?;
        let (weights, packed_at_load) =
            packing::parameters(bundle, (opened.target_name, opened.target), &opened.device, weights)?;
        let weight_bytes = weights.files().iter().map(|file| file.len() as u64).sum();
        let parameters = opened.target.packing.as_ref().map(packing::results);
        let parameters = parameters.as_ref().unwrap_or(&manifest.parameters);
        let parameters: Vec<&str> = parameters.iter().map(|p| p.name.as_str()).collect();
        drop(span);
        let span = trace.span("load the module");
        let module = Module::load(&opened.device, program, Rc::new(weights), PARAMETER_SCOPE, &parameters)
            .map_err(Error::iree(|| "load the module".into()))?;
        drop(span);
        let info = DeviceInfo {
            target: opened.target_name.to_owned(),
            name: description(&opened),
            threads: opened.device.threads(),
            packed_at_load,
        };
        let OpenedDevice { device, target, free_bytes: gpu_bytes, .. } = opened;
        Ok(Self { module, info, device, target, weight_bytes, gpu_bytes })
    }
}

impl LoadedModule {
    /// Opens a device and loads the module with its weights; see [`load`](super::load).
    pub(super) fn new(
        bundle: &Bundle,
        weights: Option<Weights>,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let manifest = bundle.manifest();
        let plan = manifest.model_spec()?;
        if let Some(expected) = manifest.newer_format_needed() {
            return Err(Error::OldFormat { found: manifest.format, expected });
        }
        let context = options.context.unwrap_or(plan.context);
        if context == 0 || context > plan.context {
            return Err(Error::ContextSize { asked: context, context: plan.context });
        }
        let OpenedModule { module, info, device, target, weight_bytes, gpu_bytes } =
            OpenedModule::new(bundle, weights, &options.device_choice())?;
        let takes_rows = |entry: &&Entry| !matches!(entry.role, Role::Best { .. });
        let entries = target.entries.iter().filter(takes_rows);
        let entries = entries.map(|entry| EntryPoint::new(&module, entry));
        let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(|entry| (entry.sizes().rows_of_a_sequence(), entry.sizes().rows));
        let bests = target.entries.iter().map(|entry| BestEntry::new(&module, entry));
        let bests = bests.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
        let nothing = || Serving { page: PAGE, exact: false, pools: Vec::new() };
        let serving = target.serving.clone().unwrap_or_else(nothing);
        let driver = target.driver;
        Ok(Self { module, info, entries, bests, device, driver, serving, context, weight_bytes, gpu_bytes })
    }
}

/// Describes a device for messages.
fn description(opened: &OpenedDevice<'_, Device>) -> String {
    let OpenedDevice { device, spec, name, .. } = opened;
    match (spec, name) {
        (DeviceSpec::LocalTask, _) => match device.threads() {
            1 => "local-task, 1 thread".into(),
            threads => format!("local-task, {threads} threads"),
        },
        (_, Some(name)) => format!("{spec}, {name}"),
        (_, None) => spec.to_string(),
    }
}
