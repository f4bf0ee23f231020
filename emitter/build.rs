//! Compiles `kernels/cpu/*.c` and `kernels/cuda/*.c` for every instruction set.
//!
//! Objects are freestanding, because they are linked into vmfbs, which have no libc.

#[expect(unreachable_pub, reason = "the library uses the rest")]
#[path = "src/kernels/isa.rs"]
mod isa;

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use isa::Isa;

/// Flags for every kernel. The compiler may not contract or reorder floating point operations.
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
    let isas = if is_clippy() { Vec::new() } else { Isa::ALL.to_vec() };
    let cpus: Vec<Isa> = isas.iter().copied().filter(|isa| !isa.is_gpu()).collect();
    in_parallel(&cpus, |isa| precompile_header(*isa, &prefix, &out));
    // PTX for later GPUs is made of that for the first.
    let compiled = isas.into_iter().filter(|isa| !isa.is_gpu() || *isa == Isa::Sm80);
    let objects: Vec<Object> = compiled.flat_map(|isa| Object::all(isa, &out)).collect();
    let compiled = in_parallel(&objects, |object| object.compile(&prefix, &out));
    let list: String = compiled
        .into_iter()
        .flatten()
        .map(|(name, path)| format!("({name:?}, include_bytes!({path:?})),\n"))
        .collect();
    fs::write(out.join("objects.rs"), format!("&[\n{list}]")).expect("OUT_DIR can be written");
}

/// Calls `work` with each item, as many at a time as cargo allows. Returns the results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(item);
                    done.lock().expect("no thread panics with it").insert(index, result);
                }
            });
        }
    });
    done.into_inner().expect("no thread panicked").into_values().collect()
}

/// Returns the flags for every kernel of a CPU.
fn cpu_flags(isa: Isa) -> Vec<String> {
    let mut flags: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    flags.extend(isa.clang_flags());
    flags.push(format!("--target={}-none-elf", isa.arch()));
    // The linker calls what is visible by way of a table, which IREE's loader leaves as it is on ARM.
    flags.extend(["-fPIC", "-fno-stack-protector", "-fvisibility=hidden"].map(str::to_owned));
    if isa.arch() == "x86_64" {
        flags.push("-mno-red-zone".to_owned());
    }
    flags
}

/// Returns where the header that all kernels include is, in the form that clang reads at once.
fn precompiled_header(isa: Isa, out: &Path) -> PathBuf {
    out.join(format!("common-{}.pch", isa.name()))
}

/// Parses that header. For most files clang would take longest to read the intrinsics that it includes.
fn precompile_header(isa: Isa, prefix: &Path, out: &Path) {
    let mut clang = Command::new(prefix.join("bin/clang"));
    clang.args(cpu_flags(isa)).args(["-x", "c-header", "kernels/common.h", "-o"]);
    run(clang.arg(precompiled_header(isa, out)));
}

/// Returns whether clippy runs this script, as it does beside each build. It links nothing, and this takes minutes.
fn is_clippy() -> bool {
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER").map(PathBuf::from);
    wrapper.is_some_and(|path| path.file_stem().is_some_and(|name| name == "clippy-driver"))
}

/// A file of kernels, compiled for an instruction set.
struct Object {
    source: PathBuf,
    isa: Isa,
    name: String,
    path: PathBuf,
}

impl Object {
    /// Returns every object of an instruction set, sorted by source.
    fn all(isa: Isa, out: &Path) -> Vec<Self> {
        let folder = Path::new("kernels").join(isa.folder());
        let entries = fs::read_dir(folder).expect("the folders of kernels are in this package");
        let mut sources: Vec<PathBuf> =
            entries.map(|entry| entry.expect("entries can be read").path()).collect();
        sources.sort();
        let own = sources.into_iter().filter_map(|source| {
            let file = source.file_name()?.to_str()?.strip_suffix(".c")?;
            (isa.object_isa(file) == Some(isa)).then(|| {
                let name = isa.object_name(file, file);
                Self { path: out.join(&name), source: source.clone(), isa, name }
            })
        });
        own.collect()
    }

