//! Push and pull through a real registry, Debian's docker-registry, on this machine.

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

use mlxcel_artifacts::Digest;

use crate::common::{masked::masked, program, registry::Registry, text, write};

/// What a program says, where neither ports nor folders are the same twice.
fn said(folder: &Path, registry: &Registry, arguments: &[&str]) -> String {
    let shown =
        text(program(folder, arguments).env("DOCKER_CONFIG", folder.join(".docker")).output().unwrap());
    masked(&shown.replace(folder.to_str().unwrap(), "FOLDER").replace(&registry.port.to_string(), "PORT"))
}

#[test]
fn what_is_pushed_is_pulled() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, false);
    let reference = registry.reference("models/tiny:q4");
    let say = |arguments: &[&str]| said(at, &registry, arguments);
    write(&at.join("a"), &vec![7; 3_000_000], |_| ());
    assert!(say(&["keygen", "--no-password"]).starts_with("exit 0"));
    assert!(say(&["sign", "a", "--no-password"]).starts_with("exit 0"));
    let pushed = || {
        let output = program(at, &["push", "a", &reference]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim().strip_prefix(&reference).and_then(|rest| rest.strip_prefix('@')).unwrap().to_owned()
    };
    let digest = pushed();
    // The same bundle is the same artifact.
    assert_eq!(pushed(), digest);
    assert_eq!(say(&["pull", &reference]), "exit 0\nlocalhost:PORT/models/tiny:q4\n");
    assert_eq!(say(&["diff", "a", &reference]), "exit 0\n");
    assert!(say(&["verify", &reference, "--key", "mlxcel.pub"]).contains("ok: signed by the key"));
    // By its digest, and under another name; from a store that has its files, nothing is fetched.
    let by_digest = format!("{}@{digest}", registry.reference("models/tiny"));
    fs::remove_file(registry.blob(&vec![7; 3_000_000])).unwrap();
    assert_eq!(say(&["pull", &by_digest, "--name", "tiny"]), "exit 0\ntiny\n");
    assert_eq!(say(&["diff", "a", "tiny"]), "exit 0\n");
}

#[test]
fn a_tampered_layer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, false);
    let reference = registry.reference("tiny");
    let say = |arguments: &[&str]| said(at, &registry, arguments);
    write(&at.join("a"), &[7; 3_000], |_| ());
    assert!(say(&["push", "a", &reference]).starts_with("exit 0"));
    let whole = [7; 3_000];
    let blob = registry.blob(&whole);
    let mut tampered = whole;
    tampered[1_000] = 8;
    for (bytes, place) in
        [(&tampered[..], "same length"), (&whole[..2_000], "shorter"), (&[8; 4_000][..], "longer")]
    {
        fs::write(&blob, bytes).unwrap();
        let refused = say(&["pull", &reference]);
        assert!(refused.starts_with("exit 1\n") && refused.contains("\nerror: "), "{place}: {refused}");
        if place == "same length" {
            insta::assert_snapshot!(refused, @r"
            exit 1
            error: what localhost:PORT/tiny gives is not the bundle that was pushed: weights file model.safetensors has digest blake3:DIGEST, expected blake3:DIGEST
            hint: it was changed in the registry or on the way: do not run it, and push it again from where it is whole
            hint: the bundle is damaged: copy it again with all of its blobs, or compile it again
            ");
        }
        assert!(say(&["list"]).ends_with(" has no bundles\n"), "{place}");
    }
    // The registry is mended, and so is what it gives.
    fs::write(&blob, whole).unwrap();
    assert!(say(&["pull", &reference]).starts_with("exit 0"));
    assert_eq!(say(&["diff", "a", &reference]), "exit 0\n");
    // A manifest that is not the one that was pushed.
    let manifest = fs::read(at.join("a/manifest.toml")).unwrap();
    let mut changed = manifest.clone();
    changed[0] = b'#';
    fs::write(registry.blob(&manifest), changed).unwrap();
    insta::assert_snapshot!(say(&["pull", &reference]), @r"
    exit 1
    error: what localhost:PORT/tiny gives is not the bundle that was pushed: Invalid digest. Expected sha256:DIGEST, got sha256:DIGEST
    hint: it was changed in the registry or on the way: do not run it, and push it again from where it is whole
    ");
}

#[test]
fn a_download_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, false);
    let weights: Vec<u8> = (0..20_000_000u32).map(|i| (i ^ (i >> 9)) as u8).collect();
    write(&at.join("a"), &weights, |_| ());
    assert!(said(at, &registry, &["push", "a", &registry.reference("tiny")]).starts_with("exit 0"));
    // A way to it that breaks after so many bytes, and counts them.
    let way = Way::to(registry.port, 5_000_000);
    let reference = format!("localhost:{}/tiny", way.port);
    let pulled = said(at, &registry, &["pull", &reference, "--name", "tiny"]);
    assert!(pulled.starts_with("exit 0\ntiny\nwarning: once more after "), "{pulled}");
    assert_eq!(said(at, &registry, &["diff", "a", "tiny"]), "exit 0\n");
    let (moved, broken) = way.moved();
    assert!(broken >= 3, "the way broke {broken} times");
    // Nothing was fetched twice but what was on its way when it broke.
    assert!(moved < 24_000_000, "{moved} bytes for 20 MB");
}

