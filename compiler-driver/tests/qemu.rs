//! Bundles for CPUs that this machine may not have, run by Debian's `qemu-user`: the code is what such a CPU gets, and so are
//! the engine, the C shim and IREE's runtime, which are cross-built.
//!
//! `cargo xtask emulate` builds the programs and starts the test. `MLXCEL_FIXTURES` and `MLXCEL_ORACLE=full` choose fixtures as
//! they do for the oracle, `MLXCEL_EMULATED` a target.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Mutex,
    time::Instant,
};

use mlxcel_compiler_driver::Request;
use mlxcel_models::FAMILIES;

use crate::{
    linked_kernels::object,
    oracle::say,
    programs_run::{built, exported},
    real::{Fixture, OF_PANELS, each, fixtures, is_full, models, request, try_built},
};

/// A CPU that qemu emulates, and the target whose code runs on it.
struct Cpu {
    target: &'static str,
    qemu: &'static str,
    /// qemu's name of a CPU with what the target asks for and little more, on which code for newer ones does not run.
    model: &'static str,
    /// The variable with the program that compares answers, built for this CPU's architecture.
    program: &'static str,
    /// Where its libraries are.
    libraries: &'static str,
    /// Whether qemu 7.2 reads the smallest 16-bit floats as such a CPU does.
    ///
    /// It makes zeros of denormal ones where `MXCSR.DAZ` is set, as the runtime sets it. Of `VCVTPH2PS` Intel's manual says that
    /// the bit is ignored, and CPUs ignore it.
    has_small_halves: bool,
}

const CPUS: [Cpu; 3] = [
    Cpu {
        target: "cpu-aarch64",
        qemu: "qemu-aarch64",
        model: "neoverse-n1",
        program: "MLXCEL_ANSWERS_AARCH64",
        libraries: "/usr/aarch64-linux-gnu",
        has_small_halves: true,
    },
    Cpu {
        target: "cpu-x86-64-v2",
        qemu: "qemu-x86_64",
        model: "Nehalem",
        program: "MLXCEL_ANSWERS_X86_64",
        libraries: "/",
        has_small_halves: true,
    },
    Cpu {
        target: "cpu-x86-64-v3",
        qemu: "qemu-x86_64",
        model: "Haswell",
        program: "MLXCEL_ANSWERS_X86_64",
        libraries: "/",
        has_small_halves: false,
    },
];

/// The word before what a process compared, so that one which ran no test does not pass.
const EXACT: &str = "exact:";

/// A checkpoint with recorded answers.
struct Case {
    family: String,
    name: String,
    folder: PathBuf,
}

impl Case {
    fn of(Fixture { family, name, folder, .. }: Fixture) -> Self {
        Self { family, name, folder }
    }

    /// Every fixture of the oracle, and the encoders'.
    fn all() -> Vec<Self> {
        let encoders = fs::read_dir(models().join("oracle/encoders")).unwrap().map(|entry| {
            let folder = entry.unwrap().path();
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            Self { family: "bert".into(), name, folder }
        });
        let mut all: Vec<Self> =
            Fixture::all_in(&fixtures()).unwrap().into_iter().map(Self::of).chain(encoders).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Those for a CPU: the chosen ones, or of each family the one with the smallest weights.
    fn chosen(cpu: &Cpu) -> Vec<Self> {
        let all = Self::all().into_iter().filter(|case| cpu.has_small_halves || !case.has_halves());
        let only = env::var("MLXCEL_FIXTURES").unwrap_or_default();
        if !only.is_empty() {
            return all.filter(|case| only.split(',').any(|word| case.name.contains(word))).collect();
        }
        if is_full() {
            return all.collect();
        }
        let mut smallest: BTreeMap<String, Self> = BTreeMap::new();
        for case in all {
            let is_larger = |other: &Self| other.bytes() <= case.bytes();
            if !smallest.get(&case.family).is_some_and(is_larger) {
                smallest.insert(case.family.clone(), case);
            }
        }
        smallest.into_values().collect()
    }

    /// Whether the weights are 16-bit floats of IEEE.
    fn has_halves(&self) -> bool {
        fs::read_to_string(self.folder.join("config.json")).unwrap().contains("\"float16\"")
    }

    /// Returns the size of the weights.
    fn bytes(&self) -> u64 {
        let files = fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap());
        let is_weights = |path: &Path| path.extension().is_some_and(|end| end == "safetensors");
        files.filter(|file| is_weights(&file.path())).map(|file| file.metadata().unwrap().len()).sum()
    }
}

