//! Whether a bundle runs on a machine, before anything of it is loaded.
//!
//! A vmfb for the CPU is native code: on a CPU that lacks a feature it uses, it dies of an illegal instruction. One for an
//! NVIDIA GPU is PTX, which GPUs older than it was made for refuse. So the manifest says what a target needs, a [`Machine`]
//! says what there is, and [`judge`] compares.

use std::fmt;

use serde::Serialize;

use super::{
    hardware::{Gpu, Machine},
    place::Place,
};
use crate::{
    error::Error,
    iree::IREE_VERSION,
    manifest::{GpuNeeds, Manifest, Packing, TargetArtifact, entry::Parameter},
    version::Version,
};

/// Whether a target runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it is.
    Run,
    /// Every start packs the weights, until `mlxcel-pack` has done it.
    RunWithPacking,
    /// Not here.
    Refuse,
}

/// What is judged of a target.
#[derive(Debug, Clone, Serialize)]
pub struct Compatibility<'m> {
    /// The target's name.
    pub target: &'m str,
    /// Whether it runs.
    pub verdict: Verdict,
    /// Where: `cpu`, a GPU's name, or a device that may be there.
    pub device: String,
    /// Why not; where it runs, what there is to know.
    pub reasons: Vec<String>,
    #[serde(skip)]
    pub(crate) artifact: &'m TargetArtifact,
    /// Among targets that run in one place the largest is the best.
    #[serde(skip)]
    rank: (usize, Version),
}

/// The versions of CUDA that brought a version of PTX (PTX ISA, release notes); those between have no other one.
const PTX: [(Version, Version); 20] = [
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

/// Every target of a bundle in every place of a machine that its driver is for, the best place first. A target for which
/// there is no place is refused.
#[must_use]
pub fn judge<'m>(manifest: &'m Manifest, machine: &Machine) -> Vec<Compatibility<'m>> {
    let mut found = Vec::new();
    let places = machine.places();
    for (name, target) in &manifest.targets {
        let places = places.iter().filter(|place| place.driver() == target.driver);
        let before = found.len();
        found.extend(places.map(|&place| judge_target(manifest, (name, target), machine, place)));
        if found.len() == before {
            let reason = format!("there is no device of the driver {}", target.driver);
            found.push(Compatibility::new((name, target), Verdict::Refuse, "none".into(), vec![reason]));
        }
    }
    found
}

/// Every target that is for this kind of place.
#[must_use]
pub fn judge_on<'m>(manifest: &'m Manifest, machine: &Machine, place: Place<'_>) -> Vec<Compatibility<'m>> {
    let targets = manifest.targets.iter().filter(|(_, target)| target.driver == place.driver());
    targets.map(|target| judge_target(manifest, (target.0, target.1), machine, place)).collect()
}

/// The best of what runs: of the newest GPU code, or of the most CPU features; of equals the first by name, so that the
/// choice does not depend on chance. `judgements` are of one place.
#[must_use]
pub fn best<'j, 'm>(judgements: &'j [Compatibility<'m>]) -> Option<&'j Compatibility<'m>> {
    let runs = judgements.iter().filter(|judgement| judgement.verdict != Verdict::Refuse);
    runs.reduce(|best, next| if next.rank > best.rank { next } else { best })
}

/// Whether this program can run what the bundle's compiler made at all.
///
/// # Errors
/// When the bundle was compiled by another IREE than [`IREE_VERSION`].
pub fn check_iree(manifest: &Manifest) -> Result<(), Error> {
    if manifest.compiler.version == IREE_VERSION {
        return Ok(());
    }
    Err(Error::OtherIree { found: manifest.compiler.version.clone(), expected: IREE_VERSION })
}

