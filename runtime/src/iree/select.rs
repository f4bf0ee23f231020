//! Which device a bundle runs on, with which of its targets.

use std::collections::BTreeSet;

use mlxcel_artifacts::{
    DeviceClass, Driver, Gpu, Machine, Manifest, Place, TargetArtifact, Verdict, best_target,
    check_iree_version, check_targets_at, nvidia_gpus,
};

use crate::{
    device::DeviceSpec,
    error::{Cause, Error},
    ffi,
};

/// A device that was opened, and the target that runs on it.
pub(super) struct OpenedDevice<'m, D> {
    pub(super) target_name: &'m str,
    pub(super) target: &'m TargetArtifact,
    pub(super) device: D,
    pub(super) spec: DeviceSpec,
    /// The device's own name, when it is certain which one it is.
    pub(super) name: Option<String>,
}

/// The devices of a machine.
pub(super) trait Devices {
    type Device;

    /// A driver's devices, by index. The first question to a driver initialises it, which takes its time.
    fn list(&self, driver: Driver) -> Result<Vec<Gpu>, Cause>;

    fn open(&self, spec: DeviceSpec) -> Result<Self::Device, Cause>;
}

/// The devices of this machine.
pub(super) struct ThisMachine {
    /// Of local-task.
    pub(super) threads: Option<usize>,
}

impl Devices for ThisMachine {
    type Device = ffi::Device;

    fn list(&self, driver: Driver) -> Result<Vec<Gpu>, Cause> {
        let names = ffi::devices(driver.name())?;
        // Another order than the driver's own.
        let known = if driver == Driver::Cuda { nvidia_gpus() } else { Vec::new() };
        let gpu = |name: String| {
            let found = known.iter().find(|gpu| gpu.name == name);
            found.cloned().unwrap_or_else(|| Gpu::named(driver, name))
        };
        Ok(names.into_iter().map(gpu).collect())
    }

    fn open(&self, spec: DeviceSpec) -> Result<ffi::Device, Cause> {
        Ok(ffi::Device::create(spec.kind(), spec.index(), self.threads)?)
    }
}

/// This machine, as this process may use it.
pub(super) fn machine() -> Machine {
    let mut machine = Machine::host();
    if machine.cpu_features.contains("amx-tile") && !ffi::request_amx() {
        machine.cpu_features.retain(|feature| !feature.starts_with("amx-"));
    }
    machine
}

/// Opens the device asked for, or for [`DeviceSpec::Auto`] the best one that the bundle has a target for.
pub(super) fn open<'m, D: Devices>(
    devices: &D,
    machine: &Machine,
    manifest: &'m Manifest,
    asked: DeviceSpec,
) -> Result<OpenedDevice<'m, D::Device>, Error> {
    check_iree_version(manifest)?;
    match asked.driver() {
        Some(driver) => open_named(devices, machine, manifest, asked, driver),
        None => open_best(devices, machine, manifest),
    }
}

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
    let device = devices.open(spec).map_err(|source| {
        let has_cpu = matches!(fitting(machine, manifest, Place::Cpu), Fit::Target(..));
        let hint = device_hint(spec, driver, devices.list(driver), has_cpu);
        Error::Device { device: spec.to_string(), hint, source }
    })?;
    Ok(OpenedDevice { target_name, target, device, spec, name: gpu.map(|gpu| gpu.name) })
}

/// The device, where it is certain which one it is.
fn gpu<D: Devices>(devices: &D, driver: Driver, spec: DeviceSpec) -> Option<Gpu> {
    let mut gpus = devices.list(driver).ok()?;
    match spec.index() {
        Some(index) => gpus.into_iter().nth(index as usize),
        None if gpus.len() == 1 => gpus.pop(),
        None => None,
    }
}

