//! Verdicts on fake machines.

use std::collections::BTreeMap;

use super::*;
use crate::{
    blob::Blob,
    digest::Digest,
    driver::Driver,
    manifest::{FORMAT_OF_PAGES, sample, tests::manifest},
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
    Machine { arch: "x86_64".into(), cpu_features, memory_bytes: None, gpus: vec![], vulkan_drivers: vec![] }
}

fn nvidia(capability: Version, cuda: Version) -> Gpu {
    let known = Gpu::named(Driver::Cuda, format!("sm {capability}"));
    Gpu { compute_capability: Some(capability), cuda: Some(cuda), ..known }
}

fn chosen(manifest: &Manifest, machine: &Machine, place: Place<'_>) -> Option<String> {
    best_target(&check_targets_at(manifest, machine, place)).map(|best| best.target.to_owned())
}

#[test]
fn a_model_of_an_old_format_is_refused() {
    let old = Manifest { format: FORMAT_OF_PAGES - 1, ..several() };
    let reasons = |manifest: &Manifest| -> Vec<_> {
        let found = check_targets(manifest, &cpu(&["avx2", "fma"]));
        let cpus = found.into_iter().filter(|found| found.target == "cpu-x86-64-v3");
        cpus.map(|found| (found.verdict, found.reasons)).collect()
    };
    let reason = "format 2 no longer runs, expected at least 3".to_owned();
    assert_eq!(reasons(&old), [(Verdict::Refuse, vec![reason])]);
    assert_eq!(reasons(&several())[0].0, Verdict::Run);
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
    assert!(note.ends_with("every start packs the weights: run `mlxcel-pack` to pack them once"), "{note}");
    let gpu = Gpu {
        free_bytes: Some(1 << 29),
        memory_bytes: Some(1 << 31),
        ..nvidia(Version(8, 0), Version(12, 0))
    };
    let targets = check_targets_at(&manifest, &cpu(&[]), Place::Gpu(&gpu));
    let cuda = targets.iter().find(|target| target.target == "cuda").unwrap();
    assert_eq!((cuda.verdict, cuda.reasons[1].as_str()), (Verdict::Run, "only 512.0 MiB of memory are free"));
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
