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
    if let Some(expected) = manifest.newer_format_needed() {
        objections.push(format!("format {} no longer runs, expected at least {expected}", manifest.format));
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

/// Returns the bytes that a GPU needs at least to run a target: of its weights, and of a cache with a page beside the one for
/// padding in each pool.
#[must_use]
pub fn least_gpu_bytes(manifest: &Manifest, target: &TargetArtifact) -> [u64; 2] {
    let pools = target.serving.iter().flat_map(|serving| &serving.pools);
    let pages = pools.map(|pool| pool.page_bytes().unwrap_or(0) as u64 * 2);
    [weight_bytes(manifest, target), pages.fold(0, u64::saturating_add)]
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
mod tests;
