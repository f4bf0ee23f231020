//! Selects the device that a bundle runs on, and the target for it.

use std::collections::BTreeSet;

use bytesize::ByteSize;
use mlxcel_artifacts::{
    DeviceClass, Driver, Gpu, Machine, Manifest, Place, TargetArtifact, Verdict, best_target,
    check_iree_version, check_targets_at, least_gpu_bytes, nvidia_free_bytes,
};

use crate::{
    device::DeviceSpec,
    error::{Cause, Error},
    ffi,
    trace::Trace,
};

/// An open device, and the target that runs on it.
pub(super) struct OpenedDevice<'m, D> {
    pub(super) target_name: &'m str,
    pub(super) target: &'m TargetArtifact,
    pub(super) device: D,
    pub(super) spec: DeviceSpec,
    /// The device's name, if it is certain which device the driver opened.
    pub(super) name: Option<String>,
    /// The bytes of memory that a GPU had left before, if its driver says.
    pub(super) free_bytes: Option<u64>,
}

/// The device to open, and how.
#[derive(Debug, Clone)]
pub(crate) struct DeviceChoice {
    /// The device that was asked for.
    pub(crate) asked: DeviceSpec,
    /// Threads of local-task.
    pub(crate) threads: Option<usize>,
    /// The device of the CPU that [`DeviceSpec::Auto`] takes.
    pub(crate) cpu: DeviceSpec,
    /// Where loading and the device are recorded.
    pub(crate) trace: Trace,
}

/// The devices of a machine.
pub(super) trait Devices {
    type Device;

    /// Lists a driver's devices by index. The first call for a driver initializes it, which takes time.
    fn list(&self, driver: Driver) -> Result<Vec<Gpu>, Cause>;

    /// Opens a device.
    fn open(&self, spec: DeviceSpec) -> Result<Self::Device, Cause>;

    /// Returns the memory that a device has left which was just opened, in bytes, if its driver says.
    fn free_bytes(&self, device: &Self::Device) -> Option<u64>;
}

/// The devices of this machine.
pub(super) struct ThisMachine {
    /// Threads of local-task.
    pub(super) threads: Option<usize>,
    /// Where the device that is opened is recorded.
    pub(super) trace: Trace,
}

impl Devices for ThisMachine {
    type Device = ffi::Device;

    fn list(&self, driver: Driver) -> Result<Vec<Gpu>, Cause> {
        let found = ffi::devices(driver.name())?;
        // CUDA tells what memory is free in a context only, which takes time and memory itself: a device that is opened has one.
        let uuids: Vec<_> = found.iter().map(|device| device.path.as_str()).collect();
        let free = if driver == Driver::Cuda { nvidia_free_bytes(&uuids) } else { vec![None; uuids.len()] };
        let gpu = |(device, free_bytes): (ffi::FoundDevice, _)| Gpu {
            driver,
            name: device.name,
            compute_capability: device.compute_capability,
            cuda: device.cuda,
            memory_bytes: device.memory_bytes,
            free_bytes,
        };
        Ok(found.into_iter().zip(free).map(gpu).collect())
    }

    fn open(&self, spec: DeviceSpec) -> Result<ffi::Device, Cause> {
        Ok(ffi::Device::create(spec.name(), spec.index(), self.threads, &self.trace)?)
    }

    fn free_bytes(&self, device: &ffi::Device) -> Option<u64> {
        device.free_memory()
    }
}

/// Detects this machine, and requests the use of AMX if it has it.
pub(super) fn machine() -> Machine {
    let mut machine = Machine::host();
    if machine.cpu_features.contains("amx-tile") && !ffi::request_amx() {
        machine.cpu_features.retain(|feature| !feature.starts_with("amx-"));
    }
    machine
}

