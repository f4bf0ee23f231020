//! mlxcel-compile: its stdout, stderr and exit status.

use std::{
    fs,
    io::Read as _,
    process::{Command, Output, Stdio},
    time::Duration,
};

use crate::sandbox::{CONFIG, Sandbox, names};
use mlxcel_artifacts::Store;
use mlxcel_compiler_driver::Target;

/// Returns the command that runs mlxcel-compile in a sandbox, with its store and compiler.
fn program(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlxcel-compile"));
    command
        .args(arguments)
        .current_dir(sandbox.at(""))
        .env("MLXCEL_STORE", sandbox.at("store"))
        .env("MLXCEL_IREE_COMPILE", &sandbox.compiler);
    command
}

/// Runs mlxcel-compile. Returns its exit status, stdout and stderr.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = program(sandbox, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr).replace(&sandbox.at("").display().to_string(), "…/"))
}

#[test]
fn stdout_is_the_bundles_path() {
    let sandbox = Sandbox::new("works");
    let (code, stdout, stderr) =
        run(&sandbox, &["--model", "model", "--weights", "none", "--target", "cuda,cpu-aarch64"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "model.bundle\n"), "{stderr}");
    let lines: Vec<_> = stderr.lines().collect();
    // The numerics of these targets differ, so there are two programs.
    for emitted in &lines[..2] {
        assert!(emitted.starts_with("emitted ") && emitted.contains(" of MLIR in "), "{stderr}");
    }
    // Jobs run in parallel and finish in any order.
    for target in ["cuda", "cpu-aarch64", "cpu-aarch64 packing"] {
        let compiled = format!("{target}: compiled in ");
        assert_eq!(lines[2..].iter().filter(|line| line.starts_with(&compiled)).count(), 1, "{stderr}");
    }
    assert_eq!(lines.len(), 5, "{stderr}");

    let (code, stdout, stderr) = run(&sandbox, &["--model", "model", "--target", "cuda", "--out", "a/b"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "a/b\n"), "{stderr}");
    assert!(stderr.contains("cuda: from the store, "), "{stderr}");
}

