//! The Python package: its own tests on real bundles, and the answers of fixtures beside those recorded of Hugging Face.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex},
};

use mlxcel_compiler_driver::Request;
use serde_json::{Value, json};

use crate::{
    emulated::{driver, for_gpu},
    programs_run::{self, exported},
    real::{self, Fixture, OF_PANELS, built, each, fixtures, is_full, program, request, toolchain},
    serving::server,
};

/// Fixtures whose answers Python gives by default too: a dense model, a mixture, a window, and one that pads its vocabulary.
const FIXTURES: [&str; 4] = ["everything", "gemma2-hub", "gpt-oss-hub", "qwen2-moe-hub"];

/// The folder of the package's sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/python")
}

/// A folder with the package as a wheel installs it.
static PACKAGE: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let native = program("mlxcel-run").with_file_name("deps").join("lib_native.so");
    assert!(
        native.exists(),
        "found no {}, which the tests of the whole workspace build\nhint: cargo build -p mlxcel-python",
        native.display()
    );
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("mlxcel");
    copy_sources(&sources().join("mlxcel"), &package);
    fs::copy(native, package.join("_native.abi3.so")).unwrap();
    folder
});

/// Copies a folder of sources with those in it, and without what Python compiled.
fn copy_sources(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), target).unwrap();
        } else if entry.file_name() != "__pycache__" {
            copy_sources(&entry.path(), &target);
        }
    }
}

/// Runs Python with the package, in the folder of its tests.
fn python(arguments: &[&str], variables: &[(&str, &Path)]) {
    python_of("clients", arguments, variables);
}

/// Runs the Python of a part of the toolchain, with the package, in the folder of its tests.
fn python_of(part: &str, arguments: &[&str], variables: &[(&str, &Path)]) {
    let variables = [&[("PYTHONPATH", PACKAGE.path())], variables].concat();
    real::python(part, &sources().join("tests"), arguments, &variables);
}

#[test]
fn the_package_passes_its_tests() {
    let demo = server::demo();
    let encoder = built(&request(&toolchain().join("minilm"), &["cpu"]));
    let adam = programs_run::built(&exported("adam.jax"), |_| {}).unwrap();
    let sizes = [4, 7].map(|size| [("x".to_owned(), vec![size])].into());
    let sums = programs_run::built(&exported("sums.mlir"), |request| request.sizes = sizes.to_vec()).unwrap();
    let programs = program("mlxcel-run");
    let variables = [
        ("MLXCEL_TEST_DEMO", demo.built.bundle.path()),
        ("MLXCEL_TEST_ENCODER", encoder.bundle.path()),
        ("MLXCEL_TEST_ADAM", adam.bundle.path()),
        ("MLXCEL_TEST_SUMS", sums.bundle.path()),
        ("MLXCEL_TEST_PROGRAMS", programs.parent().unwrap()),
    ];
    python(&["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis"], &variables);
}

/// `cargo xtask ray` runs it in full: `MLXCEL_RAY=full`.
#[test]
fn ray_passes_its_tests() {
    let demo = server::demo();
    let encoder = built(&request(&toolchain().join("minilm"), &["cpu"]));
    let programs = program("mlxcel-serve");
    // Workers import the tests, too.
    let path = env::join_paths([PACKAGE.path(), &sources().join("tests/cluster")]).unwrap();
    let variables = [
        ("PYTHONPATH", Path::new(&path)),
        ("MLXCEL_TEST_DEMO", demo.built.bundle.path()),
        ("MLXCEL_TEST_ENCODER", encoder.bundle.path()),
        ("MLXCEL_TEST_PROGRAMS", programs.parent().unwrap()),
    ];
    let only = env::var("MLXCEL_RAY_ONLY").unwrap_or_default();
    // A cluster that waits for ever must not hold up the others: a test ends the process after this time. Beside other tests on two
    // busy cores, one takes 170 s that takes 20 s alone.
    let limits = ["-o", "faulthandler_timeout=900", "-o", "faulthandler_exit_on_timeout=true"];
    let options = ["-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-W", "ignore", "-k", &only];
    python_of("ray", &[&options[..], &limits, &["cluster"]].concat(), &variables);
}

/// `MLXCEL_ORACLE=full` takes every fixture.
#[test]
fn python_answers_as_hugging_face_does() {
    let is_chosen = |fixture: &Fixture| is_full() || FIXTURES.contains(&fixture.name.as_str());
    let chosen: Vec<_> = Fixture::all_in(&fixtures()).unwrap().into_iter().filter(is_chosen).collect();
    let cases = Mutex::new(Vec::new());
    each(&chosen, |fixture| {
        let sizes =
            Request { chunk: Some(32), pack_elements: Some(OF_PANELS), ..request(&fixture.folder, &["cpu"]) };
        let built = built(&sizes);
        let prompts = fixture.prompts.iter().map(|one| json!({ "prompt": one.prompt, "tokens": one.tokens }));
        let prompts: Vec<Value> = prompts.collect();
        let case = json!({ "name": fixture.name, "bundle": built.bundle.path(), "prompts": prompts });
        cases.lock().unwrap().push((case, built));
    });
    let cases = cases.into_inner().unwrap();
    let list: Vec<&Value> = cases.iter().map(|(case, _)| case).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), serde_json::to_string(&list).unwrap()).unwrap();
    python(&["fixtures.py", file.path().to_str().unwrap(), &chosen.len().to_string()], &[]);
}

/// Memory of the host goes with a context, so that whoever writes the next inputs there would crash.
#[test]
fn a_reset_of_a_gpu_between_two_answers_is_an_error() {
    let built = built(&for_gpu(&Fixture::find("gqa"), "cuda"));
    python(&["reset.py", built.bundle.path().to_str().unwrap()], &[("LD_LIBRARY_PATH", &driver())]);
}

#[test]
fn the_stubs_are_those_of_the_native_part() {
    python(&["-m", "mypy.stubtest", "--mypy-config-file", "stubs.ini", "mlxcel._native"], &[]);
    // Where Ray is, everything can be checked. What is kept of it spares the next run its packages.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy");
    let package = PACKAGE.path().join("mlxcel");
    let options = ["-m", "mypy", "--config-file", "../pyproject.toml", "--cache-dir"];
    let paths = [cache.to_str().unwrap(), package.to_str().unwrap()];
    python_of("ray", &[&options[..], &paths].concat(), &[]);
}
