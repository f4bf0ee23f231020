//! Targets: what a module is compiled for, as data. Each is one file in `targets/`.

use std::{collections::BTreeSet, str::FromStr};

use mlxcel_artifacts::{CacheType, Driver, Float, Machine, Quant};
use mlxcel_emitter::{Isa, Numerics, Products};
use safetensors::Dtype;
use serde::Deserialize;

use crate::Error;

/// Name and text of every `targets/<name>.toml`, sorted by name.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/targets.rs"));

/// A target as its file describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// One line for a person choosing a target.
    pub description: String,
    /// The driver that runs what is compiled.
    pub driver: Driver,
    /// The flags given to iree-compile, before those that follow from `cpu`.
    pub flags: Vec<String>,
    /// The CPU, where the target is one.
    cpu: Option<Cpu>,
    /// What matrix products may be computed in.
    #[serde(default = "every_float")]
    precisions: Vec<Float>,
    /// How it does best at matrix products, where that does not follow from its CPU's features.
    #[serde(default)]
    products: ProductsName,
    /// Whether it cannot load 16-bit floats.
    #[serde(default)]
    floats_as_bits: bool,
}

/// The ways of [`Products`] that a file can name.
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
    /// LLVM's names of the features that the code may use.
    features: BTreeSet<String>,
}

/// A target with nothing left to find out: on another machine it would mean the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The target's name.
    pub name: String,
    /// The driver that runs it.
    pub driver: Driver,
    /// CPU architecture; empty for a device that is not the CPU.
    pub arch: String,
    /// CPU features the code may use, sorted.
    pub cpu_features: Vec<String>,
    /// Every flag given to iree-compile but input and output.
    pub flags: Vec<String>,
    /// What its code generator can do, which decides what is emitted for it.
    pub numerics: Numerics,
}

impl Target {
    /// Every target, sorted by name.
    ///
    /// # Errors
    /// A target's file is not a target.
    pub fn all() -> Result<Vec<Self>, Error> {
        FILES.iter().map(|(name, text)| Self::parse(name, text)).collect()
    }

