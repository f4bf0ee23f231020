//! Push and pull through a local registry, Debian's docker-registry.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]

mod common;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use mlxcel_artifacts::{Digest, DockerConfig};

use crate::common::{masked::masked, program, registry::Registry, transcript, write};

/// Runs the program. Masks the port, the folder and digests in its transcript.
fn run(folder: &Path, registry: &Registry, arguments: &[&str]) -> String {
    let transcript =
        transcript(program(folder, arguments).env("DOCKER_CONFIG", folder.join(".docker")).output().unwrap());
    masked(
        &transcript.replace(folder.to_str().unwrap(), "FOLDER").replace(&registry.port.to_string(), "PORT"),
    )
}

#[test]
fn a_pushed_bundle_can_be_pulled() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, false);
    let reference = registry.reference("models/tiny:q4");
    let run = |arguments: &[&str]| run(at, &registry, arguments);
    write(&at.join("a"), &vec![7; 3_000_000], |_| ());
    assert!(run(&["keygen", "--no-password"]).starts_with("exit 0"));
    assert!(run(&["sign", "a", "--no-password"]).starts_with("exit 0"));
    let pushed = || {
        let output = program(at, &["push", "a", &reference]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim().strip_prefix(&reference).and_then(|rest| rest.strip_prefix('@')).unwrap().to_owned()
    };
    let digest = pushed();
    // Pushing the same bundle again gives the same artifact.
    assert_eq!(pushed(), digest);
    let checked = run(&["check", &reference, "--remote"]);
    assert_eq!(checked, run(&["check", "a"]));
    assert!(checked.contains(" target "), "{checked}");
    assert!(run(&["list"]).ends_with(" has no bundles\n"));
    assert!(run(&["check", "a", "--plain-http"]).contains("--remote"));
    assert!(run(&["check", "nowhere", "--remote"]).contains("hint: "));
    assert_eq!(run(&["pull", &reference]), "exit 0\nlocalhost:PORT/models/tiny:q4\n");
    assert_eq!(run(&["diff", "a", &reference]), "exit 0\n");
    assert!(run(&["verify", &reference, "--key", "mlxcel.pub"]).contains("ok: signed by key"));
    // Pulling by digest under another name fetches nothing: the store has the files, and the registry lost one.
    let by_digest = format!("{}@{digest}", registry.reference("models/tiny"));
    let tagged = mlxcel_artifacts::Registry::new(&reference, &DockerConfig::default(), false).unwrap();
    assert_eq!(tagged.resolve().unwrap(), by_digest);
    fs::remove_file(registry.blob(&vec![7; 3_000_000])).unwrap();
    assert_eq!(run(&["pull", &by_digest, "--name", "tiny"]), "exit 0\ntiny\n");
    assert_eq!(run(&["diff", "a", "tiny"]), "exit 0\n");
}

#[test]
fn a_tampered_layer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, false);
    let reference = registry.reference("tiny");
    let run = |arguments: &[&str]| run(at, &registry, arguments);
    write(&at.join("a"), &[7; 3_000], |_| ());
    assert!(run(&["push", "a", &reference]).starts_with("exit 0"));
    let whole = [7; 3_000];
    let blob = registry.blob(&whole);
    let mut tampered = whole;
    tampered[1_000] = 8;
    for (bytes, place) in
        [(&tampered[..], "same length"), (&whole[..2_000], "shorter"), (&[8; 4_000][..], "longer")]
    {
        fs::write(&blob, bytes).unwrap();
        let refused = run(&["pull", &reference]);
        assert!(refused.starts_with("exit 1\n") && refused.contains("\nerror: "), "{place}: {refused}");
        if place == "same length" {
            insta::assert_snapshot!(refused, @r"
            exit 1
            error: localhost:PORT/tiny does not have the digests of the bundle that was pushed: weights file model.safetensors has digest blake3:DIGEST, expected blake3:DIGEST
            hint: do not run it; push it again with `mlxcel-bundle push BUNDLE localhost:PORT/tiny`
            hint: the bundle is damaged: copy all of its files again, or compile it again with `mlxcel-compile`
            ");
        }
        assert!(run(&["list"]).ends_with(" has no bundles\n"), "{place}");
    }
    // After the registry is repaired, the pull succeeds.
    fs::write(&blob, whole).unwrap();
    assert!(run(&["pull", &reference]).starts_with("exit 0"));
    assert_eq!(run(&["diff", "a", &reference]), "exit 0\n");
    // A changed manifest.
    let manifest = fs::read(at.join("a/manifest.toml")).unwrap();
    let mut changed = manifest.clone();
    changed[0] = b'#';
    fs::write(registry.blob(&manifest), changed).unwrap();
    insta::assert_snapshot!(run(&["pull", &reference]), @r"
    exit 1
    error: localhost:PORT/tiny does not have the digests of the bundle that was pushed: Invalid digest. Expected sha256:DIGEST, got sha256:DIGEST
    hint: do not run it; push it again with `mlxcel-bundle push BUNDLE localhost:PORT/tiny`
    ");
}

#[test]
fn an_interrupted_pull_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, false);
    let weights: Vec<u8> = (0..20_000_000u32).map(|i| (i ^ (i >> 9)) as u8).collect();
    write(&at.join("a"), &weights, |_| ());
    assert!(run(at, &registry, &["push", "a", &registry.reference("tiny")]).starts_with("exit 0"));
    // A proxy that closes connections after 5 MB.
    let proxy = Proxy::start(registry.port, 5_000_000);
    let reference = format!("localhost:{}/tiny", proxy.port);
    let pulled = run(at, &registry, &["pull", &reference, "--name", "tiny"]);
    assert!(pulled.starts_with("exit 0\ntiny\nwarning: retrying after "), "{pulled}");
    assert_eq!(run(at, &registry, &["diff", "a", "tiny"]), "exit 0\n");
    let (moved, broken) = proxy.counts();
    assert!(broken >= 3, "the proxy closed {broken} connections");
    // Only bytes in flight when a connection closed are fetched twice.
    assert!(moved < 24_000_000, "{moved} bytes for 20 MB");
}