/// Opens the device requested, or for [`DeviceSpec::Auto`] the best one that the bundle has a target for.
pub(super) fn open<'m, D: Devices>(
    devices: &D,
    machine: &Machine,
    manifest: &'m Manifest,
    choice: &DeviceChoice,
) -> Result<OpenedDevice<'m, D::Device>, Error> {
    check_iree_version(manifest)?;
    match choice.asked.driver() {
        Some(driver) => open_named(devices, machine, manifest, choice.asked, driver),
        None => open_best(devices, machine, manifest, choice.cpu),
    }
}

/// Opens the device that was named, if a target runs on it.
fn open_named<'m, D: Devices>(
    devices: &D,
    machine: &Machine,
    manifest: &'m Manifest,
    spec: DeviceSpec,
    driver: Driver,
) -> Result<OpenedDevice<'m, D::Device>, Error> {
    if manifest.targets.values().all(|target| target.driver != driver) {
        let found = manifest.targets.iter().map(|(name, target)| format!("{name} ({})", target.driver));
        return Err(Error::NoTargetFor {
            device: spec.to_string(),
            driver,
            found: found.collect::<Vec<_>>().join(", "),
        });
    }
    let gpu = if driver == Driver::Local { None } else { gpu(devices, driver, spec) };
    let unknown = Gpu::named(driver, spec.to_string());
    let place =
        if driver == Driver::Local { Place::Cpu } else { Place::Gpu(gpu.as_ref().unwrap_or(&unknown)) };
    let (target_name, target) = match fitting(machine, manifest, place) {
        Fit::Target(name, target) => (name, target),
        Fit::None(reasons) => {
            return Err(Error::NoTarget { place: format!("on {spec}"), reasons, hint: RECOMPILE.into() });
        }
    };
    let free_bytes = gpu.as_ref().and_then(|gpu| gpu.free_bytes);
    check_memory(manifest, target, free_bytes, spec)?;
    let device = devices.open(spec).map_err(|source| {
        let has_cpu = matches!(fitting(machine, manifest, Place::Cpu), Fit::Target(..));
        let hint = device_hint(spec, driver, devices.list(driver), has_cpu);
        Error::Device { device: spec.to_string(), hint, source }
    })?;
    let free_bytes = free_bytes.or_else(|| devices.free_bytes(&device));
    check_memory(manifest, target, free_bytes, spec)?;
    Ok(OpenedDevice { target_name, target, device, spec, name: gpu.map(|gpu| gpu.name), free_bytes })
}

/// Refuses a device that has too little memory left, if its driver says so.
fn check_memory(
    manifest: &Manifest,
    target: &TargetArtifact,
    free_bytes: Option<u64>,
    spec: DeviceSpec,
) -> Result<(), Error> {
    let Some(shortage) = shortage(manifest, target, free_bytes) else { return Ok(()) };
    let hint = format!(
        "{FREE_MEMORY}, name another device with --device, or compile the bundle with fewer bits (--quant)"
    );
    Err(Error::Device { device: spec.to_string(), hint, source: shortage.into() })
}

/// Returns what a device has too little memory left for, if its driver says so.
fn shortage(manifest: &Manifest, target: &TargetArtifact, free_bytes: Option<u64>) -> Option<String> {
    let [weights, cache] = least_gpu_bytes(manifest, target);
    let free = free_bytes.filter(|&free| free < weights.saturating_add(cache))?;
    let [free, weights, cache] = [free, weights, cache].map(ByteSize);
    let cache = if cache.0 > 0 { format!(" and {cache} for the smallest cache") } else { String::new() };
    Some(format!("{free} of its memory are free, expected {weights} for weights{cache}"))
}

/// Returns the GPU that the driver opens for `spec`, if it has it.
fn gpu<D: Devices>(devices: &D, driver: Driver, spec: DeviceSpec) -> Option<Gpu> {
    let gpus = devices.list(driver).ok()?;
    // The first one is the default of every driver.
    gpus.into_iter().nth(spec.index().unwrap_or(0) as usize)
}

