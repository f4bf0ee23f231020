//! Which targets of a bundle run on a machine, before any of its code is loaded.
//!
//! A vmfb for the CPU is native code. It crashes with an illegal instruction on a CPU that lacks a feature it uses. A vmfb
//! for an NVIDIA GPU is PTX, which older GPUs refuse. The manifest therefore lists what a target needs, a [`Machine`] what
//! there is, and [`check_targets`] compares the two.

use std::fmt;

use serde::Serialize;

use super::{
    hardware::{Gpu, Machine},
    place::Place,
};
use crate::{
    error::Error,
    iree::IREE_VERSION,
    manifest::{
        GpuNeeds, Manifest, ModelSpec, Packing, TargetArtifact,
        entry::{Entry, Parameter},
    },
    tensor::tensor_bytes,
    version::Version,
};

/// The answer to whether a target runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The target runs.
    Run,
    /// The target runs, but packs its weights at every start until `mlxcel-pack` has packed them.
    RunWithPacking,
    /// The target does not run.
    Refuse,
}

/// Whether a target runs in one place, and why.
#[derive(Debug, Clone, Serialize)]
pub struct Compatibility<'m> {
    /// The target's name.
    pub target: &'m str,
    /// The answer.
    pub verdict: Verdict,
    /// The place: `cpu`, a GPU's name, or a device that may not exist.
    pub device: String,
    /// Reasons against the target, or notes about its run.
    pub reasons: Vec<String>,
    #[serde(skip)]
    pub(crate) artifact: &'m TargetArtifact,
    /// The order of targets that run in one place; the largest is the best.
    #[serde(skip)]
    rank: (usize, Version),
}

/// Versions of PTX, and the version of CUDA that introduced each (PTX ISA, release notes).
const PTX_TO_CUDA: [(Version, Version); 20] = [
    (Version(7, 0), Version(11, 0)),
    (Version(7, 1), Version(11, 1)),
    (Version(7, 2), Version(11, 2)),
    (Version(7, 3), Version(11, 3)),
    (Version(7, 4), Version(11, 4)),
    (Version(7, 5), Version(11, 5)),
    (Version(7, 6), Version(11, 6)),
    (Version(7, 7), Version(11, 7)),
    (Version(7, 8), Version(11, 8)),
    (Version(8, 0), Version(12, 0)),
    (Version(8, 1), Version(12, 1)),
    (Version(8, 2), Version(12, 2)),
    (Version(8, 3), Version(12, 3)),
    (Version(8, 4), Version(12, 4)),
    (Version(8, 5), Version(12, 5)),
    (Version(8, 6), Version(12, 7)),
    (Version(8, 7), Version(12, 8)),
    (Version(8, 8), Version(12, 9)),
    (Version(9, 0), Version(13, 0)),
    (Version(9, 1), Version(13, 1)),
];

/// Checks every target of a bundle in every place of a machine that has the target's driver, best place first.
///
/// Refuses a target without such a place.
#[must_use]
pub fn check_targets<'m>(manifest: &'m Manifest, machine: &Machine) -> Vec<Compatibility<'m>> {
    let mut found = Vec::new();
    let places = machine.places();
    for (name, target) in &manifest.targets {
        let places = places.iter().filter(|place| place.driver() == target.driver);
        let before = found.len();
        found.extend(places.map(|&place| check_target(manifest, (name, target), machine, place)));
        if found.len() == before {
            let reason =
                target.driver.objection().unwrap_or_else(|| format!("found no {} device", target.driver));
            found.push(Compatibility::new((name, target), Verdict::Refuse, "none".into(), vec![reason]));
        }
    }
    found
}

/// Checks the targets for the driver of `place` there.
#[must_use]
pub fn check_targets_at<'m>(
    manifest: &'m Manifest,
    machine: &Machine,
    place: Place<'_>,
) -> Vec<Compatibility<'m>> {
    let targets = manifest.targets.iter().filter(|(_, target)| target.driver == place.driver());
    targets.map(|target| check_target(manifest, (target.0, target.1), machine, place)).collect()
}