#[test]
fn what_was_left_of_a_download_may_be_anything() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, false);
    let reference = registry.reference("tiny");
    write(&at.join("a"), &[7; 30_000], |_| ());
    let say = |arguments: &[&str]| said(at, &registry, arguments);
    assert!(say(&["push", "a", &reference]).starts_with("exit 0"));
    let incoming = at.join(".store/incoming");
    fs::create_dir_all(&incoming).unwrap();
    for length in [1, 29_999, 30_000, 40_000] {
        let part = incoming.join(format!("{}.part", Digest::of(&[7; 30_000]).hex()));
        fs::write(part, vec![0; length]).unwrap();
        assert_eq!(say(&["pull", &reference, "--name", "tiny"]), "exit 0\ntiny\n", "{length}");
        assert!(say(&["remove", "tiny"]).starts_with("exit 0\n"));
    }
}

#[test]
fn credentials_are_docker_s() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, true);
    let reference = registry.reference("tiny");
    write(&at.join("a"), &[7; 3_000], |_| ());
    let say = |arguments: &[&str]| said(at, &registry, arguments);
    insta::assert_snapshot!(say(&["push", "a", &reference]), @r"
    exit 1
    error: cannot push localhost:PORT/tiny: the registry answers 401 Unauthorized
    hint: docker login localhost:PORT gives credentials
    ");
    let config = |auth: &str| {
        fs::create_dir_all(at.join(".docker")).unwrap();
        let text = format!("{{\"auths\": {{\"localhost:{}\": {{\"auth\": \"{auth}\"}}}}}}", registry.port);
        fs::write(at.join(".docker/config.json"), text).unwrap();
    };
    // somebody:wrong
    config("c29tZWJvZHk6d3Jvbmc=");
    assert!(say(&["push", "a", &reference]).starts_with("exit 1\nerror: cannot push"));
    // somebody:secret
    config("c29tZWJvZHk6c2VjcmV0");
    assert!(say(&["push", "a", &reference]).starts_with("exit 0"));
    assert!(say(&["pull", &reference]).starts_with("exit 0"));
    config("no base64");
    insta::assert_snapshot!(say(&["pull", &reference]), @r"
    exit 1
    error: cannot take the credentials for localhost:PORT from FOLDER/.docker/config.json: Unable to decode credential
    hint: docker login localhost:PORT writes them there
    ");
}

#[test]
fn what_is_not_there_or_no_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let registry = Registry::start(at, false);
    let say = |arguments: &[&str]| said(at, &registry, arguments);
    insta::assert_snapshot!(say(&["pull", &registry.reference("none")]), @r"
    exit 1
    error: cannot pull localhost:PORT/none: the registry says: manifest unknown
    hint: look at its name and its tag
    ");
    insta::assert_snapshot!(say(&["pull", "Not A Reference"]), @r"
    exit 1
    error: `Not A Reference` names no place in a registry: it has no registry before a /
    hint: such as registry.example/models/demo:1 or localhost:5000/demo
    ");
    write(&at.join("a"), &[7; 3_000], |_| ());
    assert!(say(&["push", "a", &registry.reference("tiny")]).starts_with("exit 0"));
    // Nobody listens there.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let refused = say(&["pull", &format!("localhost:{nobody}/tiny")]).replace(&nobody.to_string(), "NOBODY");
    insta::assert_snapshot!(refused, @r"
    exit 1
    error: cannot pull localhost:NOBODY/tiny: Connection refused (os error 111)
    hint: look at the registry's name; --plain-http is for one without TLS
    ");
}

/// A way to a port that breaks every connection after so many bytes.
struct Way {
    port: u16,
    counts: Arc<Mutex<(usize, usize)>>,
}

impl Way {
    fn to(port: u16, limit: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let way = Self { port: listener.local_addr().unwrap().port(), counts: Arc::default() };
        let counts = Arc::clone(&way.counts);
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
        way
    }

    /// Bytes that came back, and how often it broke.
    fn moved(&self) -> (usize, usize) {
        *self.counts.lock().unwrap()
    }
}
