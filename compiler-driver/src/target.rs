//! Targets that modules are compiled for. Each target is one file in `targets/`.

use std::{collections::BTreeSet, str::FromStr};

use mlxcel_artifacts::{CacheType, Driver, Float, Machine, Quant, cpu_features};
use mlxcel_emitter::{Isa, Numerics, Products};
use mlxcel_models::nearest;
use safetensors::Dtype;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::error::{Error, SUGGESTIONS};

/// Name and text of each `targets/<name>.toml`, sorted by name.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/targets.rs"));

/// A target as its file describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// Description in one line, for `mlxcel-compile targets`.
    pub description: String,
    /// Driver that runs the compiled module.
    pub driver: Driver,
    /// What the project's tests ran it on, for `mlxcel-compile targets`.
    pub run: String,
    /// Flags for iree-compile, besides those that follow from `cpu`.
    pub flags: Vec<String>,
    /// CPU, unless the target is another device.
    cpu: Option<Cpu>,
    /// Element types that matrix products can be computed in.
    #[serde(default = "every_float")]
    precisions: Vec<Float>,
    /// Fastest form of matrix products, unless the features of the CPU decide.
    #[serde(default)]
    products: ProductsName,
    /// Set if the target cannot load 16-bit floats.
    #[serde(default)]
    floats_as_bits: bool,
    /// The instruction set of its kernels, if it is a GPU that has some.
    #[serde(default, deserialize_with = "gpu_kernels")]
    kernels: Option<Isa>,
}

/// Forms of [`Products`] that a target's file can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProductsName {
    #[default]
    Native,
    Widened,
}

/// The CPU of a target.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Cpu {
    Word(Host),
    Named(NamedCpu),
}

/// The word `host`: the machine that compiles.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Host {
    Host,
}

/// A CPU by architecture and features.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedCpu {
    /// `x86_64` or `aarch64`.
    arch: String,
    /// Features that the code may use: levels and LLVM's names in the file, LLVM's names alone once it is read.
    features: BTreeSet<String>,
}

/// A target that means the same on every machine: `host` is resolved to a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedTarget {
    /// Name of the target.
    pub name: String,
    /// Driver that runs the compiled module.
    pub driver: Driver,
    /// CPU architecture; empty for a device that is not the CPU.
    pub arch: String,
    /// CPU features that the code may use, sorted.
    pub cpu_features: Vec<String>,
    /// Flags for iree-compile, without input and output.
    pub flags: Vec<String>,
    /// Capabilities of the code generator, which decide what is emitted.
    pub numerics: Numerics,
}

impl Target {
    /// Returns all targets, sorted by name.
    ///
    /// # Errors
    /// A target's file is invalid.
    pub fn all() -> Result<Vec<Self>, Error> {
        FILES.iter().map(|(name, text)| Self::parse(name, text)).collect()
    }

    /// Finds the target called `name`.
    ///
    /// # Errors
    /// There is no such target, or its file is invalid.
    pub fn find(name: &str) -> Result<Self, Error> {
        match FILES.iter().find(|(file, _)| *file == name) {
            Some((_, text)) => Self::parse(name, text),
            None => Err(Error::UnknownTarget {
                found: name.to_owned(),
                nearest: target_for_older_gpus(name).map_or_else(
                    || nearest(name, FILES.iter().map(|(name, _)| *name), SUGGESTIONS),
                    |target| vec![target],
                ),
            }),
        }
    }

    fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let invalid = |source| Error::TargetFile { name: name.to_owned(), source };
        let mut target: Self = toml::from_str(text).map_err(|error| invalid(error.into()))?;
        if let Some(Cpu::Named(NamedCpu { arch, features })) = &mut target.cpu {
            let found = cpu_features(arch, features.iter().map(String::as_str));
            let found = found.map_err(|unknown| invalid(unknown.into()))?;
            *features = found.into_iter().map(str::to_owned).collect();
        }
        Ok(Self { name: name.to_owned(), ..target })
    }

    /// Resolves the target for products in `precision` of weights in `quant`. `host` becomes the CPU of `machine`.
    ///
    /// The flags never say `host`, because a build key must mean the same on every machine.
    #[must_use]
    pub fn resolve(&self, machine: &Machine, precision: Float, quant: Quant) -> ResolvedTarget {
        let mut flags = self.flags.clone();
        let (arch, cpu_features) = match &self.cpu {
            None => (String::new(), Vec::new()),
            Some(Cpu::Word(Host::Host)) => {
                (machine.arch.clone(), machine.cpu_features.iter().cloned().collect())
            }
            Some(Cpu::Named(NamedCpu { arch, features })) => {
                (arch.clone(), features.iter().cloned().collect::<Vec<_>>())
            }
        };
        if !arch.is_empty() {
            // The Linux triple on every system: IREE's own loader reads the resulting ELF.
            flags.push(format!("--iree-llvmcpu-target-triple={arch}-unknown-linux-gnu"));
        }
        if !cpu_features.is_empty() {
            let list = cpu_features.iter().map(|name| format!("+{name}")).collect::<Vec<_>>().join(",");
            flags.push(format!("--iree-llvmcpu-target-cpu-features={list}"));
        }
        let products = match self.products {
            ProductsName::Widened => Products::Widened,
            ProductsName::Native if arch.is_empty() => Products::Native,
            ProductsName::Native => cpu_products(&arch, &cpu_features, precision, quant),
        };
        if !arch.is_empty() && products == Products::Native {
            // Arranges operands in the tiles of matrix instructions. Packed weights need no rearranging.
            flags.push("--iree-opt-data-tiling".into());
        }
        let numerics = Numerics { products, floats_as_bits: self.floats_as_bits, gpu: self.kernels };
        ResolvedTarget { name: self.name.clone(), driver: self.driver, arch, cpu_features, flags, numerics }
    }

    /// Returns whether matrix products in `precision` compile.
    #[must_use]
    pub fn computes(&self, precision: Float) -> bool {
        self.precisions.contains(&precision)
    }

    /// Refuses a precision that the target cannot compute in.
    pub(crate) fn check_precision(&self, precision: Float) -> Result<(), Error> {
        if self.computes(precision) {
            return Ok(());
        }
        Err(Error::TargetPrecision {
            target: self.name.clone(),
            found: precision.to_string(),
            expected: names(&self.precisions),
        })
    }

    /// Refuses a type of cache that the target cannot load or store.
    pub(crate) fn check_cache_type(&self, cache_type: CacheType) -> Result<(), Error> {
        match cache_type {
            CacheType::Float(float) => self.check_precision(float),
            CacheType::Q8 => self.check_bytes("load 8-bit numbers", "--cache-type f32"),
        }
    }

    /// Refuses quantization if the target cannot load the checkpoint's 16-bit floats.
    pub(crate) fn check_quant(&self) -> Result<(), Error> {
        self.check_bytes("quantize weights", "--quant none")
    }

    fn check_bytes(&self, what: &'static str, expected: &'static str) -> Result<(), Error> {
        let refused = || Error::TargetLacks { target: self.name.clone(), what, expected };
        if self.floats_as_bits { Err(refused()) } else { Ok(()) }
    }
}

/// Returns the target with the newest code that an NVIDIA GPU runs, if `name` is that of a target for it alone, as
/// `cuda-sm_100` is: drivers compile code for older GPUs, and the target of the most similar name may be for newer ones.
fn target_for_older_gpus(name: &str) -> Option<&'static str> {
    let capability = |name: &str| name.strip_prefix("cuda-sm_")?.parse::<u32>().ok();
    let wanted = capability(name)?;
    let known = FILES.iter().filter_map(|(name, _)| Some((capability(name)?, *name)));
    known.filter(|(capability, _)| *capability < wanted).max().map(|(_, name)| name)
}