/// Returns the best target that runs: that with the most CPU features, or the newest code, or the oldest for an unknown GPU.
///
/// Of equally good targets, returns the first by name. `targets` must be those of one place.
#[must_use]
pub fn best_target<'t, 'm>(targets: &'t [Compatibility<'m>]) -> Option<&'t Compatibility<'m>> {
    let runs = targets.iter().filter(|target| target.verdict != Verdict::Refuse);
    runs.reduce(|best, next| if next.rank > best.rank { next } else { best })
}

/// Checks that the bundle was compiled by the IREE version of this program.
///
/// # Errors
/// The bundle was compiled by another version than [`IREE_VERSION`].
pub fn check_iree_version(manifest: &Manifest) -> Result<(), Error> {
    if manifest.compiler.version == IREE_VERSION {
        return Ok(());
    }
    Err(Error::OtherIree { found: manifest.compiler.version.clone(), expected: IREE_VERSION })
}

fn check_target<'m>(
    manifest: &'m Manifest,
    (name, target): (&'m str, &'m TargetArtifact),
    machine: &Machine,
    place: Place<'_>,
) -> Compatibility<'m> {
    let memory = Memory::of(manifest, target, machine, place);
    let mut objections = Vec::new();
    if let Err(Error::OtherIree { found, expected }) = check_iree_version(manifest) {
        objections.push(format!("compiled by iree {found}, this program runs iree {expected}"));
    }
    objections.extend(match place {
        Place::Cpu => cpu_objection(target, machine),
        Place::Gpu(gpu) => target.driver.objection().into_iter().chain(gpu_objections(target, gpu)).collect(),
        Place::VulkanDrivers(_) => Vec::new(),
    });
    objections.extend(memory.objection());
    let device = place.to_string();
    if !objections.is_empty() {
        return Compatibility::new((name, target), Verdict::Refuse, device, objections);
    }
    let mut notes = memory.notes();
    let packs = needs_packing(target);
    if packs {
        notes.push("every start packs the weights: run `mlxcel-pack` to pack them once".into());
    }
    if let Place::VulkanDrivers(drivers) = place {
        notes.push(format!("known only from the installed drivers: {}", drivers.join(", ")));
    }
    let verdict = if packs { Verdict::RunWithPacking } else { Verdict::Run };
    let mut found = Compatibility::new((name, target), verdict, device, notes);
    if matches!(place, Place::Gpu(Gpu { compute_capability: None, .. })) {
        // What needs the least runs most likely.
        let Version(major, minor) = found.rank.1;
        found.rank.1 = Version(u32::MAX - major, u32::MAX - minor);
    }
    found
}

/// Returns whether the target's weights have to be packed at every start.
fn needs_packing(target: &TargetArtifact) -> bool {
    matches!(&target.packing, Some(Packing { weights: None, .. }))
}

/// The memory that a target needs in a place, and the memory that is there, in bytes.
struct Memory {
    weights: u64,
    /// The cache of a model, or the arguments and results of a program's largest call.
    cache: u64,
    /// Which of the two it is: `cache` or `call`.
    held: &'static str,
    /// The part of both that must fit.
    needed: u64,
    total: Option<u64>,
    free: Option<u64>,
}

impl Memory {
    fn of(manifest: &Manifest, target: &TargetArtifact, machine: &Machine, place: Place<'_>) -> Self {
        let (held, cache) = match &manifest.plan {
            Some(plan) => ("cache", cache_bytes(plan)),
            None => ("call", target.entries.iter().map(call_bytes).max().unwrap_or(0)),
        };
        let weights = weight_bytes(manifest, target);
        // A CPU maps weights from their files, unless they have to be packed first.
        let is_mapped = matches!(place, Place::Cpu) && !needs_packing(target);
        let needed = if is_mapped { cache } else { weights.saturating_add(cache) };
        let (total, free) = match place {
            Place::Cpu => (machine.memory_bytes, None),
            Place::Gpu(gpu) => (gpu.memory_bytes, gpu.free_bytes),
            Place::VulkanDrivers(_) => (None, None),
        };
        Self { weights, cache, held, needed, total, free }
    }

    fn objection(&self) -> Option<String> {
        let total = self.total.filter(|&total| total < self.needed)?;
        let held = self.held;
        let what = if self.needed == self.cache {
            format!("the {held} needs")
        } else {
            format!("weights and {held} need")
        };
        Some(format!("{what} {}, found {} of memory", Mib(self.needed), Mib(total)))
    }

