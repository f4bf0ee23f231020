//! Compiles `kernels/*.c` for every instruction set: freestanding objects that are linked into vmfbs, which have no libc.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Each instruction set with what clang is told of it.
const ISAS: [(&str, &[&str]); 2] = [
    ("x86_64_v3", &["--target=x86_64-none-elf", "-march=x86-64-v3", "-mno-red-zone"]),
    ("aarch64", &["--target=aarch64-none-elf", "-march=armv8.2-a+fp16+dotprod"]),
];

/// For every kernel. Nothing may be contracted or reordered that the source does not ask for.
const FLAGS: &[&str] = &[
    "-std=c11",
    "-O3",
    "-ffreestanding",
    "-fPIC",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-c",
];

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let prefix = env::var_os("MLIR_SYS_220_PREFIX").map_or("/usr/lib/llvm-22".into(), PathBuf::from);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut sources: Vec<PathBuf> = fs::read_dir("kernels")
        .expect("the folder of kernels is in this package")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    let mut list = String::from("&[\n");
    for source in &sources {
        let stem = source.file_stem().expect("it has an extension").to_string_lossy();
        for (isa, flags) in ISAS {
            let name = format!("{stem}-{isa}.o");
            let object = out.join(&name);
            let mut clang = Command::new(prefix.join("bin/clang"));
            run(clang.args(FLAGS).args(flags).arg(source).arg("-o").arg(&object));
            check_symbols(&prefix, &object);
            list.push_str(&format!("({name:?}, include_bytes!({object:?})),\n"));
        }
    }
    fs::write(out.join("objects.rs"), list + "]").expect("OUT_DIR can be written");
}

/// What is missing in an object would be missing when a bundle is loaded, on another machine.
fn check_symbols(prefix: &Path, object: &Path) {
    let undefined = run(Command::new(prefix.join("bin/llvm-nm")).arg("--undefined-only").arg(object));
    assert!(undefined.is_empty(), "{} needs what no vmfb has:\n{undefined}", object.display());
}

fn run(command: &mut Command) -> String {
    let hint = "`cargo xtask setup` installs what is needed";
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}; {hint}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?} failed:\n{}", text(&output.stderr));
    text(&output.stdout)
}
