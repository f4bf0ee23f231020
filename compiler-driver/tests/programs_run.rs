//! StableHLO programs that JAX exported, compiled, loaded and run.

#[path = "../../runtime/examples/train.rs"]
#[allow(dead_code, reason = "it has a main function")]
mod train;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use mlxcel_artifacts::{Bundle, Store, Tensor, TensorFile, report, write_tensors};
use mlxcel_compiler_driver::{
    Cancel, CompilerLocation, GoldenFiles, ProgramRequest, StateArguments, build_program,
};
use mlxcel_runtime::{DeviceOptions, Program, Tolerance, compare};
use tempfile::TempDir;

use crate::real::{self, program};

/// Returns a file of JAX or PyTorch, written by `export.py` or `transformer.py`.
pub(crate) fn exported(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// A bundle of a program, in a folder of its own.
pub(crate) struct Built {
    folder: TempDir,
    pub(crate) bundle: Bundle,
}

/// Returns the request for a program, to be compiled for this CPU.
fn request(folder: &Path, program: &Path) -> ProgramRequest {
    ProgramRequest {
        program: program.to_owned(),
        targets: vec!["cpu".into()],
        sizes: vec![],
        state: StateArguments::Donated,
        parameters: None,
        bind: BTreeMap::new(),
        kernels: Vec::new(),
        narrow_f64: false,
        goldens: vec![],
        is_lean: true,
        time_limit: None,
        out: Some(folder.join("b")),
        dump_dir: None,
        store: Some(Store::new(real::store(), None).unwrap()),
        compiler: CompilerLocation::from_env(),
        cancel: Cancel::new(),
    }
}

/// Returns the bundle of a program, or what was refused.
pub(crate) fn built(program: &Path, change: impl FnOnce(&mut ProgramRequest)) -> Result<Built, String> {
    let folder = tempfile::tempdir().unwrap();
    let mut request = request(folder.path(), program);
    change(&mut request);
    match build_program(&request, &mut |_| ()) {
        Ok(bundle) => Ok(Built { folder, bundle }),
        Err(error) => {
            assert!(!folder.path().join("b").exists(), "something was left behind");
            Err(report(&error).replace(&folder.path().display().to_string(), "…"))
        }
    }
}

/// Returns the tensors of a file.
pub(crate) fn tensors(path: &Path) -> BTreeMap<String, Tensor> {
    let file = TensorFile::open(path).unwrap();
    file.tensors().iter().map(|(name, ..)| ((*name).to_owned(), file.read(name).unwrap())).collect()
}

/// Records JAX's first step of Adam.
fn first_step() -> GoldenFiles {
    format!("{}:{}", exported("adam-0.npz").display(), exported("adam-1.npz").display()).parse().unwrap()
}

/// Runs mlxcel-run on a bundle. Returns its exit status, stdout and stderr, with the folder's path as `…`.
fn run(built: &Built, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(program("mlxcel-run"));
    command.arg("b").args(arguments).args(["--device", "local-sync"]).current_dir(built.folder.path());
    let Output { status, stdout, stderr } = command.env("MLXCEL_STORE", real::store()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().replace(&exported("").display().to_string(), "JAX/");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn a_thousand_steps_of_adam_are_jaxs() {
    let built = built(&exported("adam.jax"), |request| request.goldens = vec![first_step()]).unwrap();
    let program = Program::new(built.bundle.clone()).unwrap();
    let loaded = program.load(DeviceOptions::default()).unwrap();
    let step = train::train(built.bundle.path(), &exported("adam-0.npz"), 1000).unwrap();
    let tolerance = Tolerance { rtol: 1e-5, atol: 1e-5 };
    for (name, expected) in tensors(&exported("adam-1000.npz")) {
        let found = step.read(&name).unwrap();
        assert!(compare(&found, &expected, tolerance).is_ok(), "{name}: {found:?}");
    }
    // The first step again, from the bundle.
    let result = loaded.replay(&program, &built.bundle.manifest().goldens[0]).unwrap();
    assert!(result.has_passed() && result.results.len() == 8, "{result:?}");
    let (code, stdout, stderr) = run(&built, &["--self-test"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.ends_with("self-test passed on local-sync\n"), "{stdout}");
}

#[test]
fn a_scan_that_stacks_its_rows_in_place_is_jaxs() {
    let golden = format!("{}:{}", exported("kernel-in.npz").display(), exported("kernel-out.npz").display());
    let built = built(&exported("scan.jax"), |request| {
        request.goldens = vec![golden.parse().unwrap()];
        request.dump_dir = Some(request.out.as_ref().unwrap().with_file_name("dump"));
    })
    .unwrap();
    for device in ["local-sync", "local-task"] {
        let arguments = ["--self-test", "--device", device];
        let output = Command::new(program("mlxcel-run")).arg(built.bundle.path()).args(arguments).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        assert!(text.contains(&format!("self-test passed on {device}")), "{text}");
    }
    // The rows are not copied in the turns: one copy is made before them.
    let mlir = fs::read_to_string(built.folder.path().join("dump/cpu.mlir")).unwrap();
    let (before, turns) = mlir.split_once("stablehlo.while").unwrap();
    assert!(before.contains("stablehlo.or") && !turns.contains("stablehlo.or"), "{mlir}");
}

#[test]
fn mlxcel_run_calls_a_function_with_files() {
    let built = built(&exported("adam.jax"), |_| ()).unwrap();
    let inputs = format!("@{}", exported("adam-0.npz").display());
    let expected = format!("@{}", exported("adam-1000.npz").display());
    let arguments =
        ["--input", &inputs, "--repeat", "1000", "--expected", &expected, "--rtol", "1e-5", "--atol", "1e-5"];
    let (code, stdout, stderr) =
        run(&built, &[&arguments[..], &["--output", "@out.npz", "--output", "result[4]=@loss.npy"]].concat());
    assert_eq!((code, stdout.as_str()), (Some(0), ""), "{stderr}");
    assert_eq!(stderr.lines().filter(|line| line.starts_with("ok    ")).count(), 8, "{stderr}");
    assert!(stderr.contains("main on local-sync: 1000 calls, "), "{stderr}");
    let out = tensors(&built.folder.path().join("out.npz"));
    assert_eq!(
        out.keys().collect::<Vec<_>>(),
        tensors(&exported("adam-1000.npz")).keys().collect::<Vec<_>>()
    );
    assert_eq!(tensors(&built.folder.path().join("loss.npy"))[""], out["result[4]"]);

    // One step is another thing.
    let (code, _, stderr) = run(&built, &["--input", &inputs, "--expected", &expected]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("FAIL  result[3]: found 1.0, expected 1000.0; 1 of 1 beyond rtol 1e-5"),
        "{stderr}"
    );

    let (code, stdout, stderr) = run(&built, &["--input", &inputs]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("result[3] f32[] 1.0\n"), "{stdout}");
}

#[test]
fn mlxcel_run_refuses_what_does_not_fit() {
    let built = built(&exported("logistic.mlir"), |_| ()).unwrap();
    let refused = |arguments: &[&str]| {
        let (code, stdout, stderr) = run(&built, arguments);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        stderr
    };
    let wrong = built.folder.path().join("wrong.npz");
    let short = Tensor::of(&[1000], &[true; 1000]).unwrap();
    write_tensors(&wrong, &[("y".to_owned(), short)].into()).unwrap();
    insta::assert_snapshot!(
        [
            refused(&["--input", "@wrong.npz"]),
            refused(&["--input", "p['b']=0", "--input", "p['w']=0", "--input", "x=0"]),
            refused(&["--input", "z=0"]),
            refused(&["--function", "mian", "--input", "x=0"]),
            refused(&["-p", "Once upon a time"]),
            refused(&["--input", "x=0", "--json"]),
            refused(&["--self-test"]),
        ]
        .concat(),
        @r#"
    error: wrong.npz: argument 4 "y": found bool[1000], expected f32[1000]
    hint: convert the tensor, or write it again
    error: argument 4 "y": found nothing, expected f32[1000]
    hint: give it with --input "y"=@FILE.npy, or all in one file with --input @FILE.npz
    error: found no argument `z`, expected `p['b']`, `p['w']` or `x`
    hint: `mlxcel-bundle inspect BUNDLE` shows the arguments
    error: found no function `mian`, expected `main`
    hint: `mlxcel-bundle inspect BUNDLE` shows the functions
    error: found the program logistic, expected a language model
    hint: `mlxcel-bundle inspect BUNDLE` shows its inputs, and `mlxcel-run BUNDLE --input NAME=@FILE` runs it
    error: found --json with a program, expected --output
    hint: --output @results.npz writes the results
    error: b has no self-test: nothing was recorded
    hint: compile it with mlxcel-compile --golden IN.npz:OUT.npz
    "#
    );
}

#[test]
fn parameters_take_the_place_of_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    let all = tensors(&exported("adam-0.npz"));
    let parameters: BTreeMap<_, _> =
        [("weights", "x"), ("y", "y")].map(|(key, name)| (key.to_owned(), all[name].clone())).into();
    write_tensors(&path, &parameters).unwrap();
    let bind = [("x", "weights"), ("y", "y")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    let built = built(&exported("adam.jax"), |request| {
        (request.parameters, request.bind) = (Some(path.clone()), bind.into());
    })
    .unwrap();
    let manifest = built.bundle.manifest();
    assert!(manifest.parameters.iter().all(|parameter| parameter.source.is_some()));
    let names: Vec<_> = manifest.functions().unwrap()[0].inputs().map(|(name, _)| name).collect();
    assert!(!names.contains(&"x".to_owned()) && names.contains(&"count".to_owned()), "{names:?}");
    let loaded = Program::new(built.bundle.clone()).unwrap().load(DeviceOptions::default()).unwrap();
    let mut step = loaded.function("main").unwrap();
    for name in names {
        step.set(&name, &all[&name]).unwrap();
    }
    step.call().unwrap();
    for (name, expected) in tensors(&exported("adam-1.npz")) {
        let found = step.read(&name).unwrap();
        assert!(compare(&found, &expected, Tolerance { rtol: 1e-5, atol: 1e-6 }).is_ok(), "{name}");
    }
}

#[test]
fn requests_that_do_not_fit_the_program_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.safetensors");
    let vector = Tensor::of(&[3], &[0f64; 3]).unwrap();
    write_tensors(&file, &[("x".to_owned(), vector.clone()), ("v".to_owned(), vector)].into()).unwrap();
    let refused = |change: &dyn Fn(&mut ProgramRequest)| {
        let error = built(&exported("adam.jax"), change).err().expect("it was built");
        error
            .replace(&folder.path().display().to_string(), "F")
            .replace(&exported("").display().to_string(), "JAX/")
    };
    let golden = |text: &str| text.parse::<GoldenFiles>().unwrap();
    let (first, last) = (exported("adam-0.npz"), exported("adam-1.npz"));
    let (first, last) = (first.display(), last.display());
    insta::assert_snapshot!(
        [
            refused(&|r| r.parameters = Some(file.clone())),
            refused(&|r| {
                r.parameters = Some(file.clone());
                r.bind = [("count".to_owned(), "w".to_owned())].into();
            }),
            refused(&|r| r.goldens = vec![golden(&format!("{last}:{first}"))]),
            refused(&|r| r.goldens = vec![golden(&format!("{first}:{first}"))]),
            refused(&|r| r.goldens = vec![golden(&format!("step={first}:{last}"))]),
            refused(&|r| r.state = StateArguments::Named(vec!["w".into()])),
            refused(&|r| r.targets = vec!["cup".into()]),
        ]
        .join("\n"),
        @r#"
    error: F/w.safetensors: tensor `x`: found f64[3], expected f32[16,8]
    hint: convert the tensor, or bind another one
    error: F/w.safetensors: found no tensor `w` for `count`, expected one such as v, x
    hint: --bind takes ARGUMENT=TENSOR
    error: JAX/adam-1.npz: found `result[0]['b']`, expected a name of the arguments: p['b'], m['b'], v['b']
    hint: name each tensor as the program does
    error: JAX/adam-0.npz: found `count`, expected a name of the results: result[3], result[4], result[0]['b']
    hint: name each tensor as the program does
    error: --golden step=JAX/adam-0.npz:JAX/adam-1.npz: found no such function, expected one of main
    hint: `mlxcel-compile explain` shows functions, arguments and results
    error: main: program: found no argument 'w' for the state, expected one of p['b'], p['w'], m['b'], m['w'], v['b'], v['w'], count, x, y
    hint: mlxcel-compile explain shows the names
    error: found no target `cup`, expected one such as cuda, cuda-sm_86 or cuda-sm_89
    hint: `mlxcel-compile targets` lists the targets
    "#
    );
}

#[test]
fn sizes_are_entry_points() {
    let sizes = [4, 8].map(|rows| [("rows".to_owned(), vec![rows])].into());
    let built = built(&exported("symbolic.mlirbc"), |request| request.sizes = sizes.to_vec()).unwrap();
    let (code, stdout, stderr) = run(&built, &["--input", "arg0=8x64xf32=1"]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "result f32[8,8] 64.0 64.0 64.0 64.0 64.0 64.0 64.0 64.0 …\n"),
        "{stderr}"
    );
    assert!(stderr.contains("main_rows8 on "), "{stderr}");
}

#[test]
fn the_bundle_does_not_depend_on_who_exported_the_program() {
    let text = fs::read_to_string(exported("logistic.mlir")).unwrap();
    assert!(text.contains("export.py"), "it names its source");
    let digest = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step.mlir");
        fs::write(&path, text).unwrap();
        built(&path, |_| ()).unwrap().bundle.digest()
    };
    assert_eq!(digest(&text), digest(&text.replace("export.py", "another/folder/train.py")));
}
