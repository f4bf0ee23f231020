//! The program `mlxcel-bundle`.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use mlxcel_artifacts::{
    Bundle, BundleWriter, CacheType, Digest, Driver, Float, Golden, Manifest, TargetArtifact,
    entry::Parameter, sample,
};
use safetensors::Dtype;

/// Writes a bundle for two targets.
fn bundle(out: &Path) -> Bundle {
    bundle_with(out, &[b' '; 3000])
}

/// Writes a bundle with this tokenizer.
fn bundle_with(out: &Path, tokenizer: &[u8]) -> Bundle {
    let mut writer = BundleWriter::create(out).unwrap();
    let vmfb = writer.add_bytes(&[3; 421_990]).unwrap();
    let cuda = TargetArtifact {
        flags: vec!["--iree-hal-target-device=cuda".into(), "--iree-cuda-target=sm_80".into()],
        build_key: Digest::of(b"cuda"),
        ..sample::target(Driver::Cuda, "", vmfb, 512, 100)
    };
    let vmfb = writer.add_bytes(&[4; 5_000]).unwrap();
    let cpu = TargetArtifact {
        cpu_features: vec!["avx2".into(), "fma".into()],
        flags: vec!["--iree-opt-level=O3".into()],
        build_key: Digest::of(b"cpu"),
        ..sample::target(Driver::Local, "x86_64", vmfb, 512, 100)
    };
    let mut manifest = Manifest {
        targets: [("cpu".to_string(), cpu), ("cuda".to_string(), cuda)].into(),
        files: [
            ("config.json".to_string(), writer.add_bytes(b"{}").unwrap()),
            ("tokenizer.json".to_string(), writer.add_bytes(tokenizer).unwrap()),
        ]
        .into(),
        parameters: vec![
            Parameter::new("model.embed_tokens.weight", Dtype::BF16, &[100, 64]),
            Parameter::new("model.norm.weight", Dtype::F32, &[64]),
        ],
        ..sample::manifest(512, 100)
    };
    manifest.plan.as_mut().unwrap().precision = Float::Bf16;
    manifest.plan.as_mut().unwrap().cache_type = CacheType::Float(Float::Bf16);
    writer.finish(&manifest).unwrap()
}

fn output(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mlxcel-bundle")).args(arguments).current_dir(folder).output().unwrap()
}

/// Returns the exit status, stdout and stderr as one text.
fn run(arguments: &[&str], folder: &Path) -> String {
    let Output { status, stdout, stderr } = output(arguments, folder);
    let code = status.code().unwrap();
    format!("exit {code}\n{}{}", String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_large_file_is_reread_only_after_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = bundle_with(&folder.path().join("b"), &vec![b' '; 1 << 20]);
    // A file that was just written is not remembered: a second write could leave its time as it is.
    thread::sleep(Duration::from_millis(2100));
    let store = folder.path().join("store");
    let size = || {
        let mut size = Command::new(env!("CARGO_BIN_EXE_mlxcel-bundle"));
        size.args(["size", "b"]).current_dir(folder.path()).env("MLXCEL_STORE", &store).output().unwrap()
    };
    assert!(size().status.success());
    let notes = fs::read_dir(store.join("notes")).unwrap().next().unwrap().unwrap().path();
    let tokenizer = bundle.manifest().files["tokenizer.json"];
    let names = || fs::read_dir(&notes).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names().filter(|name| name != "key").collect::<Vec<_>>(), [tokenizer.digest.hex().as_str()]);
    assert!(size().status.success());
    // Another content with the same length and time.
    let path = bundle.blob_path(&tokenizer);
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let Output { status, stderr, .. } = size();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: file tokenizer.json has digest blake3:"), "{stderr}");
}