/// Opens the first device in the order of [`DeviceClass`]. A driver is asked only when its class is next.
fn open_best<'m, D: Devices>(
    devices: &D,
    machine: &Machine,
    manifest: &'m Manifest,
    cpu: DeviceSpec,
) -> Result<OpenedDevice<'m, D::Device>, Error> {
    let mut search =
        Search { devices, machine, manifest, reasons: without_driver(manifest), remedies: vec![] };
    let (mut asked, mut candidates) = (BTreeSet::new(), Vec::new());
    for device_class in DeviceClass::ALL {
        let driver = device_class.driver();
        let spec: fn(Option<u32>) -> DeviceSpec = match driver {
            Driver::Cuda => DeviceSpec::Cuda,
            Driver::Vulkan => DeviceSpec::Vulkan,
            Driver::Hip | Driver::Metal => continue,
            Driver::Local => match fitting(machine, manifest, Place::Cpu) {
                // Every machine has a CPU. If it does not open, the search ends with that error.
                Fit::Target(..) => {
                    return open_named(devices, machine, manifest, cpu, driver);
                }
                Fit::None(reasons) => {
                    search.reasons.extend(reasons);
                    continue;
                }
            },
        };
        if asked.insert(driver) {
            candidates.extend(search.candidates(driver, spec));
        }
        let next = candidates.extract_if(.., |candidate| candidate.device_class == device_class);
        if let Some(opened) = search.open_first(next) {
            return Ok(opened);
        }
    }
    let Search { reasons, mut remedies, .. } = search;
    remedies.push(RECOMPILE);
    Err(Error::NoTarget { place: "here".into(), reasons, hint: remedies.join(", or ") })
}

/// Returns the reasons against targets whose driver the runtime does not have.
fn without_driver(manifest: &Manifest) -> Vec<(String, String)> {
    let objection = |target: &TargetArtifact| target.driver.objection();
    manifest.targets.iter().filter_map(|(name, target)| Some((name.clone(), objection(target)?))).collect()
}

/// The remedy for every machine.
const RECOMPILE: &str = "compile the bundle for this machine, e.g. with --target cpu";

/// The remedy for a GPU without enough free memory.
const FREE_MEMORY: &str = "end other programs that use the GPU (nvidia-smi lists them)";

/// The search for the best device, with the reasons against others.
struct Search<'a, 'm, D> {
    devices: &'a D,
    machine: &'a Machine,
    manifest: &'m Manifest,
    /// Names of targets, and why they do not run.
    reasons: Vec<(String, String)>,
    remedies: Vec<&'static str>,
}

/// A GPU that can run a target.
struct Candidate<'m> {
    target_name: &'m str,
    target: &'m TargetArtifact,
    spec: DeviceSpec,
    device_class: DeviceClass,
    gpu: Gpu,
}