    fn notes(&self) -> Vec<String> {
        let Self { weights, cache, held, needed, total, free } = *self;
        // Embedding models have no cache.
        let and_cache = if cache > 0 { format!(", {held} {}", Mib(cache)) } else { String::new() };
        let mut notes = vec![format!("weights {}{and_cache}", Mib(weights))];
        if let Some(free) = free.filter(|&free| free < needed) {
            notes.push(format!("only {} of memory are free", Mib(free)));
        }
        if total.is_some_and(|total| total < weights.saturating_add(cache)) {
            notes.push("more than the memory: every step reads from the disk".into());
        }
        notes
    }
}

fn cpu_objection(target: &TargetArtifact, machine: &Machine) -> Vec<String> {
    if target.arch != machine.arch {
        return vec![format!("compiled for {}, the cpu is {}", target.arch, machine.arch)];
    }
    let missing = target.cpu_features.iter().filter(|&feature| !machine.cpu_features.contains(feature));
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    vec![format!("the cpu lacks {} (needed: {})", missing.join(", "), target.cpu_features.join(", "))]
}

fn gpu_objections(target: &TargetArtifact, gpu: &Gpu) -> Vec<String> {
    let Some(GpuNeeds { compute_capability, ptx }) = target.gpu else { return Vec::new() };
    let mut objections = Vec::new();
    if let Some(found) = gpu.compute_capability.filter(|found| *found < compute_capability) {
        objections.push(format!("compute capability is {found}, expected {compute_capability} or higher"));
    }
    let cuda = PTX_TO_CUDA.iter().find(|(version, _)| *version >= ptx).map(|(_, cuda)| *cuda);
    if let (Some(found), Some(cuda)) = (gpu.cuda, cuda)
        && found < cuda
    {
        objections.push(format!("its driver supports CUDA {found}, expected {cuda} or newer for PTX {ptx}"));
    }
    objections
}

/// Returns the size of the parameters that the target's module reads.
fn weight_bytes(manifest: &Manifest, target: &TargetArtifact) -> u64 {
    let sum = |parameters: &mut dyn Iterator<Item = &Parameter>| {
        parameters.filter_map(Parameter::bytes).fold(0u64, |sum, bytes| sum.saturating_add(bytes as u64))
    };
    match &target.packing {
        Some(packing) => sum(&mut packing.steps.iter().flat_map(|step| &step.results)),
        None => sum(&mut manifest.parameters.iter()),
    }
}

/// Returns the size of the cache for the whole context, without the padding that calls write behind it.
fn cache_bytes(plan: &ModelSpec) -> u64 {
    let of = |positions: usize, bytes: u64| bytes.saturating_mul(positions as u64);
    let windows =
        plan.windows.iter().map(|window| of(window.positions.min(plan.context), window.position_bytes));
    windows.fold(of(plan.context, plan.position_bytes), u64::saturating_add)
}

/// Returns the size of a function's arguments and results.
fn call_bytes(entry: &Entry) -> u64 {
    let arguments = entry.arguments.iter().map(|argument| tensor_bytes(argument.dtype, &argument.shape));
    let results = entry.results.iter().map(|result| tensor_bytes(result.dtype, &result.shape));
    arguments.chain(results).flatten().fold(0, |sum, bytes| sum.saturating_add(bytes as u64))
}

impl<'m> Compatibility<'m> {
    fn new(
        (target, artifact): (&'m str, &'m TargetArtifact),
        verdict: Verdict,
        device: String,
        reasons: Vec<String>,
    ) -> Self {
        let gpu = artifact.gpu.map_or(Version(0, 0), |needs| needs.compute_capability);
        Self { target, verdict, device, reasons, artifact, rank: (artifact.cpu_features.len(), gpu) }
    }

    /// Returns the target.
    #[must_use]
    pub fn artifact(&self) -> &'m TargetArtifact {
        self.artifact
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Run => "run",
            Self::RunWithPacking => "run with packing",
            Self::Refuse => "refuse",
        })
    }
}

/// A number of bytes, shown in MiB.
struct Mib(u64);