fn judge_target<'m>(
    manifest: &'m Manifest,
    (name, target): (&'m str, &'m TargetArtifact),
    machine: &Machine,
    place: Place<'_>,
) -> Compatibility<'m> {
    let mut objections = Vec::new();
    if let Err(Error::OtherIree { found, expected }) = check_iree(manifest) {
        objections.push(format!("compiled by iree {found}, this program runs iree {expected}"));
    }
    objections.extend(match place {
        Place::Cpu => cpu_objection(target, machine),
        Place::Gpu(gpu) => gpu_objections(target, gpu),
        Place::VulkanDrivers(_) => Vec::new(),
    });
    let weights = weight_bytes(manifest, target);
    let cache = cache_bytes(manifest);
    let memory = match place {
        Place::Cpu => machine.memory_bytes,
        Place::Gpu(gpu) => gpu.memory_bytes,
        Place::VulkanDrivers(_) => None,
    };
    let packs = matches!(&target.packing, Some(Packing { weights: None, .. }));
    let whole = weights.saturating_add(cache);
    // The CPU reads weights where they lie in their files, unless they have to be packed first.
    let needed = if matches!(place, Place::Cpu) && !packs { cache } else { whole };
    if let Some(memory) = memory.filter(|&memory| memory < needed) {
        let what = if needed == cache { "the cache takes" } else { "weights and cache take" };
        objections.push(format!("{what} {}, its memory has {}", Mib(needed), Mib(memory)));
    }
    let device = place.to_string();
    if !objections.is_empty() {
        return Compatibility::new((name, target), Verdict::Refuse, device, objections);
    }
    // What embeds has none.
    let cache = if cache > 0 { format!(", the cache {}", Mib(cache)) } else { String::new() };
    let mut notes = vec![format!("weights take {}{cache}", Mib(weights))];
    if let Place::Gpu(Gpu { free_bytes: Some(free), .. }) = place
        && *free < needed
    {
        notes.push(format!("only {} of its memory is free", Mib(*free)));
    }
    if memory.is_some_and(|memory| memory < whole) {
        notes.push("that is more than its memory: every step reads the disk".into());
    }
    if packs {
        notes.push("every start packs the weights: mlxcel-pack does it once".into());
    }
    if let Place::VulkanDrivers(drivers) = place {
        notes.push(format!("nothing is known but the installed drivers: {}", drivers.join(", ")));
    }
    let verdict = if packs { Verdict::RunWithPacking } else { Verdict::Run };
    Compatibility::new((name, target), verdict, device, notes)
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
        objections.push(format!("compute capability is {found}, expected {compute_capability} or more"));
    }
    let cuda = PTX.iter().find(|(version, _)| *version >= ptx).map(|(_, cuda)| *cuda);
    if let (Some(found), Some(cuda)) = (gpu.cuda, cuda)
        && found < cuda
    {
        objections.push(format!("its driver is for CUDA {found}, expected {cuda} or newer, for PTX {ptx}"));
    }
    objections
}

/// Bytes of the parameters that the target's module reads.
fn weight_bytes(manifest: &Manifest, target: &TargetArtifact) -> u64 {
    let sum = |parameters: &mut dyn Iterator<Item = &Parameter>| {
        parameters.filter_map(Parameter::bytes).fold(0u64, |sum, bytes| sum.saturating_add(bytes as u64))
    };
    match &target.packing {
        Some(packing) => sum(&mut packing.steps.iter().flat_map(|step| &step.results)),
        None => sum(&mut manifest.parameters.iter()),
    }
}

