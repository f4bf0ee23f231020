//! Which targets run on which machines: a bundle with all targets, judged for made-up machines.

use std::collections::{BTreeMap, BTreeSet};

use mlxcel_artifacts::{
    Blob, Driver, Float, Gpu, GpuNeeds, Machine, Manifest, Place, TargetArtifact, Verdict, Version,
    best_target, check_targets, check_targets_at, sample,
};
use mlxcel_compiler_driver::{Quant, Target};

const AMPERE: GpuNeeds = GpuNeeds { compute_capability: Version(8, 0), ptx: Version(7, 6) };

/// CPU features that each level adds.
const V2: &[&str] = &["sahf", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"];
const V3: &[&str] = &["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"];
const V4: &[&str] = &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];
const VNNI: &[&str] = &["avx512vnni"];
const BF16: &[&str] = &["avx512bf16"];
const AMX: &[&str] = &["avx512vbmi", "amx-tile", "amx-int8", "amx-bf16", "avx512fp16"];
const ARM: &[&str] = &["neon", "dotprod", "fp-armv8", "lse", "fullfp16", "rdm", "crc"];

/// Returns a manifest with every target except `cpu`, which depends on the machine.
fn manifest() -> Manifest {
    let compiling = machine("x86_64", &[], vec![]);
    let mut targets = BTreeMap::new();
    for target in Target::all().unwrap().into_iter().filter(|target| target.name != "cpu") {
        let resolved = target.resolve(&compiling, Float::F32, Quant::None);
        // The versions that `ptx.rs` finds in the code of iree-compile 3.13, and in that of kernels.
        let code = resolved.flags.iter().find_map(|flag| flag.strip_prefix("--iree-cuda-target=sm_"));
        let kernels = resolved.numerics.gpu.and_then(|isa| isa.name().strip_prefix("sm_"));
        let newest = [code, kernels].into_iter().flatten().map(|sm| sm.parse::<u32>().unwrap()).max();
        let gpu =
            newest.map(|number| GpuNeeds { compute_capability: Version(number / 10, number % 10), ..AMPERE });
        let artifact = TargetArtifact {
            cpu_features: resolved.cpu_features,
            gpu,
            flags: resolved.flags,
            ..sample::target(resolved.driver, &resolved.arch, Blob::of(b"vmfb"), 64, 100)
        };
        targets.insert(resolved.name, artifact);
    }
    Manifest { targets, ..sample::manifest(64, 100) }
}

fn machine(arch: &str, levels: &[&[&str]], gpus: Vec<Gpu>) -> Machine {
    let cpu_features = levels.iter().flat_map(|level| level.iter().map(ToString::to_string)).collect();
    Machine { arch: arch.into(), cpu_features, memory_bytes: None, gpus, vulkan_drivers: vec![] }
}

fn nvidia(name: &str, major: u32, minor: u32) -> Gpu {
    let compute_capability = Some(Version(major, minor));
    Gpu { compute_capability, cuda: Some(Version(13, 0)), ..Gpu::named(Driver::Cuda, name) }
}

/// Returns the targets that run on the machine, and the best of them in each place.
fn running<'m>(manifest: &'m Manifest, machine: &Machine) -> (BTreeSet<&'m str>, Vec<&'m str>) {
    let checked = check_targets(manifest, machine);
    let runs = checked.iter().filter(|target| target.verdict != Verdict::Refuse);
    let gpus = machine.gpus.iter().map(Place::Gpu);
    let best_of = |place| best_target(&check_targets_at(manifest, machine, place)).map(|best| best.target);
    (runs.map(|target| target.target).collect(), gpus.chain([Place::Cpu]).filter_map(best_of).collect())
}

