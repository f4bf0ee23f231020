//! A server on the loopback interface that speaks the hub's API, and fails as told.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::json;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

/// The files of a commit.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// What the server has, and how it fails.
#[derive(Default)]
pub(crate) struct State {
    /// Owner and name.
    pub(crate) repo: String,
    /// Commits by branch or tag.
    pub(crate) revisions: BTreeMap<String, String>,
    pub(crate) commits: BTreeMap<String, Files>,
    /// The token without which everything is refused.
    pub(crate) token: Option<String>,
    /// Status and `X-Error-Code` for files.
    pub(crate) refuses_files: Option<(u16, &'static str)>,
    /// Status and `X-Error-Code` for the list of files.
    pub(crate) refuses_list: Option<(u16, &'static str)>,
    /// Bytes after which the next answers with large files are cut.
    pub(crate) cuts: VecDeque<usize>,
    /// The file whose first byte is another one.
    pub(crate) corrupt: Option<String>,
    /// The file that answers state this size of.
    pub(crate) other_size: Option<(String, usize)>,
    /// Whether ranges are ignored.
    pub(crate) ignores_ranges: bool,
    /// Whether the list states names alone, as some mirrors do.
    pub(crate) lists_names: bool,
    /// What answers state as digest, in place of the right one.
    pub(crate) etag: Option<String>,
    /// What was asked for.
    pub(crate) log: Vec<Asked>,
}

/// A request that the server received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) range: Option<String>,
    pub(crate) authorization: Option<String>,
}

/// A server that runs until it is dropped.
pub(crate) struct HubServer {
    pub(crate) endpoint: String,
    pub(crate) state: Arc<Mutex<State>>,
    stopped: Arc<AtomicBool>,
    places: [String; 2],
}

/// An answer's status, headers and body.
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Bytes of the body after which the connection is closed.
    cut: Option<usize>,
}

impl HubServer {
    pub(crate) fn start(state: State) -> Self {
        let state = Arc::new(Mutex::new(state));
        let stopped = Arc::new(AtomicBool::new(false));
        // Large files come from another host, which must not see the token.
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let places = [0, 1].map(|i: usize| listeners[i].local_addr().unwrap().to_string());
        for listener in listeners {
            let (state, stopped, cdn) = (Arc::clone(&state), Arc::clone(&stopped), places[1].clone());
            thread::spawn(move || {
                for stream in listener.incoming() {
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    let (state, cdn) = (Arc::clone(&state), cdn.clone());
                    thread::spawn(move || serve(&stream.unwrap(), &state, &cdn));
                }
            });
        }
        Self { endpoint: format!("http://{}", places[0]), state, stopped, places }
    }

    /// Returns what was asked for since the last time.
    pub(crate) fn log(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state.lock().unwrap().log)
    }
}

impl Drop for HubServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the threads that wait for connections.
        self.places.iter().for_each(|place| drop(TcpStream::connect(place)));
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn git_blob(bytes: &[u8]) -> String {
    let digest = Sha1::new().chain_update(format!("blob {}\0", bytes.len())).chain_update(bytes).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether the hub keeps a file in large storage.
fn is_large(name: &str) -> bool {
    [".safetensors", ".gguf", ".bin"].iter().any(|end| name.ends_with(end))
}

fn digest(name: &str, bytes: &[u8]) -> String {
    if is_large(name) { sha256(bytes) } else { git_blob(bytes) }
}

/// Answers the requests of a connection.
fn serve(stream: &TcpStream, state: &Mutex<State>, cdn: &str) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() {
        return;
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return };
    let (method, mut asked) =
        (method.to_owned(), Asked { path: path.to_owned(), range: None, authorization: None });
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).is_err() || header.trim().is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else { continue };
        match name.to_ascii_lowercase().as_str() {
            "range" => asked.range = Some(value.trim().to_owned()),
            "authorization" => asked.authorization = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let answer = {
        let mut state = state.lock().unwrap();
        let answer = state.answer(&asked, cdn);
        state.log.push(asked);
        answer
    };
    let Answer { status, headers, body, cut } = answer;
    let mut text =
        format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    text.push_str("\r\n");
    let mut stream = stream;
    let sent = if method == "HEAD" { 0 } else { cut.unwrap_or(body.len()).min(body.len()) };
    // A client that hangs up gets nothing.
    _ = stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(&body[..sent]));
}

impl Answer {
    fn refusal(status: u16, code: &str) -> Self {
        let headers = vec![("X-Error-Code", code.to_owned())];
        Self { status, headers, body: b"{\"error\":\"no\"}".to_vec(), cut: None }
    }
}

