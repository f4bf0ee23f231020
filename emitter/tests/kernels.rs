//! The kernels run on this machine: each of `kernels/*.c` compares the kernels of the same name with a plain reference,
//! on random and extreme input.
//!
//! Linked with the objects that go into bundles, for every instruction set that this CPU has; compiled for none in
//! particular, where the source has another version of every kernel; and what is for AVX-512 compiled for AVX2, with SIMDe
//! in place of the instructions. Sanitizers' libraries do not come with clang: instead, buffers end at a page that cannot be
//! touched (see `kernels/check.h`), and what the portable kernels do undefined ends the test.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use mlxcel_artifacts::Machine;
use mlxcel_emitter::Isa;

const KERNELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels");

/// For the tests, and for the kernels that are not compiled yet. Contraction would be another rounding than the source's.
const FLAGS: &[&str] = &["-std=c11", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"];

/// Of what is undefined. They need no library, unlike the reports that clang could give instead. Together with checks of
/// pointers clang 22 compiles some loops wrong, so that they do not end; and pointers are watched anyway.
const TRAPS: &[&str] =
    &["-fsanitize=undefined", "-fno-sanitize=pointer-overflow", "-fsanitize-trap=undefined"];

/// 64-bit ARM always has NEON, so that it takes some pretending to compile what is for machines without.
const PORTABLE: &[&str] =
    if cfg!(target_arch = "aarch64") { &["-U__ARM_NEON", "-U__ARM_FEATURE_DOTPROD"] } else { &[] };

/// For what is for AVX-512, with `kernels/emulated` in front of the compiler's own header. Optimised, what stands for an
/// instruction would take long to compile.
const EMULATED: &[&str] =
    &["-O0", "-march=x86-64-v3", "-I", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels/emulated")];

/// The instruction sets whose objects run here.
fn isas() -> impl Iterator<Item = Isa> {
    let machine = Machine::this();
    let runs = move |isa: &Isa| isa.runs_on(&machine.arch, |feature| machine.cpu_features.contains(feature));
    // Objects are ELF files.
    Isa::ALL.into_iter().filter(|_| cfg!(target_os = "linux")).filter(runs)
}

/// With the objects that go into bundles, or compiled for this machine where none of them runs.
fn test_objects(name: &str) {
    let own: Vec<_> = isas().filter(|isa| isa.compiled_as(name) == Some(*isa)).collect();
    if own.is_empty() {
        return test(name, "plain", &[], source(name).as_deref());
    }
    for isa in own {
        test_object(name, isa);
    }
}

fn test_object(name: &str, isa: Isa) {
    let Some(source) = source(name) else {
        return test(name, isa.name(), isa.march(), None);
    };
    let object = mlxcel_emitter::objects().find(|object| object.name == format!("{name}-{}.o", isa.name()));
    let object = object.unwrap_or_else(|| panic!("{} has no object for {}", source.display(), isa.name()));
    let path = folder().join(object.name);
    fs::write(&path, object.bytes).unwrap();
    // Only where types in `common.h` depend on it: clang takes longer to read the header of AVX2's intrinsics than for
    // everything else.
    let flags = if isa == Isa::X86_64V3 { &[] } else { isa.march() };
    test(name, isa.name(), flags, Some(&path));
}

fn test_emulated(name: &str) {
    let Some(source) = source(name) else { return };
    if fs::read_to_string(&source).unwrap().contains("__AVX512") && isas().any(|isa| isa == Isa::X86_64V3) {
        test(name, "emulated", EMULATED, Some(&source));
    }
}

fn test_portable(name: &str) {
    test(name, "portable", &[TRAPS, PORTABLE].concat(), source(name).as_deref());
}

/// Builds and runs a test with these kernels.
fn test(name: &str, variant: &str, flags: &[&str], kernels: Option<&Path>) {
    let program = folder().join(format!("{name}-{variant}"));
    let prefix = env::var_os("MLIR_SYS_220_PREFIX").map_or("/usr/lib/llvm-22".into(), PathBuf::from);
    let mut clang = Command::new(prefix.join("bin/clang"));
    clang.args(FLAGS).args(flags).args(["-I", KERNELS, "-I", TESTS]);
    clang.arg(format!("{TESTS}/{name}.c")).args(kernels).arg("-o").arg(&program).arg("-lm");
    run(&mut clang);
    run(&mut Command::new(program));
}

/// The kernels' source, to be linked. What is only included has none; those for GPUs are included by their tests.
fn source(name: &str) -> Option<PathBuf> {
    let path = Path::new(KERNELS).join(format!("{name}.c"));
    (path.exists() && !name.starts_with("cuda_")).then_some(path)
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    fs::create_dir_all(&folder).unwrap();
    folder
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
    ($($name:ident)*) => {
        mod objects {
            $(#[test] fn $name() { super::test_objects(stringify!($name)); })*
        }
        mod portable {
            $(#[test] fn $name() { super::test_portable(stringify!($name)); })*
        }
        mod emulated {
            $(#[test] fn $name() { super::test_emulated(stringify!($name)); })*
        }
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

tests! { attention common cuda_argmax cuda_attention cuda_matvec matmul_bf16 matmul_float matmul_q4 matmul_q8 quantize route }

#[test]
fn every_kernel_is_tested() {
    // That of `cuda_attention` has what is in files of that name and more.
    let has_test =
        |name: &str| NAMES.iter().any(|tested| name == *tested || name.starts_with(&format!("{tested}_")));
    for file in fs::read_dir(KERNELS).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "c") {
            assert!(
                path.file_stem().is_some_and(|stem| has_test(&stem.to_string_lossy())),
                "{}",
                path.display()
            );
        }
    }
}
