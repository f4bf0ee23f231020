//! The C interface: its examples, compiled as a user compiles them, and its misuse, also under valgrind.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use mlxcel_compiler_driver::{Request, WeightSource};
use tempfile::TempDir;

use crate::{
    programs_run::{self, exported},
    real::{Built, built, changed, models, program, request},
};

/// A target whose code valgrind runs: it knows no AVX-512.
const FOR_VALGRIND: &str = "cpu-x86-64-v2";

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/capi")
}

/// A folder with the interface as it is installed, and with the programs of its examples and tests.
static INSTALLED: LazyLock<TempDir> = LazyLock::new(|| {
    let prefix = tempfile::tempdir().unwrap();
    let at = |name: &str| prefix.path().join(name);
    let built = program("mlxcel-run").with_file_name("deps");
    assert!(
        built.join("libmlxcel.so").exists(),
        "found no libmlxcel.so, which the tests of the whole workspace build\nhint: cargo build -p mlxcel-capi"
    );
    fs::create_dir_all(at("lib/pkgconfig")).unwrap();
    fs::create_dir(at("include")).unwrap();
    fs::copy(built.join("libmlxcel.so"), at("lib/libmlxcel.so.0")).unwrap();
    symlink("libmlxcel.so.0", at("lib/libmlxcel.so")).unwrap();
    symlink(built.join("libmlxcel.a"), at("lib/libmlxcel.a")).unwrap();
    fs::copy(sources().join("include/mlxcel.h"), at("include/mlxcel.h")).unwrap();
    let pc = fs::read_to_string(sources().join("mlxcel.pc.in")).unwrap();
    fs::write(at("lib/pkgconfig/mlxcel.pc"), pc.replace("@VERSION@", env!("CARGO_PKG_VERSION"))).unwrap();
    for (compiler, source, program, options) in [
        ("cc", "examples/generate.c", "generate", "--cflags --libs"),
        ("cc", "examples/train.c", "train", "--cflags --libs"),
        ("c++", "examples/streams.cpp", "streams", "--cflags --libs"),
        ("cc", "tests/misuse.c", "misuse", "--cflags --libs"),
        ("cc", "tests/options.c", "options", "--cflags --libs"),
        ("cc", "examples/generate.c", "generate-static", "--cflags --libs --static"),
        ("cc", "tests/without_io_uring.c", "without_io_uring", "--cflags"),
    ] {
        let flags = Command::new("pkg-config")
            .args(options.split(' '))
            .arg("mlxcel")
            .env("PKG_CONFIG_PATH", at("lib/pkgconfig"))
            .output()
            .expect("cargo xtask setup installs it");
        let flags = String::from_utf8(flags.stdout).unwrap();
        let flags =
            if options.ends_with("static") { flags.replace("-lmlxcel", "-l:libmlxcel.a") } else { flags };
        let mut command = Command::new(compiler);
        command.arg(sources().join(source)).args(["-Wall", "-Wextra", "-Werror", "-g", "-pthread", "-o"]);
        command.arg(at(program)).args(flags.split_whitespace());
        command.arg(format!("-Wl,-rpath,{}", at("lib").display()));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    }
    prefix
});

/// Runs a program of the interface, and returns what it printed.
fn run(wrapper: &[&str], name: &str, arguments: &[&Path]) -> String {
    let at = |name: &str| INSTALLED.path().join(name);
    let mut command = match wrapper {
        [] => Command::new(at(name)),
        wrapper => {
            let mut command = Command::new(at("without_io_uring"));
            command.args(wrapper).arg(at(name));
            command
        }
    };
    let output = command.args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{name} {arguments:?} failed:\n{}{}", text[0], text[1]);
    text[0].clone()
}

fn demo() -> Built {
    built(&request(&models().join("demo"), &["cpu"]))
}

/// A small model with the demo's tokenizer. valgrind takes 40 times as long for everything, and iree-compile takes long where
/// there are no kernels.
fn small() -> Built {
    let words = [
        ("\"hidden_size\": 192", "\"hidden_size\": 64"),
        ("\"intermediate_size\": 512", "\"intermediate_size\": 64"),
        ("\"num_attention_heads\": 6", "\"num_attention_heads\": 2"),
        ("\"num_hidden_layers\": 4", "\"num_hidden_layers\": 1"),
    ];
    let folder = changed(&models().join("demo"), &words);
    let weights = WeightSource::Random(1);
    built(&Request { weights, chunk: Some(32), ..request(folder.path(), &[FOR_VALGRIND]) })
}

fn adam(target: &str) -> programs_run::Built {
    programs_run::built(&exported("adam.jax"), |request| request.targets = vec![target.to_owned()]).unwrap()
}

const GENERATED: &str = ", when the angel of the LORD was upon the mount of\nended by length\n\
                         In the beginning is the beginning of the glory\n\
                         And the LORD said unto me, Go, and speak unto\n";

#[test]
fn examples_in_c_and_cpp_run() {
    let (demo, adam) = (demo(), adam("cpu"));
    assert_eq!(run(&[], "generate", &[demo.bundle.path()]), GENERATED);
    assert_eq!(run(&[], "generate-static", &[demo.bundle.path()]), GENERATED);
    let text = run(&[], "streams", &[demo.bundle.path()]);
    assert!(text.starts_with("In the beginning is the beginning of the glory of God"), "{text}");
    let text = run(&[], "train", &[adam.bundle.path()]);
    assert!(text.starts_with("loss 0.2555, after 200 steps 0.0"), "{text}");
    assert_eq!(run(&[], "misuse", &[demo.bundle.path(), adam.bundle.path()]), "0 failures\n");
    assert_eq!(run(&[], "options", &[demo.bundle.path()]), "0 failures\n");
}

#[test]
fn valgrind_finds_nothing() {
    let (small, adam) = (small(), adam(FOR_VALGRIND));
    let valgrind = [
        "valgrind",
        "-q",
        "--error-exitcode=9",
        "--leak-check=full",
        "--show-leak-kinds=definite,indirect",
        "--errors-for-leak-kinds=definite,indirect",
        // Threads that spin would keep the others from running.
        "--fair-sched=yes",
    ];
    let arguments = [small.bundle.path(), Path::new("local-sync")];
    assert_eq!(run(&valgrind, "generate", &arguments), run(&[], "generate", &arguments));
    run(&valgrind, "train", &[adam.bundle.path()]);
    assert_eq!(run(&valgrind, "misuse", &[small.bundle.path(), adam.bundle.path()]), "0 failures\n");
}
