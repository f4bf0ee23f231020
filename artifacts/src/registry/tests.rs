//! Transfers to registries that are slow, busy or out of order, which Debian's is not.

use std::{
    io::{BufRead as _, BufReader, Read, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{Registry, client::Patience, credentials::DockerConfig, transfer::uploaded};
use crate::{
    bundle::{Bundle, write::BundleWriter},
    cancel::Cancel,
    error::{Error, report},
    manifest::{Manifest, tests::manifest},
    store::{Download, Store, StoreWriter},
};

/// A request: its method and path, the host that it names, and its body, which nothing has read yet.
struct Request<'a> {
    line: String,
    host: String,
    body: Box<dyn Read + 'a>,
}

/// Starts a registry that answers every request with what `answer` writes: a status line and headers, without the empty line.
/// Returns a reference in it.
fn registry(answer: impl Fn(&mut Request<'_>) -> String + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let reference = format!("{}/tiny:1", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            // What a client leaves is an error here, and of no interest.
            thread::spawn(move || _ = serve(&stream, &*answer));
        }
    });
    reference
}

fn serve(stream: &TcpStream, answer: &dyn Fn(&mut Request<'_>) -> String) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_ascii_lowercase());
    }
    let Some(line) = head.first().cloned() else { return Ok(()) };
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let host = head.iter().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
    let mut request = Request { line, host, body: Box::new(reader.take(length.unwrap_or(0))) };
    let answer = answer(&mut request);
    let (head, body) = answer.split_once("\n\n").unwrap_or((&answer, ""));
    let head = head.replace('\n', "\r\n");
    let end = format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    (&*stream).write_all(end.as_bytes())
}

/// Answers as a registry that takes everything, with this location for uploads.
fn taking(request: &mut Request<'_>, location: &str) -> String {
    const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    _ = std::io::copy(&mut request.body, &mut std::io::sink());
    match request.line.split([' ', '?']).collect::<Vec<_>>()[..] {
        ["get", "/v2/", ..] => "200 OK".into(),
        ["head", path, ..] if path.contains("/blobs/") => "404 Not Found".into(),
        ["post", ..] => format!("202 Accepted\nLocation: {location}"),
        ["put", ..] => "201 Created\nLocation: http://127.0.0.1/done".into(),
        _ => format!("200 OK\nDocker-Content-Digest: {DIGEST}"),
    }
}

fn bundle(folder: &Path, weights: &[u8]) -> Bundle {
    let mut writer = BundleWriter::create(&folder.join("bundle")).unwrap();
    writer.add_bytes(b"vmfb").unwrap();
    writer.add_bytes(b"{}").unwrap();
    let blob = writer.add_bytes(weights).unwrap();
    let weights = [("model.safetensors".to_owned(), blob)].into();
    writer.finish(&Manifest { weights, ..manifest() }).unwrap()
}

fn connect(reference: &str, byte: Duration) -> Registry {
    let patience = Patience { byte, answer: byte };
    Registry::with_patience(reference, &DockerConfig::default(), false, patience).unwrap()
}

fn push(reference: &str, weights: &[u8], byte: Duration) -> Result<String, Error> {
    let folder = tempfile::tempdir().unwrap();
    connect(reference, byte).push(&bundle(folder.path(), weights), &mut |_| ())
}

#[test]
fn an_upload_may_take_longer_than_a_byte() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let reference = registry(move |request| {
        if request.line.starts_with("put /upload") {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut piece = vec![0; 4 << 20];
            while request.body.read_exact(&mut piece).is_ok() {
                thread::sleep(Duration::from_millis(250));
            }
        }
        taking(request, "/upload")
    });
    let start = Instant::now();
    let end = push(&reference, &vec![7; 40 << 20], Duration::from_secs(2));
    assert!(end.is_ok(), "{end:?}");
    // Longer than the patience; the weights, two small blobs, the manifest and the configuration were sent once each.
    assert!(start.elapsed() > Duration::from_secs(2));
    assert_eq!(asked.load(Ordering::Relaxed), 5);
}