/// Bytes of the cache for the whole context, without what calls write beyond it.
fn cache_bytes(manifest: &Manifest) -> u64 {
    let plan = &manifest.plan;
    let of = |positions: usize, bytes: u64| bytes.saturating_mul(positions as u64);
    let windows =
        plan.windows.iter().map(|window| of(window.positions.min(plan.context), window.position_bytes));
    windows.fold(of(plan.context, plan.position_bytes), u64::saturating_add)
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

    /// The target.
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

/// Bytes, in MiB.
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
            ..sample::target(driver, arch, Blob::of(b"vmfb"), &[], 0)
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
        best(&judge_on(manifest, machine, place)).map(|best| best.target.to_owned())
    }

    #[test]
    fn the_most_features_that_fit_win() {
        let manifest = several();
        let on_cpu = |features: &[&str]| chosen(&manifest, &cpu(features), Place::Cpu);
        assert_eq!(on_cpu(&["avx2", "fma", "f16c"]).unwrap(), "cpu-x86-64-v3");
        assert_eq!(on_cpu(&["avx2", "fma", "avx512f", "avx512bw"]).unwrap(), "cpu-x86-64-v4");
        assert_eq!(on_cpu(&["avx2"]), None);
    }

    #[test]
    fn the_newest_code_that_a_gpu_takes_wins() {
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
        // Nothing known is no reason to refuse.
        assert!(on_gpu(&Gpu::named(Driver::Cuda, "?")).is_some());
        assert_eq!(on_gpu(&Gpu::named(Driver::Vulkan, "llvmpipe")).unwrap(), "vulkan");
    }

    #[test]
    fn every_target_gets_a_verdict_with_its_reason() {
        let machine = Machine { gpus: vec![nvidia(Version(8, 6), Version(11, 5))], ..cpu(&["avx2"]) };
        let manifest = several();
        let judged = judge(&manifest, &machine);
        let lines: Vec<_> = judged
            .iter()
            .map(|j| format!("{} on {}: {}: {}", j.target, j.device, j.verdict, j.reasons.join("; ")))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        cpu-aarch64 on cpu: refuse: compiled for aarch64, the cpu is x86_64
        cpu-x86-64-v3 on cpu: refuse: the cpu lacks fma (needed: avx2, fma)
        cpu-x86-64-v4 on cpu: refuse: the cpu lacks fma, avx512f, avx512bw (needed: avx2, fma, avx512f, avx512bw)
        cuda on sm 8.6: refuse: its driver is for CUDA 11.5, expected 11.6 or newer, for PTX 7.6
        cuda-sm_89 on sm 8.6: refuse: compute capability is 8.6, expected 8.9 or more; its driver is for CUDA 11.5, expected 11.6 or newer, for PTX 7.6
        vulkan on none: refuse: there is no device of the driver vulkan
        ");
    }

    #[test]
    fn memory_and_packing() {
        let mut manifest = several();
        manifest.plan.position_bytes = 1 << 20;
        manifest.plan.context = 1024;
        let verdict = |manifest: &Manifest, memory_bytes| {
            let machine = Machine { memory_bytes, ..cpu(&["avx2", "fma"]) };
            let judged = judge_on(manifest, &machine, Place::Cpu);
            let found = judged.iter().find(|judgement| judgement.target == "cpu-x86-64-v3").unwrap();
            (found.verdict, found.reasons.join("; "))
        };
        let (refused, reason) = verdict(&manifest, Some(1 << 29));
        assert_eq!(
            (refused, reason.as_str()),
            (Verdict::Refuse, "the cache takes 1024.0 MiB, its memory has 512.0 MiB")
        );
        // Weights are read where they lie.
        let (runs, note) = verdict(&manifest, Some(1 << 30));
        assert_eq!(runs, Verdict::Run);
        assert!(note.ends_with("that is more than its memory: every step reads the disk"), "{note}");
        assert_eq!(verdict(&manifest, Some(1 << 31)).0, Verdict::Run);
        assert_eq!(verdict(&manifest, None).0, Verdict::Run);
        let packing = Packing {
            build_key: Digest::of(b"packing"),
            vmfb: Blob::of(b"vmfb"),
            weights: None,
            made_from: BTreeMap::new(),
            steps: vec![],
        };
        manifest.targets.get_mut("cpu-x86-64-v3").unwrap().packing = Some(packing);
        let (packs, note) = verdict(&manifest, None);
        assert_eq!(packs, Verdict::RunWithPacking);
        assert!(note.ends_with("every start packs the weights: mlxcel-pack does it once"), "{note}");
        let gpu = Gpu {
            free_bytes: Some(1 << 29),
            memory_bytes: Some(1 << 31),
            ..nvidia(Version(8, 0), Version(12, 0))
        };
        let judged = judge_on(&manifest, &cpu(&[]), Place::Gpu(&gpu));
        let cuda = judged.iter().find(|judgement| judgement.target == "cuda").unwrap();
        assert_eq!(
            (cuda.verdict, cuda.reasons[1].as_str()),
            (Verdict::Run, "only 512.0 MiB of its memory is free")
        );
    }

    #[test]
    fn another_iree_runs_nothing() {
        let mut manifest = several();
        manifest.compiler.version = "3.12.0".into();
        let judged = judge(&manifest, &cpu(&["avx2", "fma"]));
        assert!(judged.iter().all(|judgement| judgement.verdict == Verdict::Refuse));
        assert_eq!(
            check_iree(&manifest).unwrap_err().to_string(),
            "bundle was compiled by iree 3.12.0, this program runs iree 3.13.0\n\
             hint: compile the bundle again with this version"
        );
    }

    #[test]
    fn ptx_versions_are_in_order() {
        assert!(PTX.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
    }
}