/// Reads the name of an instruction set of GPUs.
fn gpu_kernels<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Isa>, D::Error> {
    let name = String::deserialize(from)?;
    let found = Isa::ALL.into_iter().find(|isa| isa.is_gpu() && isa.name() == name);
    let expected = "expected an instruction set of GPUs, such as sm_80";
    found.map(Some).ok_or_else(|| D::Error::custom(format!("found the kernels `{name}`, {expected}")))
}

/// Returns the fastest form of products on a CPU with these features.
///
/// ARM CPUs with bf16 instructions multiply bf16 natively, because no kernel uses these instructions. Otherwise kernels
/// are fastest. Without kernels, operands are widened to `f32` as they are read.
fn cpu_products(arch: &str, features: &[String], precision: Float, quant: Quant) -> Products {
    let in_bf16 = quant == Quant::None && precision == Float::Bf16;
    if in_bf16 && arch == "aarch64" && features.iter().any(|feature| feature == "bf16") {
        return Products::Native;
    }
    Isa::of_cpu(arch, features).map_or(Products::Widened, Products::Kernels)
}

/// Element type of matrix products in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// The checkpoint's element type if every target can compute in it, otherwise f32.
    #[default]
    Auto,
    /// Operands of this type, `f32` sums.
    Float(Float),
}

impl Precision {
    /// Chooses the type to compute in on all `targets`, for weights in `checkpoint`.
    pub(crate) fn choose(self, checkpoint: Dtype, targets: &[Target]) -> Result<Float, Error> {
        let precision = match (self, Float::of_dtype(checkpoint)) {
            (Self::Float(float), _) => float,
            (Self::Auto, Some(float)) if targets.iter().all(|target| target.computes(float)) => float,
            (Self::Auto, _) => Float::F32,
        };
        targets.iter().try_for_each(|target| target.check_precision(precision))?;
        Ok(precision)
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let float = text.parse().map(Self::Float);
        float.map_err(|_| format!("found {text:?}, expected auto, f32, bf16 or f16"))
    }
}

fn every_float() -> Vec<Float> {
    Float::ALL.to_vec()
}