impl State {
    fn answer(&mut self, asked: &Asked, cdn: &str) -> Answer {
        let path = asked.path.split('?').next().unwrap_or_default().to_owned();
        if let Some(digest) = path.strip_prefix("/cdn/") {
            return self.large(digest, asked.range.as_deref());
        }
        if let Some(token) = &self.token
            && asked.authorization != Some(format!("Bearer {token}"))
        {
            return Answer::refusal(401, "");
        }
        let list = format!("/api/models/{}", self.repo);
        let resolve = format!("/{}/resolve/", self.repo);
        if let Some(rest) = path.strip_prefix(&list) {
            return self.list(rest.strip_prefix("/revision/").unwrap_or("main"));
        }
        if let Some(rest) = path.strip_prefix(&format!("/api/resolve-cache/models/{}/", self.repo)) {
            let (commit, name) = rest.split_once('/').unwrap();
            let bytes = self.commits[commit][name].clone();
            let etag = git_blob(&bytes);
            let mut answer = self.bytes(name, bytes, asked.range.as_deref(), &etag);
            // As huggingface_hub wants it: it reads the headers of the last answer of this host.
            answer.headers.push(("X-Repo-Commit", commit.to_owned()));
            return answer;
        }
        let Some(rest) = path.strip_prefix(&resolve) else { return Answer::refusal(404, "RepoNotFound") };
        if let Some((status, code)) = self.refuses_files {
            return Answer::refusal(status, code);
        }
        let (revision, name) = rest.split_once('/').unwrap();
        let Some(commit) = self.commit(revision) else { return Answer::refusal(404, "RevisionNotFound") };
        let name = name.replace("%20", " ");
        let Some(bytes) = self.commits[&commit].get(&name) else {
            return Answer::refusal(404, "EntryNotFound");
        };
        let etag = self.etag.clone().unwrap_or_else(|| digest(&name, bytes));
        let (status, place) = match is_large(&name) {
            true => (302, format!("http://{cdn}/cdn/{}", sha256(bytes))),
            false => (307, format!("/api/resolve-cache/models/{}/{commit}/{name}", self.repo)),
        };
        let other = self.other_size.as_ref().filter(|(of, _)| *of == name);
        let size = other.map_or(bytes.len(), |&(_, size)| size);
        let headers = vec![
            ("Location", place),
            ("X-Repo-Commit", commit.clone()),
            ("X-Linked-Etag", format!("\"{etag}\"")),
            ("X-Linked-Size", size.to_string()),
            ("ETag", "\"of the answer\"".to_owned()),
        ];
        Answer { status, headers, body: vec![], cut: None }
    }

    fn commit(&self, revision: &str) -> Option<String> {
        let revision = revision.replace("%2F", "/");
        let known = self.commits.contains_key(&revision).then(|| revision.clone());
        self.revisions.get(&revision).cloned().or(known)
    }

    fn list(&self, revision: &str) -> Answer {
        if let Some((status, code)) = self.refuses_list {
            return Answer::refusal(status, code);
        }
        let Some(commit) = self.commit(revision) else { return Answer::refusal(404, "RevisionNotFound") };
        let file = |(name, bytes): (&String, &Vec<u8>)| {
            let lfs = json!({ "sha256": sha256(bytes), "size": bytes.len(), "pointerSize": 132 });
            match (self.lists_names, is_large(name)) {
                (true, _) => json!({ "rfilename": name }),
                // The digest of a large file in git is that of its pointer.
                (false, true) => {
                    json!({ "rfilename": name, "size": bytes.len(), "blobId": "0".repeat(40), "lfs": lfs })
                }
                (false, false) => {
                    json!({ "rfilename": name, "size": bytes.len(), "blobId": git_blob(bytes) })
                }
            }
        };
        let siblings: Vec<_> = self.commits[&commit].iter().map(file).collect();
        let body = json!({
            "_id": "1", "id": self.repo, "modelId": self.repo, "private": false, "gated": false, "sha": commit,
            "tags": [], "downloads": 0, "likes": 0, "siblings": siblings,
        });
        let headers = vec![("Content-Type", "application/json".to_owned())];
        Answer { status: 200, headers, body: body.to_string().into_bytes(), cut: None }
    }

    fn large(&mut self, digest: &str, range: Option<&str>) -> Answer {
        let mut files = self.commits.values().flatten();
        let (name, bytes) = files.find(|(_, bytes)| sha256(bytes) == digest).unwrap();
        let (name, bytes) = (name.clone(), bytes.clone());
        let mut answer = self.bytes(&name, bytes, range, "of the storage");
        answer.cut = self.cuts.pop_front();
        answer
    }

    fn bytes(&self, name: &str, mut bytes: Vec<u8>, range: Option<&str>, etag: &str) -> Answer {
        if self.corrupt.as_deref() == Some(name) {
            bytes[0] ^= 1;
        }
        let total = bytes.len();
        let start = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-')?.0.parse().ok());
        let mut headers = vec![("ETag", format!("\"{etag}\"")), ("Accept-Ranges", "bytes".to_owned())];
        match start.filter(|_| !self.ignores_ranges) {
            Some(start) if start >= total => Answer::refusal(416, ""),
            Some(start) => {
                headers.push(("Content-Range", format!("bytes {start}-{}/{total}", total - 1)));
                Answer { status: 206, headers, body: bytes.split_off(start), cut: None }
            }
            None => Answer { status: 200, headers, body: bytes, cut: None },
        }
    }
}