/// The first place in the order of [`DeviceClass`] that opens. A driver is asked when it may have what is next.
fn open_best<'m, D: Devices>(
    devices: &D,
    machine: &Machine,
    manifest: &'m Manifest,
) -> Result<OpenedDevice<'m, D::Device>, Error> {
    let mut search = Search { devices, machine, manifest, reasons: vec![], remedies: vec![] };
    let (mut asked, mut candidates) = (BTreeSet::new(), Vec::new());
    for device_class in DeviceClass::ALL {
        let driver = device_class.driver();
        let spec: fn(Option<u32>) -> DeviceSpec = match driver {
            Driver::Cuda => DeviceSpec::Cuda,
            Driver::Vulkan => DeviceSpec::Vulkan,
            Driver::Local => match fitting(machine, manifest, Place::Cpu) {
                // The CPU is there: that it does not open is an error, and no reason to look further.
                Fit::Target(..) => {
                    return open_named(devices, machine, manifest, DeviceSpec::LocalTask, driver);
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

/// What always helps.
const RECOMPILE: &str = "compile the bundle for this machine, e.g. with --target cpu";

/// The search for the best device, and why others were not.
struct Search<'a, 'm, D> {
    devices: &'a D,
    machine: &'a Machine,
    manifest: &'m Manifest,
    /// For a target its name and why it does not run.
    reasons: Vec<(String, String)>,
    remedies: Vec<&'static str>,
}

/// A device that may run a target.
struct Candidate<'m> {
    target_name: &'m str,
    target: &'m TargetArtifact,
    spec: DeviceSpec,
    device_class: DeviceClass,
    name: String,
}

impl<'m, D: Devices> Search<'_, 'm, D> {
    /// The devices of a GPU's driver, if the bundle has a target for it.
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
        // An index where there is a choice.
        let is_one = gpus.len() == 1;
        let mut candidates = Vec::new();
        for (i, gpu) in (0..).zip(gpus) {
            let place = Place::Gpu(&gpu);
            match fitting(self.machine, self.manifest, place) {
                Fit::Target(target_name, target) => {
                    let (spec, device_class) = (spec((!is_one).then_some(i)), place.device_class());
                    candidates.push(Candidate { target_name, target, spec, device_class, name: gpu.name });
                }
                Fit::None(reasons) => self.reasons.extend(reasons),
            }
        }
        candidates
    }

    fn open_first(
        &mut self,
        candidates: impl IntoIterator<Item = Candidate<'m>>,
    ) -> Option<OpenedDevice<'m, D::Device>> {
        for Candidate { target_name, target, spec, name, .. } in candidates {
            match self.devices.open(spec) {
                Ok(device) => {
                    return Some(OpenedDevice { target_name, target, device, spec, name: Some(name) });
                }
                Err(error) => self.reasons.push((target_name.into(), format!("cannot use {spec}: {error}"))),
            }
        }
        None
    }
}

/// The best of a driver's targets for a machine.
enum Fit<'m> {
    Target(&'m str, &'m TargetArtifact),
    /// For each of the driver's targets its name and why it does not fit.
    None(Vec<(String, String)>),
}

/// The best target for a place.
fn fitting<'m>(machine: &Machine, manifest: &'m Manifest, place: Place<'_>) -> Fit<'m> {
    let checked = check_targets_at(manifest, machine, place);
    if let Some(best) = best_target(&checked) {
        return Fit::Target(best.target, best.artifact());
    }
    let refused = checked.into_iter().filter(|target| target.verdict == Verdict::Refuse);
    Fit::None(refused.map(|target| (target.target.to_owned(), target.reasons.join("; "))).collect())
}

const NO_DEVICE: &str = "the driver finds no device";

/// How to get a driver; `None` for the CPU, which needs none.
fn install(driver: Driver) -> Option<&'static str> {
    match driver {
        Driver::Local => None,
        Driver::Cuda => Some("install NVIDIA's driver"),
        Driver::Vulkan => Some("install a Vulkan driver"),
    }
}

/// What to do when the device asked for cannot be opened.
fn device_hint(spec: DeviceSpec, driver: Driver, gpus: Result<Vec<Gpu>, Cause>, has_cpu: bool) -> String {
    // A CPU is asked for nothing but its threads.
    let Some(install) = install(driver) else { return "run with fewer --threads".into() };
    let other = if has_cpu {
        "run on the cpu with --device local-task"
    } else {
        "compile the bundle again with --target cpu"
    };
    match gpus {
        Err(_) => format!("{install}, or {other}"),
        Ok(gpus) if gpus.is_empty() => format!("{NO_DEVICE}: {other}"),
        Ok(gpus) => {
            let named = gpus.iter().enumerate().map(|(i, gpu)| format!("{}:{i} ({})", spec.kind(), gpu.name));
            format!("there is {}", named.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