    /// The target called `name`.
    ///
    /// # Errors
    /// There is none of that name, or its file is not a target.
    pub fn find(name: &str) -> Result<Self, Error> {
        match FILES.iter().find(|(file, _)| *file == name) {
            Some((_, text)) => Self::parse(name, text),
            None => Err(Error::UnknownTarget {
                found: name.to_owned(),
                known: FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let invalid = |source| Error::TargetFile { name: name.to_owned(), source: Box::new(source) };
        let target: Self = toml::from_str(text).map_err(invalid)?;
        Ok(Self { name: name.to_owned(), ..target })
    }

    /// The target with `machine` put in for `host`, for products in `precision` of weights in `quant`.
    ///
    /// The flags never say `host`: a build key made of them would then mean something else on every machine.
    #[must_use]
    pub fn resolve(&self, machine: &Machine, precision: Float, quant: Quant) -> Resolved {
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
            // Always the Linux triple: what comes out is an ELF that IREE's own loader reads, on any system.
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
            // Operands in the tiles that the instructions take; what is packed already gains nothing by it.
            flags.push("--iree-opt-data-tiling".into());
        }
        let gpu = (self.driver == Driver::Cuda).then_some(Isa::Sm80);
        let numerics = Numerics { products, floats_as_bits: self.floats_as_bits, gpu };
        Resolved { name: self.name.clone(), driver: self.driver, arch, cpu_features, flags, numerics }
    }

    /// Whether matrix products in `precision` compile.
    #[must_use]
    pub fn computes(&self, precision: Float) -> bool {
        self.precisions.contains(&precision)
    }

    /// Refuses a precision that the target cannot compile.
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

    /// Refuses a cache that the target cannot load or store.
    pub(crate) fn check_kv(&self, kv: CacheType) -> Result<(), Error> {
        match kv {
            CacheType::Float(float) => self.check_precision(float),
            CacheType::Q8 if self.floats_as_bits => Err(Error::TargetKv { target: self.name.clone() }),
            CacheType::Q8 => Ok(()),
        }
    }

    /// Refuses to quantise where the checkpoint's floats cannot be loaded as such.
    pub(crate) fn check_quant(&self) -> Result<(), Error> {
        if self.floats_as_bits { Err(Error::TargetQuant { target: self.name.clone() }) } else { Ok(()) }
    }
}

/// What a CPU with these features does best at: bf16 products where it is an ARM CPU with instructions for them, which no
/// kernel uses, else kernels, else `f32` products of what is stored, which reads no more memory.
fn cpu_products(arch: &str, features: &[String], precision: Float, quant: Quant) -> Products {
    let in_bf16 = quant == Quant::None && precision == Float::Bf16;
    if in_bf16 && arch == "aarch64" && features.iter().any(|feature| feature == "bf16") {
        return Products::Native;
    }
    Isa::of_cpu(arch, features).map_or(Products::Widened, Products::Kernels)
}

/// What the products are computed in, as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// The checkpoint's element type where every target can compute in it, else f32.
    #[default]
    Auto,
    /// Operands of this type, `f32` sums.
    Float(Float),
}

impl Precision {
    /// The type to compute in on all of `targets` for a checkpoint in `checkpoint`.
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

/// `f32`, `bf16`, `f16`: how element types are spelled in target files, manifests and on command lines.
pub(crate) fn float_name(dtype: Dtype) -> String {
    format!("{dtype:?}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for target in Target::all().unwrap() {
            let floats = |list: &[Float]| names(list).replace(" or ", " ");
            let can = format!("computes {}", floats(&target.precisions));
            let Resolved { name, driver, arch, cpu_features, flags, numerics } =
                target.resolve(&here, Float::Bf16, Quant::None);
            text +=
                &format!("{name}: {driver} {arch} [{}]\n  {can}\n  {numerics:?}\n", cpu_features.join(" "));
            flags.iter().for_each(|flag| text += &format!("  {flag}\n"));
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn files_are_sound() {
        for target in Target::all().unwrap() {
            let name = &target.name;
            assert!(!target.description.is_empty(), "{name}");
            assert_eq!(target.cpu.is_some(), target.driver == Driver::Local, "{name}");
            assert!(target.flags.iter().all(|flag| flag.starts_with("--iree-")), "{name}");
            let resolved = target.resolve(&machine("aarch64", &["neon"]), Float::F32, Quant::None);
            assert!(!resolved.flags.iter().any(|flag| flag.contains("host")), "{name}");
        }
    }

    #[test]
    fn cpu_is_the_machine_it_is_asked_on() {
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

    /// A feature that no machine reports would make a target that runs nowhere.
    #[test]
    fn machines_report_what_targets_ask_for() {
        let here = Machine::host();
        for (name, telling) in [
            ("cpu-x86-64-v3", "avx2"),
            ("cpu-x86-64-v4", "avx512f"),
            ("cpu-x86-64-v4-vnni", "avx512vnni"),
            ("cpu-x86-64-v4-bf16", "avx512bf16"),
            ("cpu-x86-64-v4-amx", "amx-int8"),
            ("cpu-aarch64", "dotprod"),
        ] {
            let target = Target::find(name).unwrap().resolve(&here, Float::F32, Quant::None);
            if target.arch == here.arch && here.cpu_features.contains(telling) {
                let lacking: Vec<_> =
                    target.cpu_features.iter().filter(|f| !here.cpu_features.contains(*f)).collect();
                assert!(lacking.is_empty(), "{name}: {lacking:?}");
            }
        }
    }

    #[test]
    fn names_that_are_no_target() {
        for name in ["cpu2", "../targets/cpu", "CPU", ""] {
            assert_eq!(
                Target::find(name).unwrap_err().to_string(),
                format!(
                    "found no target `{name}`, expected one of cpu, cpu-aarch64, cpu-x86-64-v2, cpu-x86-64-v3, cpu-x86-64-v4, \
                     cpu-x86-64-v4-amx, cpu-x86-64-v4-bf16, cpu-x86-64-v4-vnni, cuda, cuda-sm_120, cuda-sm_121, cuda-sm_86, \
                     cuda-sm_89, vulkan\n\
                     hint: --list-targets says what each target is"
                )
            );
        }
    }

    #[test]
    fn files_that_are_no_target() {
        let refused = |text: &str| mlxcel_artifacts::report(&Target::parse("x", text).unwrap_err());
        let right = "description = 'x'\ndriver = 'local'\nflags = []\n";
        assert!(Target::parse("x", right).is_ok());
        for (wrong, expected) in [
            (right.replace("local", "rocm"), "unknown driver `rocm`, expected local, cuda or vulkan"),
            (format!("{right}cpus = 2\n"), "unknown field `cpus`"),
            (format!("{right}precisions = ['f64']\n"), "found \"f64\", expected f32, bf16 or f16"),
            (format!("{right}cpu = 'guest'\n"), "data did not match any variant"),
        ] {
            let error = refused(&wrong);
            assert!(error.starts_with("error: targets/x.toml does not describe a target"), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn auto_is_the_checkpoints_type_where_every_target_can() {
        let auto = |names: &[&str], dtype| Precision::Auto.choose(dtype, &targets(names)).unwrap();
        assert_eq!(auto(&["cpu", "cuda"], Dtype::BF16), Float::Bf16);
        assert_eq!(auto(&["cpu", "cuda"], Dtype::F16), Float::F16);
        assert_eq!(auto(&["cpu", "vulkan"], Dtype::BF16), Float::F32);
        assert_eq!(auto(&["cpu"], Dtype::I8), Float::F32);
    }

    #[test]
    fn what_a_target_cannot_do_is_refused() {
        let targets = targets(&["cpu", "vulkan"]);
        assert_eq!(
            Precision::Float(Float::Bf16).choose(Dtype::F32, &targets).unwrap_err().to_string(),
            "target vulkan cannot compute in bf16, expected f32\n\
             hint: choose --precision f32, or make a bundle of its own for this target"
        );
    }

    #[test]
    fn products_follow_from_the_cpu() {
        let quantised = |features: &[&str], precision, quant| {
            let here = machine("x86_64", features);
            Target::find("cpu").unwrap().resolve(&here, precision, quant).numerics.products
        };
        let products = |features: &[&str], precision| quantised(features, precision, Quant::None);
        let kernels = Products::Kernels;
        assert_eq!(products(&["avx2"], Float::Bf16), Products::Widened);
        assert_eq!(products(&["avx2", "fma", "f16c"], Float::Bf16), Products::Widened);
        let v3 = ["avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"];
        assert_eq!(products(&v3, Float::Bf16), kernels(Isa::X86_64V3));
        let v4 = [&v3[..], &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]].concat();
        assert_eq!(products(&v4, Float::Bf16), kernels(Isa::X86_64V3));
        let vnni = [&v4[..], &["avx512vnni"]].concat();
        assert_eq!(products(&vnni, Float::Bf16), kernels(Isa::X86_64V4Vnni));
        let bf16 = [&vnni[..], &["avx512bf16"]].concat();
        assert_eq!(products(&bf16, Float::Bf16), kernels(Isa::X86_64V4Bf16));
        assert_eq!(products(&bf16, Float::F32), kernels(Isa::X86_64V4Bf16));
        assert_eq!(quantised(&bf16, Float::Bf16, Quant::Q8), kernels(Isa::X86_64V4Bf16));
        let amx = [&bf16[..], &["amx-tile", "amx-int8", "amx-bf16"]].concat();
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