#[test]
fn every_target_on_every_kind_of_machine() {
    let manifest = manifest();
    let [v2, v3, v4, vnni, bf16, amx, arm] = [
        "cpu-x86-64-v2",
        "cpu-x86-64-v3",
        "cpu-x86-64-v4",
        "cpu-x86-64-v4-vnni",
        "cpu-x86-64-v4-bf16",
        "cpu-x86-64-v4-amx",
        "cpu-aarch64",
    ];
    let x86 = |levels: &[&[&str]]| machine("x86_64", levels, vec![]);
    let gpu = |gpu: Gpu| machine("x86_64", &[], vec![gpu]);
    let cases: Vec<(&str, Machine, Vec<&str>, Vec<&str>)> = vec![
        ("a CPU of 2003", x86(&[]), vec![], vec![]),
        ("Nehalem", x86(&[V2]), vec![v2], vec![v2]),
        ("Haswell, Zen 2", x86(&[V2, V3]), vec![v2, v3], vec![v3]),
        ("Skylake-SP", x86(&[V2, V3, V4]), vec![v2, v3, v4], vec![v4]),
        ("Ice Lake-SP", x86(&[V2, V3, V4, VNNI]), vec![v2, v3, v4, vnni], vec![vnni]),
        ("Zen 4", x86(&[V2, V3, V4, VNNI, BF16]), vec![v2, v3, v4, vnni, bf16], vec![bf16]),
        (
            "Sapphire Rapids",
            x86(&[V2, V3, V4, VNNI, BF16, AMX]),
            vec![v2, v3, v4, vnni, bf16, amx],
            vec![amx],
        ),
        ("Graviton 3", machine("aarch64", &[ARM], vec![]), vec![arm], vec![arm]),
        ("RISC-V", machine("riscv64", &[], vec![]), vec![], vec![]),
        ("T4", gpu(nvidia("T4", 7, 5)), vec![], vec![]),
        ("A100", gpu(nvidia("A100", 8, 0)), vec!["cuda"], vec!["cuda"]),
        ("RTX 3090", gpu(nvidia("RTX 3090", 8, 6)), vec!["cuda", "cuda-sm_86"], vec!["cuda-sm_86"]),
        ("L4", gpu(nvidia("L4", 8, 9)), vec!["cuda", "cuda-sm_86", "cuda-sm_89"], vec!["cuda-sm_89"]),
        (
            "H100",
            gpu(nvidia("H100", 9, 0)),
            vec!["cuda", "cuda-sm_86", "cuda-sm_89", "cuda-sm_90"],
            vec!["cuda-sm_90"],
        ),
        (
            "RTX 5090",
            gpu(nvidia("RTX 5090", 12, 0)),
            vec!["cuda", "cuda-sm_120", "cuda-sm_86", "cuda-sm_89", "cuda-sm_90"],
            vec!["cuda-sm_120"],
        ),
        (
            "GB10",
            gpu(nvidia("GB10", 12, 1)),
            vec!["cuda", "cuda-sm_120", "cuda-sm_121", "cuda-sm_86", "cuda-sm_89", "cuda-sm_90"],
            vec!["cuda-sm_121"],
        ),
        ("MI300X", gpu(Gpu::named(Driver::Hip, "MI300X")), vec![], vec![]),
        ("Radeon", gpu(Gpu::named(Driver::Vulkan, "Radeon")), vec!["vulkan"], vec!["vulkan"]),
        (
            "a desktop with an A100 beside its CPU",
            machine("x86_64", &[V2, V3], vec![nvidia("A100", 8, 0)]),
            vec![v2, v3, "cuda"],
            vec!["cuda", v3],
        ),
    ];
    let mut seen = BTreeSet::new();
    for (name, machine, runs, chosen) in cases {
        let (found, best) = running(&manifest, &machine);
        assert_eq!(found, runs.iter().copied().collect(), "{name}");
        assert_eq!(best, chosen, "{name}");
        seen.extend(found);
    }
    // Every target whose driver the runtime has runs on one of the machines.
    let has_driver = manifest.targets.iter().filter(|(_, target)| target.driver.is_run());
    assert_eq!(seen, has_driver.map(|(name, _)| name.as_str()).collect());
}

/// There is no code for these alone: drivers compile that of 9.0, and refuse that of 12.0.
#[test]
fn gpus_between_two_targets_run_the_older_ones() {
    let manifest = manifest();
    for gpu in [nvidia("B200", 10, 0), nvidia("B300", 10, 3), nvidia("Thor", 11, 0)] {
        let machine = machine("x86_64", &[], vec![gpu]);
        let (found, best) = running(&manifest, &machine);
        assert_eq!(found, ["cuda", "cuda-sm_86", "cuda-sm_89", "cuda-sm_90"].into());
        assert_eq!(best, ["cuda-sm_90"]);
    }
}