impl<'m, D: Devices> Search<'_, 'm, D> {
    /// Lists the devices of a GPU's driver, if the bundle has a target for it.
    fn candidates(&mut self, driver: Driver, spec: fn(Option<u32>) -> DeviceSpec) -> Vec<Candidate<'m>> {
        let mut targets = self.manifest.targets.iter().filter(|(_, target)| target.driver == driver);
        let Some((first, _)) = targets.next() else { return vec![] };
        let gpus = match self.devices.list(driver) {
            Ok(gpus) if !gpus.is_empty() => gpus,
            other => {
                let reason = other.err().map_or_else(|| NO_DEVICE.into(), |error| error.to_string());
                self.reasons.push((first.clone(), reason));
                self.remedies.extend(install(driver));
                return vec![];
            }
        };
        // Only a choice among several needs an index.
        let is_one = gpus.len() == 1;
        let mut candidates = Vec::new();
        for (i, gpu) in (0..).zip(gpus) {
            let place = Place::Gpu(&gpu);
            match fitting(self.machine, self.manifest, place) {
                Fit::Target(target_name, target) => {
                    let (spec, device_class) = (spec((!is_one).then_some(i)), place.device_class());
                    if !self.lacks_memory(target_name, target, &gpu.name, gpu.free_bytes) {
                        candidates.push(Candidate { target_name, target, spec, device_class, gpu });
                    }
                }
                Fit::None(reasons) => self.reasons.extend(reasons),
            }
        }
        candidates
    }

    /// Returns whether a GPU has too little memory left for a target, and keeps that as a reason against it.
    fn lacks_memory(
        &mut self,
        target_name: &str,
        target: &TargetArtifact,
        gpu: &str,
        free: Option<u64>,
    ) -> bool {
        let Some(shortage) = shortage(self.manifest, target, free) else { return false };
        self.reasons.push((target_name.into(), format!("{gpu}: {shortage}")));
        // One remedy for all of them.
        if !self.remedies.contains(&FREE_MEMORY) {
            self.remedies.push(FREE_MEMORY);
        }
        true
    }

    /// Opens the first of the candidates that opens.
    fn open_first(
        &mut self,
        candidates: impl IntoIterator<Item = Candidate<'m>>,
    ) -> Option<OpenedDevice<'m, D::Device>> {
        for Candidate { target_name, target, spec, gpu, .. } in candidates {
            match self.devices.open(spec) {
                Ok(device) => {
                    let Gpu { name, free_bytes, .. } = gpu;
                    let free_bytes = free_bytes.or_else(|| self.devices.free_bytes(&device));
                    if self.lacks_memory(target_name, target, &name, free_bytes) {
                        continue;
                    }
                    return Some(OpenedDevice {
                        target_name,
                        target,
                        device,
                        spec,
                        name: Some(name),
                        free_bytes,
                    });
                }
                Err(error) => self.reasons.push((target_name.into(), format!("cannot use {spec}: {error}"))),
            }
        }
        None
    }
}

/// The result of looking for a target.
enum Fit<'m> {
    Target(&'m str, &'m TargetArtifact),
    /// Names of the driver's targets, and why each does not fit.
    None(Vec<(String, String)>),
}

/// Finds the best target for a place.
fn fitting<'m>(machine: &Machine, manifest: &'m Manifest, place: Place<'_>) -> Fit<'m> {
    let checked = check_targets_at(manifest, machine, place);
    if let Some(best) = best_target(&checked) {
        return Fit::Target(best.target, best.artifact());
    }
    let refused = checked.into_iter().filter(|target| target.verdict == Verdict::Refuse);
    Fit::None(refused.map(|target| (target.target.to_owned(), target.reasons.join("; "))).collect())
}

/// The reason against a driver without devices.
const NO_DEVICE: &str = "the driver finds no device";

/// Returns how to get a driver; `None` for the CPU, which needs none, and for drivers that the runtime does not have.
fn install(driver: Driver) -> Option<&'static str> {
    match driver {
        Driver::Local | Driver::Hip | Driver::Metal => None,
        Driver::Cuda => Some("install NVIDIA's driver"),
        Driver::Vulkan => Some("install a Vulkan driver"),
    }
}

/// Returns the remedy if the requested device cannot be opened.
fn device_hint(spec: DeviceSpec, driver: Driver, gpus: Result<Vec<Gpu>, Cause>, has_cpu: bool) -> String {
    // The CPU fails to open only for the number of threads.
    let Some(install) = install(driver) else { return "run with fewer --threads".into() };
    let other = if has_cpu {
        "run on the CPU with --device local-task"
    } else {
        "compile the bundle again with --target cpu"
    };
    match gpus {
        Err(_) => format!("{install}, or {other}"),
        Ok(gpus) if gpus.is_empty() => format!("{NO_DEVICE}: {other}"),
        Ok(gpus) => {
            let named = gpus.iter().enumerate().map(|(i, gpu)| format!("{}:{i} ({})", spec.name(), gpu.name));
            format!("there is {}", named.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