#[test]
fn an_upload_that_stands_still_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let patience = Patience { byte: Duration::from_millis(300), answer: Duration::from_millis(900) };
    for (sent, problem, least) in [(4, "took no byte for 300ms", 300), (10, "did not answer for 900ms", 900)]
    {
        let start = Instant::now();
        let sent = AtomicU64::new(sent);
        let mut reported = 0;
        let progress = &mut |_| reported += 1;
        let upload = uploaded(std::future::pending::<Result<(), _>>(), (&sent, 10), patience, progress);
        let error = runtime.block_on(upload).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        assert!(start.elapsed() >= Duration::from_millis(least) && reported >= least / 150);
    }
}

#[test]
fn a_busy_registry_is_asked_again() {
    const BUSY: &str = "429 Too Many Requests\n\n\
                        {\"errors\":[{\"code\":\"TOOMANYREQUESTS\",\"message\":\"slow down\"}]}";
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let reference = registry(move |request| {
        if !request.line.contains("/manifests/") {
            return taking(request, "/upload");
        }
        if counted.fetch_add(1, Ordering::Relaxed) == 0 { BUSY.into() } else { "200 OK\n\n{}".into() }
    });
    let found = connect(&reference, Duration::from_secs(10)).resolve().unwrap();
    // The digest of `{}`.
    assert!(
        found.ends_with("@sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
        "{found}"
    );
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[test]
fn a_refused_upload_is_refused_once_in_the_words_of_the_registry() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let reference = registry(move |request| {
        if !request.line.starts_with("post ") {
            return taking(request, "/upload");
        }
        counted.fetch_add(1, Ordering::Relaxed);
        let body = "{\"errors\":[{\"code\":\"DENIED\",\"message\":\"you may only read here\"}]}";
        format!("403 Forbidden\n\n{body}")
    });
    let error = report(&push(&reference, b"weights", Duration::from_secs(10)).unwrap_err());
    assert!(error.contains("answered 403 and reports: you may only read here"), "{error}");
    assert!(error.contains("hint: run `docker login 127.0.0.1:"), "{error}");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn addresses_that_are_none_are_errors() {
    let reference = registry(|request| taking(request, "uploads/1"));
    let error = report(&push(&reference, b"weights", Duration::from_secs(10)).unwrap_err());
    assert!(error.contains("cannot push") && error.contains("hint: "), "{error}");
}

#[test]
fn a_token_that_is_none_is_an_error() {
    let reference = registry(|request| match request.line.split([' ', '?']).collect::<Vec<_>>()[..] {
        ["get", "/v2/", ..] => {
            let header = format!("Bearer realm=\"http://{}/token\",service=\"tiny\"", request.host);
            format!("401 Unauthorized\nWWW-Authenticate: {header}")
        }
        _ => "200 OK\n\n{\"token\":\"a\\nb\"}".into(),
    });
    let error = report(&connect(&reference, Duration::from_secs(10)).resolve().unwrap_err());
    assert!(
        error.contains("found an address or a token in an answer of the registry that is none"),
        "{error}"
    );
}

#[test]
fn a_pull_that_waits_for_another_one_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = bundle(folder.path(), b"weights");
    let store = Store::new(folder.path().join("store"), None).unwrap();
    let name = "tiny".parse().unwrap();
    let (mut other, mut own) =
        (StoreWriter::new(&store, &name).unwrap(), StoreWriter::new(&store, &name).unwrap());
    let (_, blob) = bundle.manifest().blobs().next().unwrap();
    let part = other.download(blob).unwrap();
    assert!(matches!(part, Download::Part(_)));
    let cancel = Cancel::new();
    let waiting = connect("localhost:1/tiny", Duration::from_secs(10)).cancelled_by(&cancel);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            cancel.cancel();
        });
        let error = report(&waiting.run("pull", waiting.open_download(&mut own, blob)).unwrap_err());
        assert!(error.contains("it was cancelled"), "{error}");
    });
    // Once the other one is done, it is there.
    drop(part);
    assert!(matches!(own.download(blob).unwrap(), Download::Part(_)));
}