impl fmt::Display for Mib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / f64::from(1 << 20))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        blob::Blob,
        digest::Digest,
        driver::Driver,
        manifest::{sample, tests::manifest},
    };

    fn target(driver: Driver, arch: &str, features: &[&str]) -> TargetArtifact {
        let newest = features.first().and_then(|text| text.parse().ok());
        let features = if newest.is_some() { &[] } else { features };
        TargetArtifact {
            cpu_features: features.iter().map(ToString::to_string).collect(),
            gpu: newest.map(|compute_capability| GpuNeeds { compute_capability, ptx: Version(7, 6) }),
            ..sample::target(driver, arch, Blob::of(b"vmfb"), 64, 100)
        }
    }

    fn several() -> Manifest {
        let targets = [
            ("cpu-aarch64", target(Driver::Local, "aarch64", &["neon"])),
            ("cpu-x86-64-v3", target(Driver::Local, "x86_64", &["avx2", "fma"])),
            ("cpu-x86-64-v4", target(Driver::Local, "x86_64", &["avx2", "fma", "avx512f", "avx512bw"])),
            ("cuda", target(Driver::Cuda, "", &["8.0"])),
            ("cuda-sm_89", target(Driver::Cuda, "", &["8.9"])),
            ("vulkan", target(Driver::Vulkan, "", &[])),
        ];
        Manifest { targets: targets.map(|(name, target)| (name.to_owned(), target)).into(), ..manifest() }
    }

    fn cpu(features: &[&str]) -> Machine {
        let cpu_features = features.iter().map(ToString::to_string).collect();
        Machine {
            arch: "x86_64".into(),
            cpu_features,
            memory_bytes: None,
            gpus: vec![],
            vulkan_drivers: vec![],
        }
    }

    fn nvidia(capability: Version, cuda: Version) -> Gpu {
        let known = Gpu::named(Driver::Cuda, format!("sm {capability}"));
        Gpu { compute_capability: Some(capability), cuda: Some(cuda), ..known }
    }

    fn chosen(manifest: &Manifest, machine: &Machine, place: Place<'_>) -> Option<String> {
        best_target(&check_targets_at(manifest, machine, place)).map(|best| best.target.to_owned())
    }

    #[test]
    fn the_target_with_the_most_cpu_features_wins() {
        let manifest = several();
        let on_cpu = |features: &[&str]| chosen(&manifest, &cpu(features), Place::Cpu);
        assert_eq!(on_cpu(&["avx2", "fma", "f16c"]).unwrap(), "cpu-x86-64-v3");
        assert_eq!(on_cpu(&["avx2", "fma", "avx512f", "avx512bw"]).unwrap(), "cpu-x86-64-v4");
        assert_eq!(on_cpu(&["avx2"]), None);
    }

    #[test]
    fn the_newest_gpu_code_that_fits_wins() {
        let (manifest, machine) = (several(), cpu(&[]));
        let on_gpu = |gpu: &Gpu| chosen(&manifest, &machine, Place::Gpu(gpu));
        let new = Version(12, 9);
        for (capability, expected) in [
            ((7, 5), None),
            ((8, 0), Some("cuda")),
            ((8, 6), Some("cuda")),
            ((8, 9), Some("cuda-sm_89")),
            ((9, 0), Some("cuda-sm_89")),
        ] {
            let gpu = nvidia(Version(capability.0, capability.1), new);
            assert_eq!(on_gpu(&gpu).as_deref(), expected, "{capability:?}");
        }
        // PTX 7.6 came with CUDA 11.6.
        assert_eq!(on_gpu(&nvidia(Version(8, 0), Version(11, 6))).unwrap(), "cuda");
        assert_eq!(on_gpu(&nvidia(Version(8, 0), Version(11, 5))), None);
        // Unknown properties rule nothing out, and what needs the least runs most likely.
        assert_eq!(on_gpu(&Gpu::named(Driver::Cuda, "?")).unwrap(), "cuda");
        assert_eq!(on_gpu(&Gpu::named(Driver::Vulkan, "llvmpipe")).unwrap(), "vulkan");
    }

    #[test]
    fn every_target_has_a_verdict_and_a_reason() {
        let machine = Machine { gpus: vec![nvidia(Version(8, 6), Version(11, 5))], ..cpu(&["avx2"]) };
        let manifest = several();
        let targets = check_targets(&manifest, &machine);
        let lines: Vec<_> = targets
            .iter()
            .map(|j| format!("{} on {}: {}: {}", j.target, j.device, j.verdict, j.reasons.join("; ")))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        cpu-aarch64 on cpu: refuse: compiled for aarch64, the cpu is x86_64
        cpu-x86-64-v3 on cpu: refuse: the cpu lacks fma (needed: avx2, fma)
        cpu-x86-64-v4 on cpu: refuse: the cpu lacks fma, avx512f, avx512bw (needed: avx2, fma, avx512f, avx512bw)
        cuda on sm 8.6: refuse: its driver supports CUDA 11.5, expected 11.6 or newer for PTX 7.6
        cuda-sm_89 on sm 8.6: refuse: compute capability is 8.6, expected 8.9 or higher; its driver supports CUDA 11.5, expected 11.6 or newer for PTX 7.6
        vulkan on none: refuse: found no vulkan device
        ");
    }

    #[test]
    fn memory_and_packing_decide_the_verdict() {
        let mut manifest = several();
        let plan = manifest.plan.as_mut().unwrap();
        plan.position_bytes = 1 << 20;
        plan.context = 1024;
        let verdict = |manifest: &Manifest, memory_bytes| {
            let machine = Machine { memory_bytes, ..cpu(&["avx2", "fma"]) };
            let targets = check_targets_at(manifest, &machine, Place::Cpu);
            let found = targets.iter().find(|target| target.target == "cpu-x86-64-v3").unwrap();
            (found.verdict, found.reasons.join("; "))
        };
        let (refused, reason) = verdict(&manifest, Some(1 << 29));
        assert_eq!(
            (refused, reason.as_str()),
            (Verdict::Refuse, "the cache needs 1024.0 MiB, found 512.0 MiB of memory")
        );
        // Weights are mapped and need not fit.
        let (runs, note) = verdict(&manifest, Some(1 << 30));
        assert_eq!(runs, Verdict::Run);
        assert!(note.ends_with("more than the memory: every step reads from the disk"), "{note}");
        assert_eq!(verdict(&manifest, Some(1 << 31)).0, Verdict::Run);
        assert_eq!(verdict(&manifest, None).0, Verdict::Run);
        let packing = Packing {
            build_key: Digest::of(b"packing"),
            vmfb: Blob::of(b"vmfb"),
            weights: None,
            made_from: BTreeMap::new(),
            calibrated_by: None,
            calibration: None,
            steps: vec![],
        };
        manifest.targets.get_mut("cpu-x86-64-v3").unwrap().packing = Some(packing);
        let (packs, note) = verdict(&manifest, None);
        assert_eq!(packs, Verdict::RunWithPacking);
        assert!(
            note.ends_with("every start packs the weights: run `mlxcel-pack` to pack them once"),
            "{note}"
        );
        let gpu = Gpu {
            free_bytes: Some(1 << 29),
            memory_bytes: Some(1 << 31),
            ..nvidia(Version(8, 0), Version(12, 0))
        };
        let targets = check_targets_at(&manifest, &cpu(&[]), Place::Gpu(&gpu));
        let cuda = targets.iter().find(|target| target.target == "cuda").unwrap();
        assert_eq!(
            (cuda.verdict, cuda.reasons[1].as_str()),
            (Verdict::Run, "only 512.0 MiB of memory are free")
        );
    }

    #[test]
    fn another_iree_version_is_refused() {
        let mut manifest = several();
        manifest.compiler.version = "3.12.0".into();
        let targets = check_targets(&manifest, &cpu(&["avx2", "fma"]));
        assert!(targets.iter().all(|target| target.verdict == Verdict::Refuse));
        assert_eq!(
            check_iree_version(&manifest).unwrap_err().to_string(),
            "the bundle was compiled by iree 3.12.0, expected iree 3.13.0\n\
             hint: compile the bundle again with this version"
        );
    }

    #[test]
    fn ptx_versions_are_in_order() {
        assert!(PTX_TO_CUDA.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
    }
}
