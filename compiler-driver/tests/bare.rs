//! Signed bundles of what PyTorch and JAX exported, on a machine with nothing installed: a folder with mlxcel-run and the libraries
//! that it loads is the whole file system.

use std::{fs, path::Path, process::Command};

use mlxcel_artifacts::SecretKey;
use mlxcel_compiler_driver::GoldenFiles;

use crate::{
    programs_run::{Built, built, exported},
    real::program,
};

/// Copies a program into a folder that becomes the root of a file system, with the libraries that it loads.
fn install(program: &Path, root: &Path) {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let libraries: Vec<_> = listed.split_whitespace().filter(|word| word.starts_with('/')).collect();
    assert!(!libraries.is_empty(), "{listed}");
    for library in libraries {
        assert!(
            ["/libc.", "/libm.", "/libgcc_s.", "/ld-linux"].iter().any(|name| library.contains(name)),
            "mlxcel-run loads {library}, which not every machine has"
        );
        let place = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(library, place).unwrap();
    }
    fs::copy(program, root.join("mlxcel-run")).unwrap();
}

/// Copies the files of a folder and of those in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &place) } else { _ = fs::copy(&path, place).unwrap() }
    }
}

/// Signs a bundle, and runs it where there is nothing else.
fn runs_alone(built: &Built, name: &str, expected: &str) {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let (secret, public) = (tempfile::tempdir().unwrap(), at("key.pub"));
    let secret = secret.path().join("key");
    SecretKey::generate(&secret, &public, None).unwrap();
    let key = SecretKey::open(&secret, || unreachable!("it has no password")).unwrap();
    built.bundle.sign(&key, "release 1").unwrap();
    install(&program("mlxcel-run"), root.path());
    copy(built.bundle.path(), &at("b"));
    for file in ["in.npz", "out.npz"] {
        fs::copy(exported(&format!("{name}-{file}")), at(file)).unwrap();
    }
    let run = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        // Who is not root may be root of a name space.
        command.args(["--user", "--map-root-user", "--root"]).arg(root.path());
        command.args(["/mlxcel-run", "b", "--require-signature", "key.pub"]).args(arguments).env_clear();
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = run(&["--self-test"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.starts_with("ok    1 of 1, main ") && stdout.contains("self-test passed on "), "{stdout}");
    let tolerance = ["--rtol", "1e-5", "--atol", "1e-5"];
    let (code, stdout, stderr) =
        run(&[&["--input", "@in.npz", "--expected", "@out.npz"][..], &tolerance].concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains(expected) && stderr.contains("ok    "), "{stdout}{stderr}");
    // One bit of its code, and nothing runs.
    let blobs = fs::read_dir(at("b/blobs")).unwrap().map(|entry| entry.unwrap().path());
    let has_code = |bytes: &Vec<u8>| bytes.windows(4).any(|part| part == b"\x7fELF");
    let (code, mut bytes) =
        blobs.map(|path| (path.clone(), fs::read(path).unwrap())).find(|(_, bytes)| has_code(bytes)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&code, bytes).unwrap();
    let (code, stdout, stderr) = run(&["--input", "@in.npz"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("error: vmfb of target cpu has digest"), "{stderr}");
}

/// Records the call whose arguments and results were exported beside the program.
fn golden(name: &str) -> GoldenFiles {
    let [inputs, results] = ["in", "out"].map(|file| exported(&format!("{name}-{file}.npz")));
    format!("{}:{}", inputs.display(), results.display()).parse().unwrap()
}

#[test]
fn a_block_of_pytorch_runs_with_its_own_parameters() {
    let names = fs::read_to_string(exported("torch_block.txt")).unwrap();
    let bind = names.lines().enumerate().map(|(index, name)| (format!("states[{index}]"), name.to_owned()));
    let built = built(&exported("torch_block.jax"), |request| {
        request.parameters = Some(exported("torch_block.safetensors"));
        request.bind = bind.collect();
        request.goldens = vec![golden("torch_block")];
    })
    .unwrap();
    runs_alone(&built, "torch_block", "result[0] f32[2,16,32]");
}

#[test]
fn a_block_of_jax_runs() {
    let built =
        built(&exported("jax_block.jax"), |request| request.goldens = vec![golden("jax_block")]).unwrap();
    runs_alone(&built, "jax_block", "result f32[2,16,32]");
}
