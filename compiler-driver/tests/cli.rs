//! The program: what goes to stdout, what to stderr, and how it ends.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod common;

use std::{
    fs,
    io::Read as _,
    process::{Command, Output, Stdio},
    time::Duration,
};

use common::{CONFIG, Place, names};
use mlxcel_artifacts::Store;

/// mlxcel-compile in the folder of `place`, with its store and compiler.
fn program(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlxcel-compile"));
    command
        .args(arguments)
        .current_dir(place.at(""))
        .env("MLXCEL_STORE", place.at("store"))
        .env("MLXCEL_IREE_COMPILE", place.request.compiler.as_ref().unwrap());
    command
}

fn run(place: &Place, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = program(place, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr).replace(&place.at("").display().to_string(), "…/"))
}

#[test]
fn the_bundles_path_is_all_of_stdout() {
    let place = Place::new("works");
    let (code, stdout, stderr) =
        run(&place, &["--model", "model", "--weights", "none", "--target", "cuda,cpu-aarch64"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "model.bundle\n"), "{stderr}");
    let lines: Vec<_> = stderr.lines().collect();
    // The two do products in different ways, so each has a module of its own.
    for emitted in &lines[..2] {
        assert!(emitted.starts_with("emitted ") && emitted.contains(" of MLIR in "), "{stderr}");
    }
    // They are compiled side by side, and any may be done first.
    for target in ["cuda", "cpu-aarch64", "cpu-aarch64 packing"] {
        let compiled = format!("{target}: compiled in ");
        assert_eq!(lines[2..].iter().filter(|line| line.starts_with(&compiled)).count(), 1, "{stderr}");
    }
    assert_eq!(lines.len(), 5, "{stderr}");

    let (code, stdout, stderr) = run(&place, &["--model", "model", "--target", "cuda", "--out", "a/b"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "a/b\n"), "{stderr}");
    assert!(stderr.contains("cuda: from the store, "), "{stderr}");
}

