//! Runs the kernels on this machine: each program in `kernels/` compares the kernels of its name with a plain reference, on
//! random and extreme input.
//!
//! Each program is built in four ways:
//!
//! - `objects`: linked with the objects that go into bundles, once for every instruction set that this CPU has.
//! - `portable`: with kernels compiled for no instruction set in particular, and traps for undefined behavior.
//! - `emulated`: with kernels for AVX-512, with and without AMX, compiled for AVX2, where functions replace the
//!   instructions.
//! - `arm`: linked with the objects for ARM, and run by Debian's `qemu-user` where this CPU is another. The longest loops take
//!   one of sixteen cases, `MLXCEL_KERNELS=full` takes all.
//!
//! Kernels for GPUs run on the CPU, on `kernels/emulated/cuda.h`. clang comes without the libraries of its sanitizers, so
//! buffers end at a page that cannot be accessed: see `kernels/check.h`.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use mlxcel_artifacts::Machine;
use mlxcel_emitter::Isa;

const KERNELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels");

/// Flags for the tests, and for kernels that have no object. Contraction would round differently than the source.
const FLAGS: &[&str] = &["-std=c11", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"];

/// Traps for undefined behavior, which need no library.
///
/// With checks of pointer overflow, clang 22 miscompiles some loops, which then do not end. Buffers' ends are watched anyway.
const TRAPS: &[&str] =
    &["-fsanitize=undefined", "-fno-sanitize=pointer-overflow", "-fsanitize-trap=undefined"];

/// Flags that leave it to the compiler which helpers it inlines. Where all are, `attention` and `matmul_groups_*` take four
/// times as long to compile. `kernels/emulated` does the same.
const NOT_INLINED: &[&str] = &["-DINLINE=static inline __attribute__((unused))", "-Wno-pass-failed"];

/// Flags that hide NEON, which every 64-bit ARM CPU has, so that the portable path is compiled.
const PORTABLE: &[&str] =
    if cfg!(target_arch = "aarch64") { &["-U__ARM_NEON", "-U__ARM_FEATURE_DOTPROD"] } else { &[] };

/// Flags for emulated AVX-512 and AMX: `kernels/emulated` comes before the compiler's own headers.
const EMULATED: &[&str] =
    &["-march=x86-64-v3", "-I", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels/emulated")];

/// Flags for a program that an emulator runs: it takes one of so many cases in the longest loops, and may take longer.
const SHORT: &[&str] = &["-DONE_IN=16", "-DMAX_SECONDS=1200"];
const LONG: &[&str] = &["-DMAX_SECONDS=1200"];

/// Debian's emulator of ARM CPUs, with one that has what the objects need and little more.
const QEMU: &[&str] = &["qemu-aarch64", "-cpu", "neoverse-n1", "-L", "/usr/aarch64-linux-gnu"];

/// Returns the instruction sets whose objects run on this machine.
fn isas() -> impl Iterator<Item = Isa> {
    let machine = Machine::host();
    let runs = move |isa: &Isa| isa.runs_on(&machine.arch, |feature| machine.cpu_features.contains(feature));
    // Objects are ELF files.
    Isa::ALL.into_iter().filter(|_| cfg!(target_os = "linux")).filter(runs)
}

/// A test program and the kernels that it tests: `<folder>/<file>.c` in `tests/kernels/` and in `kernels/`.
#[derive(Clone, Copy)]
struct Subject {
    folder: &'static str,
    file: &'static str,
}

impl Subject {
    /// Tests the objects that go into bundles, or kernels compiled for this machine if it runs none of the objects.
    fn test_objects(self) {
        let own = |isa: &Isa| isa.folder() == self.folder && isa.object_isa(self.file) == Some(*isa);
        let own: Vec<_> = isas().filter(own).collect();
        // Kernels for GPUs have no object that runs here. `portable` tests them.
        if own.is_empty() && self.folder == "cpu" {
            return self.test("plain", &[""; 0], self.source().as_deref());
        }
        for isa in own {
            self.test_object(isa);
        }
    }

    fn test_object(self, isa: Isa) {
        // Types in `kernels.h` depend on the instruction set only from AVX-512 on. clang takes longer to read the header of
        // AVX2's intrinsics than for everything else.
        let is_plain = isa == Isa::X86_64V3 && self.source().is_some();
        let flags = if is_plain { vec![] } else { isa.clang_flags() };
        self.test(isa.name(), &flags, self.object(isa).as_deref());
    }

    /// Writes the object for an instruction set, if the test links one.
    fn object(self, isa: Isa) -> Option<PathBuf> {
        let source = self.source()?;
        let name = isa.object_name(self.file, self.file);
        let object = mlxcel_emitter::objects().find(|object| object.name == name);
        let object =
            object.unwrap_or_else(|| panic!("{} has no object for {}", source.display(), isa.name()));
        let path = programs().join(&*object.name);
        fs::write(&path, &object.bytes).unwrap();
        Some(path)
    }

    /// Tests the objects for ARM on an emulated CPU. On an ARM CPU, `test_objects` does.
    fn test_arm(self) {
        let isa = Isa::Aarch64;
        if isa.folder() != self.folder || cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
            return;
        }
        let is_full = env::var_os("MLXCEL_KERNELS").is_some_and(|value| value == "full");
        let mut flags = isa.clang_flags();
        flags.push("--target=aarch64-linux-gnu".into());
        flags.extend(if is_full { LONG } else { SHORT }.iter().copied().map(Into::into));
        let has_object = isa.object_isa(self.file) == Some(isa);
        let kernels = if has_object { self.object(isa) } else { self.source() };
        let program = self.build("arm", &flags, kernels.as_deref());
        run(Command::new(QEMU[0]).args(&QEMU[1..]).arg(program));
    }

    fn test_portable(self) {
        self.test("portable", &[TRAPS, NOT_INLINED, PORTABLE].concat(), self.source().as_deref());
    }

    fn test_emulated(self) {
        let Some(source) = self.source() else { return };
        if !isas().any(|isa| isa == Isa::X86_64V3) {
            return;
        }
        let text = fs::read_to_string(&source).unwrap();
        // Weights in groups have a header for each instruction set.
        let in_groups = text.contains("matmul_groups.h");
        let has_lanes = text.contains("float_codes");
        let (has_avx512, has_amx) =
            (in_groups || has_lanes || text.contains("_mm512"), in_groups || text.contains("amx.h"));
        if !has_avx512 && !has_amx {
            return;
        }
        // The test computes references, which takes longest, and is the same for both.
        let test = self.compile_emulated("test", &[], &self.test_source());
        // Where much is emulated, what replaces instructions is optimized. There clang lacks the builtin of vector products.
        let level: &[&str] = if has_amx && !has_lanes { &["-O2", "-DUNOPTIMIZED"] } else { &["-O0"] };
        let run_with = |variant: &str, flags: &[&str]| {
            let kernels = self.compile_emulated(variant, &[flags, level].concat(), &source);
            run(&mut Command::new(self.link(variant, &[&test, &kernels])));
        };
        if has_avx512 {
            run_with("emulated", &[]);
        }
        if has_amx {
            run_with("emulated_without_amx", &["-DWITHOUT_AMX"]);
        }
    }

    /// Builds and runs the test with these kernels.
    fn test(self, variant: &str, flags: &[impl AsRef<OsStr>], kernels: Option<&Path>) {
        run(&mut Command::new(self.build(variant, flags, kernels)));
    }

    fn build(self, variant: &str, flags: &[impl AsRef<OsStr>], kernels: Option<&Path>) -> PathBuf {
        let program = self.program(variant);
        let mut clang = clang();
        clang.args(FLAGS).args(flags).args(["-I", KERNELS, "-I", TESTS]);
        clang.arg(self.test_source()).args(kernels).arg("-o").arg(&program).arg("-lm");
        run(&mut clang);
        program
    }

    /// Compiles a file for emulated instructions. Returns the object's path.
    fn compile_emulated(self, variant: &str, flags: &[&str], source: &Path) -> PathBuf {
        let object = self.program(variant).with_extension("o");
        let mut clang = clang();
        clang.args(FLAGS).args(EMULATED).args(flags).args(["-I", KERNELS, "-I", TESTS]);
        run(clang.arg("-c").arg(source).arg("-o").arg(&object));
        object
    }

    fn link(self, variant: &str, objects: &[&Path]) -> PathBuf {
        let program = self.program(variant);
        run(clang().args(objects).arg("-o").arg(&program).arg("-lm"));
        program
    }

    /// Returns the path of a program.
    fn program(self, variant: &str) -> PathBuf {
        let Self { folder, file } = self;
        programs().join(format!("{folder}_{file}-{variant}"))
    }

    fn test_source(self) -> PathBuf {
        let Self { folder, file } = self;
        Path::new(TESTS).join(folder).join(format!("{file}.c"))
    }

    /// Returns the kernels' source if the test links it. Tests include headers, and kernels for GPUs.
    fn source(self) -> Option<PathBuf> {
        let path = Path::new(KERNELS).join(self.folder).join(format!("{}.c", self.file));
        (path.exists() && self.folder == "cpu").then_some(path)
    }
}

/// Returns the folder for objects and programs.
fn programs() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn clang() -> Command {
    let prefix = env::var_os("MLIR_SYS_220_PREFIX").map_or("/usr/lib/llvm-22".into(), PathBuf::from);
    Command::new(prefix.join("bin/clang"))
}

fn run(command: &mut Command) {
    let hint = "`cargo xtask setup` installs what is needed";
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}; {hint}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
}