    /// Compiles the file, and returns the objects with their names.
    fn compile(&self, prefix: &Path, out: &Path) -> Vec<(String, PathBuf)> {
        let Self { source, isa, path, name } = self;
        let mut clang = Command::new(prefix.join("bin/clang"));
        if isa.is_gpu() {
            run(clang
                .args(FLAGS)
                .args(isa.clang_flags())
                .arg(format!("--target={}-nvidia-cuda", isa.arch()))
                // All threads take one way, which comparisons find sooner than a table in memory.
                .arg("-fno-jump-tables")
                .arg("-S")
                .arg(source)
                .arg("-o")
                .arg(path));
            let text = fs::read_to_string(path).expect("clang wrote it");
            check_ptx(path, &text);
            return Isa::ALL.into_iter().flat_map(|isa| self.split_ptx(isa, &text)).collect();
        }
        clang.args(cpu_flags(*isa)).arg("-include-pch").arg(precompiled_header(*isa, out)).arg("-c");
        run(clang.arg(source).arg("-o").arg(path));
        check_symbols(prefix, path);
        vec![(name.clone(), path.clone())]
    }

    /// Divides PTX for a GPU into a module for each kernel: a driver compiles all of a module that it loads. Returns none if GPUs
    /// of this kind run what is for others.
    fn split_ptx(&self, isa: Isa, marked: &str) -> Vec<(String, PathBuf)> {
        const ENTRY: &str = ".visible .entry ";
        let file = self.source.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        if !isa.is_gpu() || isa.object_isa(file) != Some(isa) {
            return vec![];
        }
        let text = if isa == Isa::Sm80 { without_overlap(marked) } else { with_overlap(marked) };
        let mut parts = text.split(ENTRY);
        let head = parts.next().unwrap_or_default();
        let one = |part: &str| {
            let function = part.split('(').next().unwrap_or_default();
            let name = isa.object_name(file, function);
            let path = self.path.with_file_name(&name);
            fs::write(&path, format!("{head}{ENTRY}{part}")).expect("OUT_DIR can be written");
            (name, path)
        };
        parts.map(one).collect()
    }
}

/// What marks instructions with which kernels overlap, see `kernels/cuda/cuda.h`.
const OVERLAPPED: &str = "//overlapped ";

/// Returns PTX without them and what declares them.
fn without_overlap(marked: &str) -> String {
    let mut pieces = marked.split("\t// begin inline asm\n");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once("\t// end inline asm\n") {
            Some((of, rest)) if of.trim_start().starts_with(OVERLAPPED) => text.push_str(rest),
            _ => text.extend(["\t// begin inline asm\n", piece]),
        }
    }
    let text = text.replace(".visible .global .align 4 .u32 overlapped_launches = 1;\n", "");
    // The runtime would start the next kernel early, which does not wait.
    assert!(!text.contains("overlapped"), "found a mark of overlapping kernels, expected none for sm_80");
    text
}

/// Returns PTX with them, for sm_90: clang writes the rest in the same way for both.
fn with_overlap(marked: &str) -> String {
    const TARGET: [&str; 2] = [".version 7.6\n.target sm_80\n", ".version 7.8\n.target sm_90\n"];
    assert!(marked.contains(TARGET[0]), "found other PTX, expected that of {:?}", TARGET[0]);
    marked.replace(TARGET[0], TARGET[1]).replace(OVERLAPPED, "")
}

/// Checks that an object has no undefined symbols, which would fail only when a bundle is loaded.
fn check_symbols(prefix: &Path, object: &Path) {
    let undefined = run(Command::new(prefix.join("bin/llvm-nm")).arg("--undefined-only").arg(object));
    assert!(
        undefined.is_empty(),
        "{}: found undefined symbols, expected none, because a vmfb has no libraries\n{undefined}",
        object.display()
    );
}

/// Checks that PTX needs no other module, and has no arrays in local memory, which is slow.
fn check_ptx(object: &Path, text: &str) {
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