#[test]
fn a_name_saves_the_bundle_in_the_store() {
    let sandbox = Sandbox::new("works");
    let named = ["--model", "model", "--weights", "none", "--target", "cuda", "--name", "r.example/demo:1"];
    let (code, stdout, stderr) = run(&sandbox, &named);
    assert_eq!((code, stdout.as_str()), (Some(0), "r.example/demo:1\n"), "{stderr}");
    assert!(!stderr.contains("another bundle"), "{stderr}");
    assert_eq!(names(&sandbox.at("")), ["model", "works"]);
    assert_eq!(names(&sandbox.at("store/incoming")), [""; 0]);
    let store = Store::new(sandbox.at("store"), None).unwrap();
    let in_store = || store.list().unwrap().remove(0);
    assert_eq!(in_store().manifest.unwrap().targets.keys().collect::<Vec<_>>(), ["cuda"]);

    let first = in_store().digest;
    let (code, _, stderr) = run(&sandbox, &[&named[..], &["--ctx-size", "8"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.ends_with(&format!("warning: r.example/demo:1 was another bundle before, {first}\n")));
    assert_ne!(in_store().digest, first);

    let (code, stdout, stderr) = run(&sandbox, &[&named[..], &["--out", "there"]].concat());
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains("'--name <NAME>' cannot be used with '--out <FOLDER>'"), "{stderr}");
    let small = program(&sandbox, &named).env("MLXCEL_STORE_LIMIT", "10B").output().unwrap();
    let stderr = String::from_utf8(small.stderr).unwrap();
    assert_eq!((small.status.code(), small.stdout.len()), (Some(1), 0), "{stderr}");
    assert!(stderr.contains("expected at most 10 B in total"), "{stderr}");
    assert_ne!(in_store().digest, first);
}

#[test]
fn emitting_mlir_needs_no_compiler() {
    let sandbox = Sandbox::new("works");
    let (code, stdout, stderr) = run(&sandbox, &["--model", "model", "--emit", "mlir"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("flow.parameter.named") && stdout.contains("model.embed_tokens.weight"));
    assert_eq!(sandbox.calls(), 0);
}

#[test]
fn targets_models_and_families_are_listed() {
    let sandbox = Sandbox::new("works");
    let (code, stdout, stderr) = run(&sandbox, &["targets"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(stdout.lines().count(), Target::all().unwrap().len());
    assert!(stdout.starts_with("cpu                 this machine's CPU"), "{stdout}");
    let (code, stdout, _) = run(&sandbox, &["models"]);
    assert_eq!(code, Some(0));
    assert!(stdout.lines().any(|line| line == "llama-3.2-1b"), "{stdout}");
    let (code, stdout, _) = run(&sandbox, &["families"]);
    assert_eq!(code, Some(0));
    assert!(stdout.starts_with("bert\ncohere\n"), "{stdout}");
}

#[test]
fn explaining_a_model_needs_no_compiler() {
    let sandbox = Sandbox::new("works");
    let (code, stdout, stderr) = run(&sandbox, &["explain", "model"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.starts_with("model       model\nfamily      llama\nparameters  5712\n"), "{stdout}");
    let (code, stdout, stderr) = run(&sandbox, &["explain", "gpt2"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("\nrope        none\n"), "{stdout}");
    assert_eq!(sandbox.calls(), 0);
    assert_eq!(names(&sandbox.at("")), ["model", "works"]);
}

#[test]
fn explaining_an_unsupported_model_gives_the_reason() {
    let sandbox = Sandbox::new("works");
    for (from, to, reason) in [
        (
            r#""model_type": "llama""#,
            r#""model_type": "mamba""#,
            ": `model_type` is \"mamba\", which is not supported, expected a family such as ",
        ),
        (
            r#""hidden_act": "silu""#,
            r#""hidden_act": "relu""#,
            ": `hidden_act` is \"relu\", which is not supported, expected one of silu, swish, ",
        ),
    ] {
        fs::write(sandbox.at("model/config.json"), CONFIG.replace(from, to)).unwrap();
        let (code, stdout, stderr) = run(&sandbox, &["explain", "model"]);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(stderr.starts_with("error: cannot describe the model of model/config.json"), "{stderr}");
        assert!(stderr.contains(reason), "{stderr}");
    }
}

#[test]
fn random_weights_are_written_to_a_folder() {
    let sandbox = Sandbox::new("works");
    let (code, stdout, stderr) =
        run(&sandbox, &["random-weights", "--model", "model", "--seed", "1", "--out", "new/w"]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "new/w\n", ""));
    assert!(sandbox.at("new/w/model.safetensors").is_file());
    let (code, stdout, stderr) = run(&sandbox, &["random-weights", "--model", "model", "--out", "new/w"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert_eq!(
        stderr,
        "error: new/w exists, expected a new folder\nhint: pass another folder to --out, or remove this one\n"
    );
}

#[test]
fn errors_exit_with_1_and_usage_errors_with_2() {
    let sandbox = Sandbox::new("works");
    let (code, stdout, stderr) = run(&sandbox, &["--model", "model", "--weights", "none", "--ctx-size", "0"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert_eq!(
        stderr,
        "error: context of 0 tokens, expected 1 to 128 for model\nhint: choose --ctx-size between 1 and 128\n"
    );
    let (code, _, stderr) = run(&sandbox, &["--model", "model", "--precision", "int8"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("found \"int8\", expected auto, f32, bf16 or f16"), "{stderr}");
    let (code, _, stderr) = run(&sandbox, &["--target", "cpu"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--model"), "{stderr}");
}

#[test]
fn options_without_effect_are_refused() {
    let sandbox = Sandbox::new("works");
    for arguments in [
        &["--model", "model", "--emit", "mlir", "--out", "b"][..],
        &["models", "targets"],
        &["models", "--target", "cpu"],
        &["--model", "model", "explain", "model"],
        &["explain", "model", "--model", "model"],
        &["explain", "model", "--quant", "q4"],
        &["--model", "model", "--weights", "random:x"],
    ] {
        let (code, stdout, stderr) = run(&sandbox, arguments);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.starts_with("error: "), "{stderr}");
    }
}

#[test]
fn a_signal_ends_a_build_and_leaves_no_files() {
    for signal in ["INT", "TERM"] {
        let sandbox = Sandbox::new("hangs");
        let temporary = sandbox.at("tmp");
        fs::create_dir(&temporary).unwrap();
        let child = program(&sandbox, &["--model", "model", "--target", "cuda"])
            .env("TMPDIR", &temporary)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The first call asks for its version.
        while sandbox.calls() < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Sends it twice, as `timeout` does. The second signal must not interrupt the cleanup.
        let kill = format!("kill -{signal} {0} && kill -{signal} {0} || true", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(130), "{stderr}");
        assert!(stderr.ends_with("interrupted; nothing was written\n"), "{stderr}");
        assert_eq!(names(&sandbox.at("")), ["hangs", "model", "tmp"]);
        // The compiler's temporary folder is removed too.
        assert_eq!(names(&temporary), [""; 0]);
    }
}

#[test]
fn a_failing_compiler_can_be_repeated_by_the_printed_command() {
    let sandbox = Sandbox::new("crashes");
    let (code, stdout, stderr) = run(&sandbox, &["--model", "model", "--target", "cuda"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("error: iree-compile crashed with SIGSEGV for target cuda: "), "{stderr}");
    let command = stderr
        .split("to repeat it: ")
        .nth(1)
        .unwrap()
        .trim()
        .replace("…/", &format!("{}", sandbox.at("").display()));
    let repeated = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(String::from_utf8_lossy(&repeated.stderr).contains("crash backtrace"), "{command}");
    let folder = command.split_whitespace().nth(1).unwrap();
    assert!(fs::read_to_string(format!("{folder}/module.mlir")).unwrap().contains("flow.parameter.named"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_closed_stdout_is_no_error() {
    let sandbox = Sandbox::new("works");
    let mut child = program(&sandbox, &["--model", "llama-3.2-1b", "--emit", "mlir"])
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
