//! What `mlxcel-compile` makes of models of the hub.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Output, Stdio},
};

use mlxcel_artifacts::{BlobRole, Bundle, Digest};
use serde_json::{Value, json};

use super::{COMMIT, Hub, files, server};
use crate::sandbox::Sandbox;

/// Returns the command that runs mlxcel-compile with this hub.
fn program(sandbox: &Sandbox, hub: &Hub, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlxcel-compile"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_uppercase();
        if text.starts_with("HF_") || text.ends_with("_PROXY") {
            command.env_remove(name);
        }
    }
    command
        .args(arguments)
        .current_dir(sandbox.at(""))
        .env("MLXCEL_STORE", sandbox.at("store"))
        .env("MLXCEL_IREE_COMPILE", &sandbox.compiler)
        .env("HF_HOME", hub.home.path())
        .env("HF_ENDPOINT", &hub.server.endpoint);
    command
}

/// Runs mlxcel-compile. Returns its exit status, stdout and stderr.
fn run(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Returns a hub that has the demo checkpoint.
fn demo() -> Hub {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/demo");
    let files = fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
    });
    let hub = Hub::of(files.collect());
    hub.set(|state| state.repo = "org/demo".into());
    hub
}

fn provenance(bundle: &Bundle) -> Value {
    serde_json::from_slice(&bundle.read_document("provenance.intoto.json").unwrap().unwrap()).unwrap()
}

#[test]
fn a_bundle_from_the_hub_is_that_of_the_folder() {
    let (sandbox, hub) = (Sandbox::new("works"), demo());
    let arguments = ["--model", "org/demo", "--target", "cuda,cpu-x86-64-v3", "--no-pack", "--out", "hub"];
    let (code, stdout, stderr) = run(program(&sandbox, &hub, &arguments));
    assert_eq!((code, stdout.as_str()), (Some(0), "hub\n"), "{stderr}");
    // Quiet lines, because stderr is no terminal.
    assert!(stderr.contains("model.safetensors: downloaded in "), "{stderr}");
    assert!(stderr.contains("org/demo at 001122334455: downloaded 5 of 5 files\n"), "{stderr}");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/demo");
    let arguments = ["--model", folder, "--target", "cuda,cpu-x86-64-v3", "--no-pack", "--out", "folder"];
    let (code, _, stderr) = run(program(&sandbox, &hub, &arguments));
    assert_eq!(code, Some(0), "{stderr}");
    let [from_hub, from_folder] = ["hub", "folder"].map(|name| Bundle::open(&sandbox.at(name)).unwrap());
    let without_documents = |bundle: &Bundle| {
        let mut manifest = bundle.manifest().clone();
        assert!(manifest.documents.remove("provenance.intoto.json").is_some());
        manifest
    };
    assert!(without_documents(&from_hub) == without_documents(&from_folder));
    assert!(from_hub.manifest().blobs().any(|(role, _)| matches!(role, BlobRole::Weights(_))));

    // Another machine, whose cache transformers filled, makes the same bundle offline.
    let offline = [&arguments[2..5], &["--offline", "--model", "org/demo", "--out", "offline"]].concat();
    hub.server.log();
    let (code, _, stderr) = run(program(&sandbox, &hub, &offline));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(hub.server.log().is_empty());
    // Provenance names the commit, and not where it came from.
    let offline = Bundle::open(&sandbox.at("offline")).unwrap();
    assert_eq!(provenance(&offline), provenance(&from_hub));
    assert!(offline.manifest() == from_hub.manifest());
}

#[test]
fn provenance_names_repository_commit_and_digests() {
    let (sandbox, hub) = (Sandbox::new("works"), demo());
    let arguments = ["--model", "org/demo", "--target", "cuda", "--out", "out", "--revision", "main"];
    let (code, _, stderr) = run(program(&sandbox, &hub, &arguments));
    assert_eq!(code, Some(0), "{stderr}");
    let statement = provenance(&Bundle::open(&sandbox.at("out")).unwrap());
    let build = &statement["predicate"]["buildDefinition"];
    assert_eq!(build["externalParameters"]["hub"], "org/demo");
    assert_eq!(build["externalParameters"]["model"], "demo");
    let uri = format!("pkg:huggingface/org/demo@{COMMIT}");
    let named = |uri: &str| {
        let all = build["resolvedDependencies"].as_array().unwrap();
        all.iter().find(|resource| resource["uri"] == uri).cloned().unwrap_or_default()
    };
    assert_eq!(named(&uri), json!({ "name": "org/demo", "uri": uri, "digest": { "gitCommit": COMMIT } }));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/demo");
    let weights = fs::read(folder.join("model.safetensors")).unwrap();
    let file = format!("{uri}#model.safetensors");
    assert_eq!(
        named(&file),
        json!({
            "name": "model.safetensors", "uri": file, "digest": { "sha256": server::sha256(&weights) },
            "annotations": { "size": weights.len(), "statedByHub": "sha256" },
        })
    );
    let config = fs::read(folder.join("config.json")).unwrap();
    let file = format!("{uri}#config.json");
    assert_eq!(
        named(&file),
        json!({
            "name": "config.json", "uri": file,
            "digest": { "gitBlob": server::git_blob(&config), "sha256": server::sha256(&config) },
            "annotations": { "size": config.len(), "statedByHub": "gitBlob" },
        })
    );
    // What a build from a folder records is there too.
    let blake3 = Digest::of(&weights).hex();
    let all = build["resolvedDependencies"].as_array().unwrap();
    assert!(all.iter().any(|resource| resource["digest"]["blake3"] == blake3));
    let text = statement.to_string();
    assert!(!text.contains("127.0.0.1") && !text.contains(hub.home.path().to_str().unwrap()), "{text}");
}

