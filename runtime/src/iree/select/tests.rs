//! The selection of a device, on fake machines.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use mlxcel_artifacts::{Blob, entry::Parameter, report, sample};
use safetensors::Dtype;

use super::*;

const LLVMPIPE: &str = "llvmpipe (LLVM 15.0.6, 256 bits)";

/// A machine with these devices. Drivers that are not listed are not installed.
#[derive(Default)]
struct FakeMachine {
    names: BTreeMap<Driver, Vec<&'static str>>,
    /// Devices that fail to open.
    broken: Vec<&'static str>,
    /// The memory that each GPU has left, by its name.
    free_bytes: BTreeMap<&'static str, u64>,
    /// The memory that a GPU has left which was opened.
    free_when_open: Option<u64>,
    asked: RefCell<Vec<Driver>>,
}

impl Devices for FakeMachine {
    /// What was opened.
    type Device = DeviceSpec;

    fn list(&self, driver: Driver) -> Result<Vec<Gpu>, Cause> {
        self.asked.borrow_mut().push(driver);
        let names = self.names.get(&driver).ok_or_else(|| format!("lib{driver}.so not found"))?;
        let gpu = |name| Gpu { free_bytes: self.free_bytes.get(name).copied(), ..Gpu::named(driver, name) };
        Ok(names.iter().map(|&name| gpu(name)).collect())
    }

    fn open(&self, spec: DeviceSpec) -> Result<DeviceSpec, Cause> {
        if self.broken.contains(&spec.to_string().as_str()) {
            return Err("it is broken".into());
        }
        let Some(driver) = spec.driver().filter(|&driver| driver != Driver::Local) else { return Ok(spec) };
        let names = self.names.get(&driver).ok_or_else(|| format!("lib{driver}.so not found"))?;
        let index = spec.index().unwrap_or(0) as usize;
        names.get(index).map(|_| spec).ok_or_else(|| "out of range".into())
    }

    fn free_bytes(&self, device: &DeviceSpec) -> Option<u64> {
        self.free_when_open.filter(|_| device.driver() != Some(Driver::Local))
    }
}

