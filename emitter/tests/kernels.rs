//! The kernels run on this machine: each of `kernels/*.c` compares the kernels of the same name with a plain reference,
//! on random and extreme input.
//!
//! Twice: linked with the objects that go into bundles, and compiled for no instruction set in particular, where the
//! source has a second version of every kernel. Sanitizers' libraries do not come with clang: instead, buffers end at a
//! page that cannot be touched (see `kernels/check.h`), and what the portable kernels do undefined ends the test.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

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

/// An instruction set with objects that run here.
struct Isa {
    /// As `build.rs` calls it.
    name: &'static str,
    march: &'static str,
    /// Whether types in `common.h` depend on it.
    has_types: bool,
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn isa() -> Option<Isa> {
    let runs = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2");
    runs.then_some(Isa { name: "x86_64_v3", march: "-march=x86-64-v3", has_types: false })
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
fn isa() -> Option<Isa> {
    let runs =
        std::arch::is_aarch64_feature_detected!("dotprod") && std::arch::is_aarch64_feature_detected!("fp16");
    runs.then_some(Isa { name: "aarch64", march: "-march=armv8.2-a+fp16+dotprod", has_types: true })
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn isa() -> Option<Isa> {
    None
}

/// With the objects that go into bundles, or compiled for this machine where none of them runs.
fn test_objects(name: &str) {
    let source = source(name);
    let Some(isa) = isa() else {
        return test(name, "plain", &[], source.as_deref());
    };
    let Some(source) = source else {
        return test(name, isa.name, &[isa.march], None);
    };
    let object = mlxcel_emitter::objects().find(|object| object.name == format!("{name}-{}.o", isa.name));
    let object = object.unwrap_or_else(|| panic!("{} has no object for {}", source.display(), isa.name));
    let path = folder().join(object.name);
    fs::write(&path, object.bytes).unwrap();
    // Only where it matters: clang takes longer to read the header of AVX2's intrinsics than for everything else.
    let flags: &[&str] = if isa.has_types { &[isa.march] } else { &[] };
    test(name, isa.name, flags, Some(&path));
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

/// The kernels' source. What is only included has none.
fn source(name: &str) -> Option<PathBuf> {
    let path = Path::new(KERNELS).join(format!("{name}.c"));
    path.exists().then_some(path)
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
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

tests! { attention common matmul_float matmul_q4 matmul_q8 quantize }

#[test]
fn every_kernel_is_tested() {
    let has_test = |name: &str| NAMES.contains(&name);
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