#[test]
fn a_description_needs_no_weights() {
    let (sandbox, hub) = (Sandbox::new("works"), demo());
    let (code, stdout, stderr) = run(program(&sandbox, &hub, &["explain", "org/demo"]));
    assert_eq!(code, Some(0), "{stderr}");
    let start = format!("model       demo\nhub         org/demo at {COMMIT}\nfamily      llama\n");
    assert!(stdout.starts_with(&start), "{stdout}");
    let log = hub.server.log();
    assert!(!log.is_empty() && !log.iter().any(|asked| asked.path.contains("safetensors")), "{log:?}");
}

#[test]
fn the_environment_is_that_of_huggingface_hub() {
    let (sandbox, hub) = (Sandbox::new("works"), demo());
    hub.set(|state| state.token = Some("hf_file".into()));
    let arguments = ["--model", "org/demo", "--target", "cuda", "--weights", "none", "--out", "out"];
    let (code, _, stderr) = run(program(&sandbox, &hub, &arguments));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("refuses org/demo without a token"), "{stderr}");
    fs::write(hub.home.path().join("token"), "hf_file\n").unwrap();
    let (code, _, stderr) = run(program(&sandbox, &hub, &arguments));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        !hub.server.log().iter().any(|asked| asked.path.contains("safetensors")),
        "no weights are wanted"
    );
    // A variable wins, and offline no token is needed.
    let mut command = program(&sandbox, &hub, &arguments);
    command.env("HF_TOKEN", "hf_wrong");
    let (code, _, stderr) = run(command);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("refuses the token for org/demo"), "{stderr}");
    let mut command = program(&sandbox, &hub, &arguments);
    command.env("HF_TOKEN", "hf_wrong").env("HF_HUB_OFFLINE", "1");
    let (code, _, stderr) = run(command);
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn a_target_is_checked_before_a_download() {
    let (sandbox, hub) = (Sandbox::new("works"), demo());
    let (code, _, stderr) = run(program(&sandbox, &hub, &["--model", "org/demo", "--target", "cup"]));
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("error: found no target `cup`"), "{stderr}");
    assert!(hub.server.log().is_empty());
}

#[test]
fn an_interrupted_download_says_what_is_kept() {
    let (sandbox, hub) = (Sandbox::new("works"), Hub::new());
    // It takes connections, and answers none.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = program(&sandbox, &hub, &["--model", "org/model", "--target", "cuda", "--out", "out"]);
    command.env("HF_ENDPOINT", format!("http://{}", silent.local_addr().unwrap()));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _connection = silent.accept().unwrap();
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.ends_with("cancelled; what was downloaded stays in the cache\n"), "{stderr}");
    assert!(!sandbox.at("out").exists());
}

#[test]
fn a_full_disk_is_named_and_the_next_run_resumes() {
    let (sandbox, hub) = (Sandbox::new("works"), Hub::new());
    let arguments = ["--model", "org/model", "--target", "cuda", "--out", "out"];
    let compile = program(&sandbox, &hub, &arguments);
    // No file may be longer than 1,024 blocks of 512 bytes. The signal about it would end the program.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$@\"", "sh"]).arg(compile.get_program());
    limited.args(compile.get_args()).current_dir(sandbox.at(""));
    for (name, value) in compile.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let (code, stdout, stderr) = run(limited);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    let start = "found no space left for model.safetensors of org/model after ";
    let error = stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.contains(start) && error.contains(" of 1000000 bytes in "), "{stderr}");
    assert!(
        stderr.contains("\nhint: free ") && stderr.contains("; then the same command resumes"),
        "{stderr}"
    );
    assert!(!sandbox.at("out").exists() && hub.names("refs").is_empty());
    let digest = server::sha256(&files()["model.safetensors"]);
    assert!(!hub.at(&format!("blobs/{digest}")).exists());
    let here = fs::metadata(hub.at(&format!("blobs/{digest}.incomplete"))).unwrap().len();
    assert!((1..1_000_000).contains(&here), "{here}");
    hub.server.log();
    hub.get("org/model").unwrap();
    let range = hub.server.log().into_iter().find_map(|asked| asked.range);
    assert_eq!(range, Some(format!("bytes={here}-")));
}