fn names(list: &[Float]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

/// Returns the name of an element type, such as `bf16`.
pub(crate) fn float_name(dtype: Dtype) -> String {
    format!("{dtype:?}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlxcel_artifacts::NEVER_RUN;

    use crate::test_support::all_targets;

    fn machine(arch: &str, features: &[&str]) -> Machine {
        let cpu_features = features.iter().map(ToString::to_string).collect();
        Machine { arch: arch.into(), cpu_features, memory_bytes: None, gpus: vec![], vulkan_drivers: vec![] }
    }

    fn targets(names: &[&str]) -> Vec<Target> {
        names.iter().map(|name| Target::find(name).unwrap()).collect()
    }

    #[test]
    fn every_target_as_it_is_compiled() {
        let here = machine("x86_64", &["fma", "avx2"]);
        let mut text = String::new();
        for target in all_targets() {
            let floats = |list: &[Float]| names(list).replace(" or ", " ");
            let can = format!("computes {}", floats(&target.precisions));
            let ResolvedTarget { name, driver, arch, cpu_features, flags, numerics } =
                target.resolve(&here, Float::Bf16, Quant::None);
            text +=
                &format!("{name}: {driver} {arch} [{}]\n  {can}\n  {numerics:?}\n", cpu_features.join(" "));
            flags.iter().for_each(|flag| text += &format!("  {flag}\n"));
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn files_are_valid() {
        for target in all_targets() {
            let name = &target.name;
            assert!(!target.description.is_empty(), "{name}");
            assert!(target.driver.is_run() != (target.run == NEVER_RUN), "{name}");
            assert_eq!(target.cpu.is_some(), target.driver == Driver::Local, "{name}");
            assert!(target.flags.iter().all(|flag| flag.starts_with("--iree-")), "{name}");
            let resolved = target.resolve(&machine("aarch64", &["neon"]), Float::F32, Quant::None);
            assert!(!resolved.flags.iter().any(|flag| flag.contains("host")), "{name}");
        }
    }

    #[test]
    fn cpu_resolves_to_the_machine() {
        let resolved = Target::find("cpu").unwrap().resolve(
            &machine("aarch64", &["neon", "dotprod"]),
            Float::F32,
            Quant::None,
        );
        assert_eq!(resolved.arch, "aarch64");
        assert_eq!(resolved.cpu_features, ["dotprod", "neon"]);
        assert_eq!(
            resolved.flags[resolved.flags.len() - 2..],
            [
                "--iree-llvmcpu-target-triple=aarch64-unknown-linux-gnu",
                "--iree-llvmcpu-target-cpu-features=+dotprod,+neon"
            ]
        );
    }

    /// A feature that machine detection does not know would make a target that runs nowhere.
    #[test]
    fn machines_report_the_features_of_targets() {
        let here = Machine::host();
        for (name, typical) in [
            ("cpu-x86-64-v3", "avx2"),
            ("cpu-x86-64-v4", "avx512f"),
            ("cpu-x86-64-v4-vnni", "avx512vnni"),
            ("cpu-x86-64-v4-bf16", "avx512bf16"),
            ("cpu-x86-64-v4-amx", "amx-int8"),
            ("cpu-aarch64", "dotprod"),
        ] {
            let target = Target::find(name).unwrap().resolve(&here, Float::F32, Quant::None);
            if target.arch == here.arch && here.cpu_features.contains(typical) {
                let lacking: Vec<_> =
                    target.cpu_features.iter().filter(|f| !here.cpu_features.contains(*f)).collect();
                assert!(lacking.is_empty(), "{name}: {lacking:?}");
            }
        }
    }

    #[test]
    fn unknown_names_are_answered_with_the_nearest() {
        // Only the nearest is compared: which targets follow depends on those that there are.
        for (name, nearest) in [("cpu2", "cpu"), ("CPU", "cpu"), ("sm_89", "cuda-sm_89"), ("../cuda", "cuda")]
        {
            let message = Target::find(name).unwrap_err().to_string();
            let start = format!("found no target `{name}`, expected one such as {nearest}, ");
            assert!(message.starts_with(&start), "{message}");
            assert!(message.ends_with("\nhint: `mlxcel-compile targets` lists the targets"), "{message}");
        }
        // The code of 12.0 does not run on 10.0, however similar its name is.
        for (name, runs) in
            [("cuda-sm_100", "cuda-sm_90"), ("cuda-sm_103", "cuda-sm_90"), ("cuda-sm_87", "cuda-sm_86")]
        {
            let message = Target::find(name).unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("found no target `{name}`, expected one such as {runs}\n")),
                "{message}"
            );
        }
        let message = Target::find("").unwrap_err().to_string();
        assert!(message.starts_with("found no target ``, expected one such as "), "{message}");
    }

    #[test]
    fn invalid_files_are_refused() {
        let refused = |text: &str| mlxcel_artifacts::report(&Target::parse("x", text).unwrap_err());
        let right = "description = 'x'\ndriver = 'local'\nrun = 'y'\nflags = []\n";
        assert!(Target::parse("x", right).is_ok());
        for (wrong, expected) in [
            (
                right.replace("local", "rocm"),
                "unknown driver `rocm`, expected local, cuda, vulkan, hip or metal",
            ),
            (format!("{right}cpus = 2\n"), "unknown field `cpus`"),
            (format!("{right}precisions = ['f64']\n"), "found \"f64\", expected f32, bf16 or f16"),
            (format!("{right}cpu = 'guest'\n"), "data did not match any variant"),
            (
                format!("{right}[cpu]\narch = 'x86_64'\nfeatures = ['avx-2']\n"),
                "found the CPU feature `avx-2`, expected a level or LLVM's name of a feature of x86_64\n\
                 hint: did you mean avx",
            ),
        ] {
            let error = refused(&wrong);
            assert!(error.starts_with("error: targets/x.toml does not describe a target"), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn auto_is_the_checkpoints_type_if_every_target_can() {
        let auto = |names: &[&str], dtype| Precision::Auto.choose(dtype, &targets(names)).unwrap();
        assert_eq!(auto(&["cpu", "cuda"], Dtype::BF16), Float::Bf16);
        assert_eq!(auto(&["cpu", "cuda"], Dtype::F16), Float::F16);
        assert_eq!(auto(&["cpu", "vulkan"], Dtype::BF16), Float::F32);
        assert_eq!(auto(&["cpu"], Dtype::I8), Float::F32);
    }

    #[test]
    fn precisions_of_a_target_are_limited() {
        let targets = targets(&["cpu", "vulkan"]);
        assert_eq!(
            Precision::Float(Float::Bf16).choose(Dtype::F32, &targets).unwrap_err().to_string(),
            "target vulkan cannot compute in bf16, expected f32\n\
             hint: choose --precision f32, or build a separate bundle for this target"
        );
    }

    #[test]
    fn products_follow_from_the_cpu() {
        let quantized = |features: &[&str], precision, quant| {
            let here = machine("x86_64", features);
            Target::find("cpu").unwrap().resolve(&here, precision, quant).numerics.products
        };
        let products = |features: &[&str], precision| quantized(features, precision, Quant::None);
        let kernels = Products::Kernels;
        assert_eq!(products(&["avx2"], Float::Bf16), Products::Widened);
        assert_eq!(products(&["avx2", "fma", "f16c"], Float::Bf16), Products::Widened);
        let level = |name| cpu_features("x86_64", [name]).unwrap().into_iter().collect::<Vec<_>>();
        let v3 = level("x86-64-v3");
        assert_eq!(products(&v3, Float::Bf16), kernels(Isa::X86_64V3));
        let v4 = level("x86-64-v4");
        assert_eq!(products(&v4, Float::Bf16), kernels(Isa::X86_64V3));
        let vnni = [&v4[..], &["avx512vnni"]].concat();
        assert_eq!(products(&vnni, Float::Bf16), kernels(Isa::X86_64V4Vnni));
        let bf16 = [&vnni[..], &["avx512bf16"]].concat();
        assert_eq!(products(&bf16, Float::Bf16), kernels(Isa::X86_64V4Bf16));
        assert_eq!(products(&bf16, Float::F32), kernels(Isa::X86_64V4Bf16));
        assert_eq!(quantized(&bf16, Float::Bf16, Quant::Q8), kernels(Isa::X86_64V4Bf16));
        let amx = [&bf16[..], &["avx512vbmi", "amx-tile", "amx-int8", "amx-bf16"]].concat();
        assert_eq!(products(&amx, Float::Bf16), kernels(Isa::X86_64V4Amx));
        assert_eq!(products(&amx[..amx.len() - 1], Float::Bf16), kernels(Isa::X86_64V4Bf16));
        let bytes_missing = [&v4[..], &["avx512bf16"]].concat();
        assert_eq!(products(&bytes_missing, Float::Bf16), kernels(Isa::X86_64V3));
    }

    #[test]
    fn arm_cpus_with_bf16_use_it() {
        let here = machine("aarch64", &["neon", "fullfp16", "dotprod", "bf16"]);
        let products = |precision, quant| {
            Target::find("cpu").unwrap().resolve(&here, precision, quant).numerics.products
        };
        assert_eq!(products(Float::Bf16, Quant::None), Products::Native);
        assert_eq!(products(Float::F32, Quant::None), Products::Kernels(Isa::Aarch64));
        assert_eq!(products(Float::Bf16, Quant::Q4), Products::Kernels(Isa::Aarch64));
    }

    #[test]
    fn precisions_by_name() {
        for (text, precision) in [
            ("auto", Precision::Auto),
            ("f32", Precision::Float(Float::F32)),
            ("bf16", Precision::Float(Float::Bf16)),
        ] {
            assert_eq!(text.parse(), Ok(precision));
        }
        assert_eq!(
            "int8".parse::<Precision>().unwrap_err(),
            "found \"int8\", expected auto, f32, bf16 or f16"
        );
    }
}