fn fake(devices: &[(Driver, &[&'static str])]) -> FakeMachine {
    FakeMachine {
        names: devices.iter().map(|&(driver, names)| (driver, names.to_vec())).collect(),
        ..FakeMachine::default()
    }
}

fn machine() -> Machine {
    let cpu_features = BTreeSet::from(["avx2".into()]);
    Machine { arch: "x86_64".into(), cpu_features, memory_bytes: None, gpus: vec![], vulkan_drivers: vec![] }
}

/// Makes a manifest with targets of these names: `cpu`, `cpu-v4` that does not run here, `cuda` and `vulkan`.
fn manifest(targets: &[&str]) -> Manifest {
    let target = |name: &str| {
        let driver = match name {
            "cuda" => Driver::Cuda,
            "vulkan" => Driver::Vulkan,
            _ => Driver::Local,
        };
        let arch = if driver == Driver::Local { "x86_64" } else { "" };
        TargetArtifact {
            cpu_features: if name == "cpu-v4" { vec!["avx2".into(), "avx512f".into()] } else { vec![] },
            ..sample::target(driver, arch, Blob::of(b"vmfb"), 16, 8)
        }
    };
    Manifest {
        targets: targets.iter().map(|&name| (name.into(), target(name))).collect(),
        parameters: vec![Parameter::new("w", Dtype::F32, &[1 << 18])],
        ..sample::manifest(16, 8)
    }
}

/// Returns a choice of this device, with local-task for the CPU.
fn choice(asked: DeviceSpec) -> DeviceChoice {
    DeviceChoice { asked, threads: None, cpu: DeviceSpec::LocalTask, trace: Trace::off() }
}

/// Opens a device; returns its spec and name.
fn opened(devices: &FakeMachine, targets: &[&str], asked: &str) -> String {
    let manifest = manifest(targets);
    let opened = open(devices, &machine(), &manifest, &choice(asked.parse().unwrap())).unwrap();
    assert_eq!(Some(opened.target.driver), opened.spec.driver());
    opened.name.map_or_else(|| opened.spec.to_string(), |name| format!("{} {name}", opened.spec))
}

fn refused(devices: &FakeMachine, targets: &[&str], asked: &str) -> String {
    let manifest = manifest(targets);
    let error = open(devices, &machine(), &manifest, &choice(asked.parse().unwrap())).err().unwrap();
    report(&error)
}

#[test]
fn auto_takes_the_best_device_of_the_machine() {
    let all = ["cpu", "cuda", "vulkan"];
    let nothing = FakeMachine::default();
    assert_eq!(opened(&nothing, &all, "auto"), "local-task");
    let cuda = fake(&[(Driver::Cuda, &["H200"]), (Driver::Vulkan, &["H200"])]);
    assert_eq!(opened(&cuda, &all, "auto"), "cuda H200");
    assert_eq!(*cuda.asked.borrow(), [Driver::Cuda], "no other driver is initialized");
    assert_eq!(opened(&cuda, &["cpu", "vulkan"], "auto"), "vulkan H200");
    assert_eq!(opened(&cuda, &["cpu"], "auto"), "local-task");
    let gpu = fake(&[(Driver::Vulkan, &["RADV NAVI31"])]);
    assert_eq!(opened(&gpu, &all, "auto"), "vulkan RADV NAVI31");
    // A driver without a device.
    let no_device = fake(&[(Driver::Cuda, &[]), (Driver::Vulkan, &[])]);
    assert_eq!(opened(&no_device, &all, "auto"), "local-task");
}

#[test]
fn auto_asks_only_drivers_that_the_bundle_has_targets_for() {
    let machine = fake(&[(Driver::Cuda, &["H200"]), (Driver::Vulkan, &["H200"])]);
    opened(&machine, &["cpu"], "auto");
    assert_eq!(*machine.asked.borrow(), []);
}

#[test]
fn auto_prefers_the_cpu_to_a_vulkan_device_that_is_the_cpu() {
    for software in
        [LLVMPIPE, "SwiftShader Device (LLVM 10.0.0)", "Microsoft Direct3D12 (Microsoft Basic Render Driver)"]
    {
        let machine = fake(&[(Driver::Vulkan, &[software])]);
        assert_eq!(opened(&machine, &["cpu", "vulkan"], "auto"), "local-task");
        assert_eq!(opened(&machine, &["vulkan"], "auto"), format!("vulkan {software}"));
        assert_eq!(opened(&machine, &["cpu-v4", "vulkan"], "auto"), format!("vulkan {software}"));
    }
    // The GPU beside it is named by its index.
    let both = fake(&[(Driver::Vulkan, &[LLVMPIPE, "Intel Arc"])]);
    assert_eq!(opened(&both, &["cpu", "vulkan"], "auto"), "vulkan:1 Intel Arc");
}

#[test]
fn auto_tries_the_next_device_if_one_does_not_open() {
    let names: &[_] = &["RTX 3090", "RTX 3060"];
    let mut machine = fake(&[(Driver::Cuda, names), (Driver::Vulkan, &["RTX 3090"])]);
    machine.broken = vec!["cuda:0"];
    assert_eq!(opened(&machine, &["cpu", "cuda"], "auto"), "cuda:1 RTX 3060");
    machine.broken = vec!["cuda:0", "cuda:1", "vulkan"];
    assert_eq!(opened(&machine, &["cpu", "cuda", "vulkan"], "auto"), "local-task");
    assert_eq!(
        refused(&machine, &["cuda", "vulkan"], "auto"),
        "error: no target of this bundle runs here\n  \
           cuda: cannot use cuda:0: it is broken\n  \
           cuda: cannot use cuda:1: it is broken\n  \
           vulkan: cannot use vulkan: it is broken\n\
         hint: compile the bundle for this machine, e.g. with --target cpu"
    );
}

#[test]
fn auto_gives_a_reason_for_every_target() {
    assert_eq!(
        refused(&FakeMachine::default(), &["cuda"], "auto"),
        "error: no target of this bundle runs here\n  \
           cuda: libcuda.so not found\n\
         hint: install NVIDIA's driver, or compile the bundle for this machine, e.g. with --target cpu"
    );
    let no_device = fake(&[(Driver::Vulkan, &[])]);
    assert_eq!(
        refused(&no_device, &["cuda", "vulkan", "cpu-v4"], "auto"),
        "error: no target of this bundle runs here\n  \
           cuda: libcuda.so not found\n  \
           vulkan: the driver finds no device\n  \
           cpu-v4: the cpu lacks avx512f (needed: avx2, avx512f)\n\
         hint: install NVIDIA's driver, or install a Vulkan driver, or compile the bundle for this machine, e.g. with \
         --target cpu"
    );
}

#[test]
fn a_named_device_is_opened() {
    let machine = fake(&[(Driver::Cuda, &["A", "B"]), (Driver::Vulkan, &[LLVMPIPE])]);
    let all = ["cpu", "cuda", "vulkan"];
    assert_eq!(opened(&machine, &all, "local-task"), "local-task");
    assert_eq!(opened(&machine, &all, "local-sync"), "local-sync");
    assert_eq!(opened(&machine, &all, "vulkan"), format!("vulkan {LLVMPIPE}"));
    assert_eq!(opened(&machine, &all, "cuda:1"), "cuda:1 B");
    assert_eq!(opened(&machine, &all, "cuda"), "cuda A", "the first is every driver's default");
}

#[test]
fn a_gpu_that_has_too_little_memory_left_is_not_opened() {
    let [weights, cache] = {
        let manifest = manifest(&["cuda"]);
        least_gpu_bytes(&manifest, &manifest.targets["cuda"])
    };
    assert!(weights > 0);
    let free_bytes = BTreeMap::from([("A", (weights + cache) / 2), ("B", weights + cache)]);
    let machine = FakeMachine { free_bytes, ..fake(&[(Driver::Cuda, &["A", "B"])]) };
    assert_eq!(opened(&machine, &["cpu", "cuda"], "auto"), "cuda:1 B");
    assert_eq!(opened(&machine, &["cuda"], "cuda:1"), "cuda:1 B");
    insta::assert_snapshot!(refused(&machine, &["cuda"], "cuda:0"), @r"
    error: cannot use the device cuda:0: 520.0 KiB of its memory are free, expected 1.0 MiB for weights and 16.0 KiB for the smallest cache
    hint: end other programs that use the GPU (nvidia-smi lists them), name another device with --device, or compile the bundle with fewer bits (--quant)
    ");
    let only = FakeMachine { free_bytes: machine.free_bytes, ..fake(&[(Driver::Cuda, &["A"])]) };
    assert_eq!(opened(&only, &["cpu", "cuda"], "auto"), "local-task");
    insta::assert_snapshot!(refused(&only, &["cuda"], "auto"), @r"
    error: no target of this bundle runs here
      cuda: A: 520.0 KiB of its memory are free, expected 1.0 MiB for weights and 16.0 KiB for the smallest cache
    hint: end other programs that use the GPU (nvidia-smi lists them), or compile the bundle for this machine, e.g. with --target cpu
    ");
}

/// So do GPUs that NVML does not know.
#[test]
fn a_gpu_that_tells_its_memory_when_it_is_open_is_left_again() {
    let machine = FakeMachine { free_when_open: Some(1000), ..fake(&[(Driver::Cuda, &["A"])]) };
    assert_eq!(opened(&machine, &["cpu", "cuda"], "auto"), "local-task");
    let reason =
        "1000 B of its memory are free, expected 1.0 MiB for weights and 16.0 KiB for the smallest cache";
    for (device, name) in [("auto", "cuda: A: "), ("cuda", "cannot use the device cuda: ")] {
        let error = refused(&machine, &["cuda"], device);
        assert!(error.contains(&format!("{name}{reason}\nhint: end other programs")), "{error}");
    }
}

#[test]
fn a_device_without_a_target() {
    let nothing = FakeMachine::default();
    assert_eq!(
        refused(&nothing, &["cpu"], "cuda:1"),
        "error: no target of this bundle is for the device cuda:1: found cpu (local), expected one of the driver cuda\n\
         hint: leave out --device, or compile the bundle again with --target cuda"
    );
    assert_eq!(
        refused(&nothing, &["cuda", "vulkan"], "local-sync"),
        "error: no target of this bundle is for the device local-sync: found cuda (cuda), vulkan (vulkan), expected one \
         of the driver local\n\
         hint: leave out --device, or compile the bundle again with --target cpu"
    );
    assert_eq!(
        refused(&nothing, &["cpu-v4", "cuda"], "local-task"),
        "error: no target of this bundle runs on local-task\n  \
           cpu-v4: the cpu lacks avx512f (needed: avx2, avx512f)\n\
         hint: compile the bundle for this machine, e.g. with --target cpu"
    );
}

#[test]
fn a_named_device_that_does_not_open() {
    let nothing = FakeMachine::default();
    assert_eq!(
        refused(&nothing, &["cpu", "cuda"], "cuda"),
        "error: cannot use the device cuda: libcuda.so not found\n\
         hint: install NVIDIA's driver, or run on the CPU with --device local-task"
    );
    assert_eq!(
        refused(&nothing, &["cpu-v4", "vulkan"], "vulkan"),
        "error: cannot use the device vulkan: libvulkan.so not found\n\
         hint: install a Vulkan driver, or compile the bundle again with --target cpu"
    );
    let two = fake(&[(Driver::Cuda, &["A", "B"])]);
    assert_eq!(
        refused(&two, &["cuda"], "cuda:2"),
        "error: cannot use the device cuda:2: out of range\nhint: there is cuda:0 (A), cuda:1 (B)"
    );
    let none = fake(&[(Driver::Vulkan, &[])]);
    assert_eq!(
        refused(&none, &["cpu", "vulkan"], "vulkan"),
        "error: cannot use the device vulkan: out of range\n\
         hint: the driver finds no device: run on the CPU with --device local-task"
    );
}

#[test]
fn a_cpu_that_does_not_open() {
    let mut machine = fake(&[(Driver::Vulkan, &[LLVMPIPE])]);
    machine.broken = vec!["local-task"];
    for asked in ["auto", "local-task"] {
        assert_eq!(
            refused(&machine, &["cpu", "vulkan"], asked),
            "error: cannot use the device local-task: it is broken\nhint: run with fewer --threads"
        );
    }
}

#[test]
fn another_version_of_iree_is_reported_first() {
    let mut old = manifest(&["cpu"]);
    old.compiler.version = "3.12.0".into();
    for asked in [DeviceSpec::Auto, DeviceSpec::LocalTask] {
        let error = open(&FakeMachine::default(), &machine(), &old, &choice(asked)).err().unwrap();
        assert!(report(&error).starts_with("error: the bundle was compiled by iree 3.12.0"));
    }
}