#[test]
fn a_bundle_can_go_to_the_store_under_a_name() {
    let place = Place::new("works");
    let named = ["--model", "model", "--weights", "none", "--target", "cuda", "--name", "r.example/demo:1"];
    let (code, stdout, stderr) = run(&place, &named);
    assert_eq!((code, stdout.as_str()), (Some(0), "r.example/demo:1\n"), "{stderr}");
    assert!(!stderr.contains("another bundle"), "{stderr}");
    assert_eq!(names(&place.at("")), ["model", "works"]);
    assert_eq!(names(&place.at("store/incoming")), [""; 0]);
    let store = Store::open(Some(&place.at("store"))).unwrap();
    let in_store = || store.list().unwrap().remove(0);
    assert_eq!(in_store().manifest.unwrap().targets.keys().collect::<Vec<_>>(), ["cuda"]);

    let first = in_store().digest;
    let (code, _, stderr) = run(&place, &[&named[..], &["--ctx", "8"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.ends_with(&format!("warning: r.example/demo:1 was another bundle before, {first}\n")));
    assert_ne!(in_store().digest, first);

    let (code, stdout, stderr) = run(&place, &[&named[..], &["--out", "there"]].concat());
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains("'--name <NAME>' cannot be used with '--out <FOLDER>'"), "{stderr}");
    let small = program(&place, &named).env("MLXCEL_STORE_LIMIT", "10B").output().unwrap();
    let stderr = String::from_utf8(small.stderr).unwrap();
    assert_eq!((small.status.code(), small.stdout.len()), (Some(1), 0), "{stderr}");
    assert!(stderr.contains("expected at most 10 B in all"), "{stderr}");
    assert_ne!(in_store().digest, first);
}

#[test]
fn mlir_goes_to_stdout_and_needs_no_compiler() {
    let place = Place::new("works");
    let (code, stdout, stderr) = run(&place, &["--model", "model", "--emit", "mlir"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("flow.parameter.named") && stdout.contains("model.embed_tokens.weight"));
    assert_eq!(place.calls(), 0);
}

#[test]
fn lists() {
    let place = Place::new("works");
    let (code, stdout, stderr) = run(&place, &["--list-targets"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(stdout.lines().count(), 14);
    assert!(stdout.starts_with("cpu                 this machine's CPU"), "{stdout}");
    let (code, stdout, _) = run(&place, &["--list-models"]);
    assert_eq!(code, Some(0));
    assert!(stdout.lines().any(|line| line == "llama-3.2-1b"), "{stdout}");
}

#[test]
fn a_model_is_explained_without_a_compiler() {
    let place = Place::new("works");
    let (code, stdout, stderr) = run(&place, &["--explain", "model"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.starts_with("model       model\nfamily      llama\nparameters  5712\n"), "{stdout}");
    let (code, stdout, stderr) = run(&place, &["--explain", "gpt2"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("\nrope        none\n"), "{stdout}");
    assert_eq!(place.calls(), 0);
    assert_eq!(names(&place.at("")), ["model", "works"]);
}

#[test]
fn what_is_not_supported_is_explained_by_the_reason() {
    let place = Place::new("works");
    for (from, to, reason) in [
        (
            r#""model_type": "llama""#,
            r#""model_type": "mamba""#,
            ": `model_type` is \"mamba\", which is not supported, expected one of bert, cohere, ",
        ),
        (
            r#""hidden_act": "silu""#,
            r#""hidden_act": "relu""#,
            ": `hidden_act` is \"relu\", which is not supported, expected one of silu, swish, ",
        ),
    ] {
        fs::write(place.at("model/config.json"), CONFIG.replace(from, to)).unwrap();
        let (code, stdout, stderr) = run(&place, &["--explain", "model"]);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(stderr.starts_with("error: cannot describe the model of model/config.json"), "{stderr}");
        assert!(stderr.contains(reason), "{stderr}");
    }
}

#[test]
fn random_weights_are_a_folder() {
    let place = Place::new("works");
    let (code, stdout, stderr) =
        run(&place, &["random-weights", "--model", "model", "--seed", "1", "--out", "new/w"]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "new/w\n", ""));
    assert!(place.at("new/w/model.safetensors").is_file());
    let (code, stdout, stderr) = run(&place, &["random-weights", "--model", "model", "--out", "new/w"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert_eq!(
        stderr,
        "error: new/w exists, expected nothing there\nhint: name another folder, or remove this one\n"
    );
}

#[test]
fn errors_end_with_1_and_a_hint() {
    let place = Place::new("works");
    let (code, stdout, stderr) = run(&place, &["--model", "model", "--weights", "none", "--ctx", "0"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert_eq!(
        stderr,
        "error: context of 0 tokens, expected 1 to 128 for model\nhint: choose --ctx between 1 and 128\n"
    );
    let (code, _, stderr) = run(&place, &["--model", "model", "--precision", "int8"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("found \"int8\", expected auto, f32, bf16 or f16"), "{stderr}");
    let (code, _, stderr) = run(&place, &["--target", "cpu"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--model"), "{stderr}");
}

#[test]
fn options_that_would_be_ignored_are_refused() {
    let place = Place::new("works");
    for arguments in [
        &["--model", "model", "--emit", "mlir", "--out", "b"][..],
        &["--list-models", "--list-targets"],
        &["--explain", "model", "--model", "model"],
        &["--explain", "model", "--quant", "q4"],
        &["--model", "model", "--weights", "random:x"],
    ] {
        let (code, stdout, stderr) = run(&place, arguments);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.starts_with("error: "), "{stderr}");
    }
}

#[test]
fn signals_end_a_build_without_a_trace() {
    for signal in ["INT", "TERM"] {
        let place = Place::new("hangs");
        let temporary = place.at("tmp");
        fs::create_dir(&temporary).unwrap();
        let child = program(&place, &["--model", "model", "--target", "cuda"])
            .env("TMPDIR", &temporary)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Its first call tells the version.
        while place.calls() < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Twice at once, as `timeout` does it: the second must not end what the first has asked to clean up.
        let kill = format!("kill -{signal} {0} && kill -{signal} {0} || true", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(130), "{stderr}");
        assert!(stderr.ends_with("interrupted; nothing was written\n"), "{stderr}");
        assert_eq!(names(&place.at("")), ["hangs", "model", "tmp"]);
        // The compiler's folder goes with the compiler.
        assert_eq!(names(&temporary), [""; 0]);
    }
}

#[test]
fn a_failing_compiler_says_how_to_repeat_it() {
    let place = Place::new("crashes");
    let (code, stdout, stderr) = run(&place, &["--model", "model", "--target", "cuda"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("error: iree-compile crashed with SIGSEGV for target cuda: "), "{stderr}");
    let command = stderr
        .split("to repeat it: ")
        .nth(1)
        .unwrap()
        .trim()
        .replace("…/", &format!("{}", place.at("").display()));
    let repeated = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(String::from_utf8_lossy(&repeated.stderr).contains("crash backtrace"), "{command}");
    let folder = command.split_whitespace().nth(1).unwrap();
    assert!(fs::read_to_string(format!("{folder}/module.mlir")).unwrap().contains("flow.parameter.named"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let place = Place::new("works");
    let mut child = program(&place, &["--model", "llama-3.2-1b", "--emit", "mlir"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr}");
    assert!(!stderr.contains("error"), "{stderr}");
}