macro_rules! tests {
    ($($folder:ident: $($file:ident)*;)*) => {
        $(mod $folder {
            $(mod $file {
                const SUBJECT: crate::Subject =
                    crate::Subject { folder: stringify!($folder), file: stringify!($file) };
                #[test] fn objects() { SUBJECT.test_objects(); }
                #[test] fn portable() { SUBJECT.test_portable(); }
                #[test] fn emulated() { SUBJECT.test_emulated(); }
                #[test] fn arm() { SUBJECT.test_arm(); }
            })*
        })*
        const SUBJECTS: &[(&str, &[&str])] = &[$((stringify!($folder), &[$(stringify!($file)),*])),*];
    };
}

tests! {
    cpu: activate append attention best chain common compensate_halves compensate_superblocks factor gather matmul_bf16 matmul_e4m3
        matmul_e4m3_pairs matmul_f4 matmul_float matmul_groups_2 matmul_groups_3 matmul_groups_4
        matmul_groups_5 matmul_groups_6 matmul_groups_8 matmul_q8 norm panels quantize
        quantize_halves quantize_superblocks rotation route vector_product;
    cuda: append argmax attention copy embed experts gather matmul matmul_experts matvec norm_heads norm_rows
        prefill_attention rotation route stage;
}

#[test]
fn every_kernel_is_tested() {
    for (folder, tested) in SUBJECTS {
        // The test of `attention` includes `attention_q8.c` and every other file whose name begins so.
        let has_test =
            |file: &str| tested.iter().any(|name| file == *name || file.starts_with(&format!("{name}_")));
        for entry in fs::read_dir(Path::new(KERNELS).join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if let Some(file) = name.strip_suffix(".c") {
                assert!(has_test(file), "{folder}/{name}");
            }
        }
    }
}
