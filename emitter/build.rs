//! Compiles `kernels/*.c` for every instruction set: freestanding objects that are linked into vmfbs, which have no libc.

#[expect(dead_code, unreachable_pub, reason = "it is the library's, which uses the rest")]
#[path = "src/kernels/isa.rs"]
mod isa;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use isa::Isa;

/// For every kernel. Nothing may be contracted or reordered that the source does not ask for.
const FLAGS: &[&str] = &[
    "-std=c11",
    "-O3",
    "-ffreestanding",
    "-fno-asynchronous-unwind-tables",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Werror",
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
    let objects: Vec<Object<'_>> = sources.iter().flat_map(|source| Object::all(source, &out)).collect();
    let threads = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(object) = objects.get(next.fetch_add(1, Ordering::Relaxed)) {
                    object.compile(&prefix);
                }
            });
        }
    });
    let list: String = objects
        .iter()
        .map(|Object { name, path, .. }| format!("({name:?}, include_bytes!({path:?})),\n"))
        .collect();
    fs::write(out.join("objects.rs"), format!("&[\n{list}]")).expect("OUT_DIR can be written");
}

/// A kernel for an instruction set.
struct Object<'a> {
    source: &'a Path,
    isa: Isa,
    name: String,
    path: PathBuf,
}

impl<'a> Object<'a> {
    /// Those of a source.
    fn all(source: &'a Path, out: &Path) -> Vec<Self> {
        let stem = source.file_stem().expect("it has an extension").to_string_lossy();
        let own = Isa::ALL.into_iter().filter(|isa| isa.compiled_as(&stem) == Some(*isa));
        own.map(|isa| {
            let name = format!("{stem}-{}.{}", isa.name(), isa.extension());
            let path = out.join(&name);
            Self { source, isa, name, path }
        })
        .collect()
    }

    fn compile(&self, prefix: &Path) {
        let Self { source, isa, path, .. } = self;
        let mut clang = Command::new(prefix.join("bin/clang"));
        clang.args(FLAGS).args(isa.march());
        if isa.is_gpu() {
            run(clang
                .arg(format!("--target={}-nvidia-cuda", isa.arch()))
                .arg("-S")
                .arg(source)
                .arg("-o")
                .arg(path));
            return check_ptx(path);
        }
        clang.arg(format!("--target={}-none-elf", isa.arch())).args(["-fPIC", "-fno-stack-protector", "-c"]);
        if isa.arch() == "x86_64" {
            clang.arg("-mno-red-zone");
        }
        run(clang.arg(source).arg("-o").arg(path));
        check_symbols(prefix, path);
    }
}

/// What is missing in an object would be missing when a bundle is loaded, on another machine.
fn check_symbols(prefix: &Path, object: &Path) {
    let undefined = run(Command::new(prefix.join("bin/llvm-nm")).arg("--undefined-only").arg(object));
    assert!(undefined.is_empty(), "{} needs what no vmfb has:\n{undefined}", object.display());
}

/// Likewise. And arrays that are not registers lie in the GPU's own memory, which is slow.
fn check_ptx(object: &Path) {
    let text = fs::read_to_string(object).expect("clang wrote it");
    for word in [".extern", ".local"] {
        assert!(!text.contains(word), "{}: found {word}, expected none", object.display());
    }
}

fn run(command: &mut Command) -> String {
    let hint = "`cargo xtask setup` installs what is needed";
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}; {hint}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?} failed:\n{}", text(&output.stderr));
    text(&output.stdout)
}