impl Cpu {
    /// Compiles a bundle of the case for this CPU's target, and returns what the emulated process says of its answers.
    fn answers(&self, case: &Case) -> Result<String, String> {
        // As the oracle compiles most fixtures.
        let request = Request {
            chunk: (case.family != "bert").then_some(32),
            pack_elements: Some(OF_PANELS),
            ..request(&case.folder, &[self.target])
        };
        let built = try_built(&request)?;
        self.run(built.bundle.path(), &case.folder.join("expected.json"))
    }

    /// Compares the answers of a bundle in an emulated process, and returns what that says.
    fn run(&self, bundle: &Path, expected: &Path) -> Result<String, String> {
        let program = env::var_os(self.program)
            .unwrap_or_else(|| panic!("{} is not set\nhint: cargo xtask emulate", self.program));
        let mut command = Command::new(self.qemu);
        command
            .args(["-cpu", self.model, "-L", self.libraries])
            .arg(program)
            .args(["--exact", "a_bundle_answers_as_recorded", "--ignored", "--nocapture"])
            .env("MLXCEL_BUNDLE", bundle)
            .env("MLXCEL_EXPECTED", expected);
        let Output { status, stdout, stderr } =
            command.output().map_err(|error| format!("{}: {error}\nhint: cargo xtask setup", self.qemu))?;
        let words = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        match words.lines().find_map(|line| line.strip_prefix(EXACT)) {
            Some(compared) if status.success() => Ok(compared.trim().to_owned()),
            _ => Err(format!("{status}\n{words}")),
        }
    }
}

/// The CPUs that are asked for, or all.
fn chosen_cpus() -> impl Iterator<Item = &'static Cpu> {
    let target = env::var("MLXCEL_EMULATED").unwrap_or_default();
    CPUS.iter().filter(move |cpu| target.is_empty() || cpu.target == target)
}

#[test]
#[ignore = "takes programs for other CPUs: cargo xtask emulate"]
fn linked_kernels_on_emulated_cpus_compute_what_jax_computes() {
    let folder = tempfile::tempdir().unwrap();
    let golden = format!("{}:{}", exported("kernel-in.npz").display(), exported("kernel-out.npz").display());
    for cpu in chosen_cpus() {
        let arch = cpu.qemu.trim_start_matches("qemu-");
        let kernel = object(&exported("linear_recurrence.c"), arch, folder.path().join(format!("{arch}.o")));
        let built = built(&exported("kernel.jax"), |request| {
            (request.targets, request.kernels) = (vec![cpu.target.into()], vec![kernel]);
            request.goldens = vec![golden.parse().unwrap()];
        })
        .unwrap();
        let end = cpu.run(built.bundle.path(), Path::new(""));
        let words = end.unwrap_or_else(|words| panic!("{}: {words}", cpu.target));
        say(&format!("{} on {}, a linked kernel: {words}", cpu.target, cpu.model));
    }
}

#[test]
#[ignore = "takes programs for other CPUs: cargo xtask emulate"]
fn models_on_emulated_cpus_answer_as_hugging_face_does() {
    let runs: Vec<(&Cpu, Case)> =
        chosen_cpus().flat_map(|cpu| Case::chosen(cpu).into_iter().map(move |case| (cpu, case))).collect();
    assert!(!runs.is_empty(), "found no fixture and no target of these names");
    let failures = Mutex::new(Vec::new());
    each(&runs, |(cpu, case)| {
        let start = Instant::now();
        let end = cpu.answers(case);
        let words = end.as_deref().unwrap_or("FAILED");
        let Case { family, name, .. } = case;
        say(&format!(
            "{} on {}, {family} {name}: {words}, after {:.0} s",
            cpu.target,
            cpu.model,
            start.elapsed().as_secs_f32()
        ));
        if let Err(words) = end {
            failures.lock().unwrap().push(format!("{name} for {}: {words}", cpu.target));
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), runs.len(), failures.join("\n"));
}

#[test]
fn every_family_has_a_case() {
    let found: BTreeSet<String> = Case::all().into_iter().map(|case| case.family).collect();
    let families: BTreeSet<String> = FAMILIES.iter().map(|family| family.name.to_owned()).collect();
    assert_eq!(found, families);
}