#[test]
fn inspect_as_text() {
    let folder = tempfile::tempdir().unwrap();
    bundle(&folder.path().join("b"));
    insta::assert_snapshot!(run(&["inspect", "b"], folder.path()), @r"
    exit 0
    bundle      b
    format      7
    model       tiny
    family      llama
    plan        precision bf16, quant none, kv bf16
                context 512, vocab 100
    cache       64 bytes per position
    compiler    iree 3.13.0
                blake3:d1c2da04f74e1b9322141fd35c76e1887f27d63aee89fffd9c6de3e728882188
    self-test   none recorded

    targets
      cpu
        driver    local
        cpu       x86_64
        needs     avx2 fma
        vmfb      blake3:5bf14637b0ff7183f9013c9122e04a77f71653f42722cff3c21c8bc2f4b6832e  4.9 KiB (5000 bytes)
        build key blake3:5ee10a0c39b0e6d3c0cf58415f6340edc41de3a1f82222069e8b7282ff6d244f
        step      reads 32 bytes of weights
        serving   up to 2 sequences in a call, exact, 8.0 KiB (8192 bytes) for 64 positions
        flags     --iree-opt-level=O3
        entries   step_1  (tokens i32[1], positions i32[1], begins i32[2], starts i32[1], rows i32[1], pages of pool 0 i32[1,8], selected i32[1], selected_count i32[1], cache 0.0 f32[0,2,2,64,8]) -> (next_token i32[1], logits f32[1,100], cache 0.0 f32[0,2,2,64,8])
                  step_4  (tokens i32[4], positions i32[4], begins i32[3], starts i32[2], rows i32[1], pages of pool 0 i32[2,8], selected i32[2], selected_count i32[1], cache 0.0 f32[0,2,2,64,8]) -> (next_token i32[2], logits f32[2,100], cache 0.0 f32[0,2,2,64,8])
      cuda
        driver    cuda
        vmfb      blake3:3d3b55c95832bd7c10a34a1d1ebb637dd8816d400671da2b02821c0b6f95895a  412.1 KiB (421990 bytes)
        build key blake3:685eb275438892b81c37c0693d01dc317c403590173c1fd763ea805098988ffd
        step      reads 32 bytes of weights
        serving   up to 2 sequences in a call, exact, 8.0 KiB (8192 bytes) for 64 positions
        flags     --iree-hal-target-device=cuda
                  --iree-cuda-target=sm_80
        entries   step_1  (tokens i32[1], positions i32[1], begins i32[2], starts i32[1], rows i32[1], pages of pool 0 i32[1,8], selected i32[1], selected_count i32[1], cache 0.0 f32[0,2,2,64,8]) -> (next_token i32[1], logits f32[1,100], cache 0.0 f32[0,2,2,64,8])
                  step_4  (tokens i32[4], positions i32[4], begins i32[3], starts i32[2], rows i32[1], pages of pool 0 i32[2,8], selected i32[2], selected_count i32[1], cache 0.0 f32[0,2,2,64,8]) -> (next_token i32[2], logits f32[2,100], cache 0.0 f32[0,2,2,64,8])

    parameters
      bf16       1 tensor   12.5 KiB (12800 bytes)
      f32        1 tensor   256 bytes
      all        2 tensors  12.8 KiB (13056 bytes)
      the largest is model.embed_tokens.weight bf16[100,64]

    files
      config.json     blake3:6e46dd10defc9b56c29a6ec56b508c21f54c08192194e4df25bf36f0c9c3c279  2 bytes
      tokenizer.json  blake3:75e2e30555055d10866ae77d3e9fe6270b36a54c194074c04e6ece0928c4a0bc  2.9 KiB (3000 bytes)

    weights
      none: pass --weights when you run the bundle

    documents
      none: no SBOM, no provenance
    ");
}

#[test]
fn inspect_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = bundle(&folder.path().join("b"));
    let output = output(&["inspect", "--json", "b"], folder.path());
    assert!(output.status.success() && output.stderr.is_empty());
    let mut json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json.as_object_mut().unwrap().remove("path"), Some("b".into()));
    assert_eq!(json["targets"]["cuda"]["driver"], "cuda");
    assert_eq!(json["targets"]["cuda"]["entries"][1]["role"]["step"]["rows"], 4);
    let manifest: Manifest = serde_json::from_value(json).unwrap();
    assert_eq!(manifest, *bundle.manifest());
}