#[test]
fn a_damaged_partial_download_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, false);
    let reference = registry.reference("tiny");
    write(&at.join("a"), &[7; 30_000], |_| ());
    let run = |arguments: &[&str]| run(at, &registry, arguments);
    assert!(run(&["push", "a", &reference]).starts_with("exit 0"));
    let incoming = at.join(".store/incoming");
    fs::create_dir_all(&incoming).unwrap();
    for length in [1, 29_999, 30_000, 40_000] {
        let part = incoming.join(format!("{}.part", Digest::of(&[7; 30_000]).hex()));
        fs::write(part, vec![0; length]).unwrap();
        assert_eq!(run(&["pull", &reference, "--name", "tiny"]), "exit 0\ntiny\n", "{length}");
        assert!(run(&["remove", "tiny"]).starts_with("exit 0\n"));
    }
}

#[test]
fn credentials_come_from_docker() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, true);
    let reference = registry.reference("tiny");
    write(&at.join("a"), &[7; 3_000], |_| ());
    let run = |arguments: &[&str]| run(at, &registry, arguments);
    insta::assert_snapshot!(run(&["push", "a", &reference]), @r"
    exit 1
    error: cannot push localhost:PORT/tiny: the registry answered 401 Unauthorized
    hint: run `docker login localhost:PORT`
    ");
    let config = |auth: &str| {
        fs::create_dir_all(at.join(".docker")).unwrap();
        let text = format!("{{\"auths\": {{\"localhost:{}\": {{\"auth\": \"{auth}\"}}}}}}", registry.port);
        fs::write(at.join(".docker/config.json"), text).unwrap();
    };
    // somebody:wrong
    config("c29tZWJvZHk6d3Jvbmc=");
    assert!(run(&["push", "a", &reference]).starts_with("exit 1\nerror: cannot push"));
    // somebody:secret
    config("c29tZWJvZHk6c2VjcmV0");
    assert!(run(&["push", "a", &reference]).starts_with("exit 0"));
    assert!(run(&["pull", &reference]).starts_with("exit 0"));
    config("no base64");
    insta::assert_snapshot!(run(&["pull", &reference]), @r"
    exit 1
    error: cannot read the credentials for localhost:PORT in FOLDER/.docker/config.json: Unable to decode credential
    hint: write them again with `docker login localhost:PORT`
    ");
}

#[test]
fn a_missing_reference_or_registry_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, false);
    let run = |arguments: &[&str]| run(at, &registry, arguments);
    insta::assert_snapshot!(run(&["pull", &registry.reference("none")]), @r"
    exit 1
    error: cannot pull localhost:PORT/none: the registry reports: manifest unknown
    hint: check the name and the tag
    ");
    insta::assert_snapshot!(run(&["pull", "Not A Reference"]), @r"
    exit 1
    error: `Not A Reference` is not a reference in a registry: found no registry, expected one before the first `/`
    hint: use a reference such as registry.example/models/demo:1 or localhost:5000/demo
    ");
    write(&at.join("a"), &[7; 3_000], |_| ());
    assert!(run(&["push", "a", &registry.reference("tiny")]).starts_with("exit 0"));
    // A port where nothing listens.
    insta::assert_snapshot!(run(&["pull", "localhost:1/tiny"]), @r"
    exit 1
    error: cannot pull localhost:1/tiny: Connection refused (os error 111)
    hint: check the registry's name; pass --plain-http if it has no TLS
    ");
}

/// A proxy that closes every connection after `limit` bytes.
struct Proxy {
    port: u16,
    counts: Arc<Mutex<(usize, usize)>>,
}

impl Proxy {
    fn start(port: u16, limit: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), counts: Arc::default() };
        let counts = Arc::clone(&proxy.counts);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(mut client) = client else { return };
                let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)) else { return };
                let (mut asks, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || std::io::copy(&mut asks, &mut to));
                let counts = Arc::clone(&counts);
                thread::spawn(move || {
                    let (mut buffer, mut sent) = (vec![0; 1 << 16], 0);
                    while let Ok(read @ 1..) = server.read(&mut buffer) {
                        if client.write_all(&buffer[..read]).is_err() {
                            break;
                        }
                        sent += read;
                        counts.lock().unwrap().0 += read;
                        if sent > limit {
                            counts.lock().unwrap().1 += 1;
                            break;
                        }
                    }
                    _ = client.shutdown(Shutdown::Both);
                    _ = server.shutdown(Shutdown::Both);
                });
            }
        });
        proxy
    }

    /// Returns how many bytes it forwarded from the port, and how many connections it closed.
    fn counts(&self) -> (usize, usize) {
        *self.counts.lock().unwrap()
    }
}