#[test]
fn verify_finds_damage() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = bundle(&folder.path().join("b"));
    insta::assert_snapshot!(run(&["verify", "b"], folder.path()), @r"
    exit 0
    ok: b is intact, 4 blobs, 419.9 KiB (429992 bytes)
    not signed: nothing proves who made it
    ");
    let config = bundle.blob_path(&bundle.manifest().files["config.json"]);
    fs::write(&config, "[]").unwrap();
    insta::assert_snapshot!(run(&["verify", "b"], folder.path()), @"
    exit 1
    error: file config.json has digest blake3:d53d18c23212ea7b6300594bb89bce60218f6eff2b9d628b8cc42d3e79bbd5ab, expected blake3:6e46dd10defc9b56c29a6ec56b508c21f54c08192194e4df25bf36f0c9c3c279
    hint: the bundle is damaged: copy all of its files again, or compile it again with `mlxcel-compile`
    ");
    insta::assert_snapshot!(run(&["inspect", "b"], folder.path()), @"
    exit 1
    error: file config.json has digest blake3:d53d18c23212ea7b6300594bb89bce60218f6eff2b9d628b8cc42d3e79bbd5ab, expected blake3:6e46dd10defc9b56c29a6ec56b508c21f54c08192194e4df25bf36f0c9c3c279
    hint: the bundle is damaged: copy all of its files again, or compile it again with `mlxcel-compile`
    ");
    insta::assert_snapshot!(run(&["verify", "c"], folder.path()), @"
    exit 1
    error: c is not a bundle: it does not exist
    hint: use the last line that mlxcel-compile printed, or a name that `mlxcel-bundle list` shows
    ");
}

#[test]
fn check_chooses_the_target_that_the_runtime_loads() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, drivers) in [("both", &[Driver::Local, Driver::Vulkan][..]), ("vulkan", &[Driver::Vulkan])] {
        let mut writer = BundleWriter::create(&at.join(name)).unwrap();
        let vmfb = writer.add_bytes(b"vmfb").unwrap();
        let target = |&driver: &Driver| {
            let arch = if driver == Driver::Local { "x86_64" } else { "" };
            (driver.to_string(), sample::target(driver, arch, vmfb, 512, 100))
        };
        let targets = drivers.iter().map(target).collect();
        writer.finish(&Manifest { targets, ..sample::manifest(512, 100) }).unwrap();
    }
    let check = |bundle: &str, has: &str, arguments: &[&str]| {
        let machine = format!(r#"{{"arch": "x86_64", "cpu_features": []{has}}}"#);
        fs::write(at.join("machine.json"), machine).unwrap();
        run(&[&["check", bundle, "--machine", "machine.json"], arguments].concat(), at)
    };
    let llvmpipe = r#", "gpus": [{"driver": "vulkan", "name": "llvmpipe"}]"#;
    let radeon = r#", "gpus": [{"driver": "vulkan", "name": "Radeon"}], "vulkan_drivers": ["radeon_icd"]"#;
    let drivers = r#", "vulkan_drivers": ["lvp_icd", "radeon_icd"]"#;
    insta::assert_snapshot!(check("both", "", &[]), @r"
    exit 0
    local   cpu   run               weights 0.0 MiB, cache 0.0 MiB
    vulkan  none  refuse            found no vulkan device
    runs target local on cpu
    ");
    insta::assert_snapshot!(check("both", llvmpipe, &[]), @r"
    exit 0
    local   cpu       run               weights 0.0 MiB, cache 0.0 MiB
    vulkan  llvmpipe  run               weights 0.0 MiB, cache 0.0 MiB
    runs target local on cpu
    ");
    insta::assert_snapshot!(check("vulkan", llvmpipe, &[]), @r"
    exit 0
    vulkan  llvmpipe  run               weights 0.0 MiB, cache 0.0 MiB
    runs target vulkan on llvmpipe
    ");
    insta::assert_snapshot!(check("both", radeon, &[]), @r"
    exit 0
    local   cpu                               run               weights 0.0 MiB, cache 0.0 MiB
    vulkan  Radeon                            run               weights 0.0 MiB, cache 0.0 MiB
    vulkan  a vulkan device, if there is one  run               weights 0.0 MiB, cache 0.0 MiB; known only from the installed drivers: radeon_icd
    runs target vulkan on Radeon
    ");
    insta::assert_snapshot!(check("both", drivers, &[]), @r"
    exit 0
    local   cpu                               run               weights 0.0 MiB, cache 0.0 MiB
    vulkan  a vulkan device, if there is one  run               weights 0.0 MiB, cache 0.0 MiB; known only from the installed drivers: lvp_icd, radeon_icd
    runs target local on cpu, or target vulkan on a vulkan device, if there is one and it is a GPU
    ");
    insta::assert_snapshot!(check("both", drivers, &["--device", "local"]), @r"
    exit 0
    local  cpu  run               weights 0.0 MiB, cache 0.0 MiB
    runs target local on cpu
    ");
    insta::assert_snapshot!(check("vulkan", drivers, &[]), @r"
    exit 1
    vulkan  a vulkan device, if there is one  run               weights 0.0 MiB, cache 0.0 MiB; known only from the installed drivers: lvp_icd, radeon_icd
    may run target vulkan on a vulkan device, if there is one
    hint: find out with `mlxcel-run --device vulkan` on that machine, or compile for its CPU with `mlxcel-compile --target cpu`
    ");
    insta::assert_snapshot!(check("vulkan", "", &[]), @r"
    exit 1
    vulkan  none  refuse            found no vulkan device
    no target runs on the machine
    hint: compile for its CPU with `mlxcel-compile --target cpu`
    ");
    let json = check("vulkan", drivers, &["--json"]);
    let json: serde_json::Value = serde_json::from_str(json.strip_prefix("exit 1\n").unwrap()).unwrap();
    assert_eq!(
        (&json["runs"], &json["may_run"]["target"]),
        (&serde_json::Value::Null, &serde_json::Value::from("vulkan"))
    );
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let folder = tempfile::tempdir().unwrap();
    bundle(&folder.path().join("b"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_mlxcel-bundle"))
        .args(["inspect", "b"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_full_disk_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    bundle(&folder.path().join("b"));
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else { return };
    let output = Command::new(env!("CARGO_BIN_EXE_mlxcel-bundle"))
        .args(["inspect", "b"])
        .current_dir(folder.path())
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: cannot write to standard output: No space left on device (os error 28)\n\
         hint: free some disk space, or write to another disk\n"
    );
}

#[test]
fn signing_and_verifying() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    bundle(&at.join("b"));
    let run = |arguments: &[&str]| run(arguments, at);
    assert!(run(&["verify", "b"]).ends_with("\nnot signed: nothing proves who made it\n"));
    assert!(run(&["keygen", "--no-password"]).starts_with("exit 0\nkey     "));
    assert!(
        run(&["keygen", "--no-password"])
            .starts_with("exit 1\nerror: mlxcel.pub exists, expected a new file")
    );
    let public = fs::read_to_string(at.join("mlxcel.pub")).unwrap();
    let text = public.lines().last().unwrap();
    let id = public.lines().next().unwrap().rsplit(' ').next().unwrap();
    let done = run(&["sign", "b", "--comment", "release 1"]);
    assert_eq!(done, format!("exit 0\nsigned b with key {id}: release 1\n"));
    for key in ["mlxcel.pub", text] {
        assert!(
            run(&["verify", "b", "--key", key]).ends_with(&format!("\nok: signed by key {id}: release 1\n"))
        );
    }
    let unchecked = format!("\nnot verified: claims a signature by key {id}; verify it with --key\n");
    assert!(run(&["verify", "b"]).ends_with(&unchecked));

    fs::write(at.join("password"), "secret\n").unwrap();
    assert!(run(&["keygen", "--out", "other.key", "--password-file", "password"]).starts_with("exit 0"));
    let refused = run(&["verify", "b", "--key", "other.pub"]);
    assert!(refused.starts_with(&format!("exit 1\nerror: found one by the key {id}, expected")), "{refused}");
    let closed = run(&["sign", "b", "--key", "other.key", "--no-password"]);
    assert!(closed.starts_with("exit 1\nerror: "), "{closed}");
    let signed = run(&["sign", "b", "--key", "other.key", "--password-file", "password"]);
    assert!(signed.starts_with("exit 0\nsigned b with key "), "{signed}");
    assert!(run(&["sign", "b", "--comment", "two\nlines"]).starts_with("exit 2\n"));

    // minisign itself verifies the signature, if it is installed.
    let minisign =
        Command::new("minisign").current_dir(at).args(["-Vm", "b/manifest.toml", "-p", "other.pub"]).output();
    if let Ok(output) = minisign {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_program_is_shown_with_its_functions() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, change: &dyn Fn(&mut Manifest)| {
        let mut writer = BundleWriter::create(&folder.path().join(name)).unwrap();
        let mut manifest = sample::program("x86_64", writer.add_bytes(b"vmfb").unwrap());
        change(&mut manifest);
        writer.finish(&manifest).unwrap();
    };
    write("a", &|_| ());
    let source = Digest::of(b"program");
    let shown = run(&["inspect", "a"], folder.path()).replace(&source.hex(), "SOURCE");
    insta::assert_snapshot!(shown, @r"
    exit 0
    bundle      a
    format      7
    program     step
    stablehlo   1.15.0
    source      blake3:SOURCE
    compiler    iree 3.13.0
                blake3:d1c2da04f74e1b9322141fd35c76e1887f27d63aee89fffd9c6de3e728882188
    self-test   none recorded

    functions
      step
        state     w     f32[100]  next from w
        argument  x     f32[100]
        result    w     f32[100]
        result    loss  f32[]

    targets
      cpu
        driver    local
        cpu       x86_64
        vmfb      blake3:4166bb3ea9f457b17746fd3653d16065bcd13d195857aad716cf1843fb27b993  4 bytes
        build key blake3:ff8e2bab3b26e0c127002127905539b47eb421de85d554e15f55a446459b52b4

    parameters
      none

    weights
      none: the program has no parameters

    documents
      none: no SBOM, no provenance
    ");
    write("b", &|manifest| {
        let entry = &mut manifest.targets.get_mut("cpu").unwrap().entries[0];
        entry.arguments[1].dtype = Dtype::BF16;
        manifest.program.as_mut().unwrap().stablehlo = None;
    });
    insta::assert_snapshot!(run(&["diff", "a", "b"], folder.path()), @r"
    exit 1
    stablehlo              1.15.0 → text
    target cpu entry step  (w state f32[100], x input f32[100], storage f32[100]) -> (w output f32[100], loss output f32[]) → (w state f32[100], x input bf16[100], storage f32[100]) -> (w output f32[100], loss output f32[])
    ");
    let verified = run(&["verify", "a"], folder.path());
    assert!(verified.starts_with("exit 0\nok: a is intact, 1 blobs"), "{verified}");
}

#[test]
fn recorded_calls_go_with_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut writer = BundleWriter::create(&path).unwrap();
    let mut manifest = sample::program("x86_64", writer.add_bytes(b"vmfb").unwrap());
    let (inputs, outputs) = (writer.add_bytes(b"inputs").unwrap(), writer.add_bytes(b"outputs").unwrap());
    manifest.goldens = vec![Golden { function: "step".into(), rtol: 1e-5, atol: 0.0, inputs, outputs }];
    let bundle = writer.finish(&manifest).unwrap();
    for arguments in [
        &["export", "a"][..],
        &["import", "a.tar", "--out", "b"],
        &["copy", "b", "--out", "c"],
        &["sign", "c", "--key", "none"],
    ] {
        let said = run(arguments, folder.path());
        assert_eq!(said.starts_with("exit 0\n"), arguments[0] != "sign", "{said}");
    }
    assert_eq!(Bundle::open(&folder.path().join("c")).unwrap().manifest(), bundle.manifest());
    assert_eq!(bundle.read_small(&outputs).unwrap(), b"outputs");
    fs::write(bundle.blob_path(&outputs), b"0utputs").unwrap();
    let damaged = run(&["verify", "a"], folder.path());
    assert!(damaged.contains("outputs of golden 1 has digest blake3:"), "{damaged}");
}
