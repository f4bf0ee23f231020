//! Errors of the hub.

use std::{io, path::PathBuf};

use crate::hub::{digest::HubDigest, name::HubName};

/// Why a model of the hub cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// There is no folder for the cache.
    #[error(
        "found no folder for the hub's cache, expected HF_HOME or HOME to name one\nhint: export HF_HOME=FOLDER"
    )]
    NoCache,

    /// A revision was given for a model that has none.
    #[error(
        "found --revision for `{}`, expected it with a repository of the hub, as in org/name\n\
         hint: leave out --revision for presets, folders and files",
        model.escape_default()
    )]
    NotOnHub {
        /// The model.
        model: String,
    },

    /// A revision is none, or another one than that in the name.
    #[error(
        "found --revision `{}` for {name}, expected one branch, tag or commit\n\
         hint: a revision has letters, digits and -_.+/, and is given once",
        found.escape_default()
    )]
    Revision {
        /// The model.
        name: HubName,
        /// The revision.
        found: String,
    },

    /// The hub wants a token.
    #[error(
        "{endpoint} refuses {repo} without a token, expected a public repository or one that a token may read\n\
         hint: check the name: a repository that does not exist is refused too\n\
         hint: log in with `hf auth login`, or set HF_TOKEN to a token of {endpoint}/settings/tokens"
    )]
    NoToken {
        /// The hub.
        endpoint: String,
        /// The repository.
        repo: String,
    },

    /// The hub does not accept the token.
    #[error(
        "{endpoint} refuses the token for {repo}, expected a valid one\n\
         hint: `hf auth whoami` checks it; it is that of HF_TOKEN, otherwise the file token in HF_HOME"
    )]
    BadToken {
        /// The hub.
        endpoint: String,
        /// The repository.
        repo: String,
    },

    /// The terms of a repository were not accepted.
    #[error(
        "{repo} is gated, expected an account that has accepted its terms\n\
         hint: accept them at {endpoint}/{repo}, then log in with `hf auth login` or set HF_TOKEN"
    )]
    Gated {
        /// The hub.
        endpoint: String,
        /// The repository.
        repo: String,
    },

    /// The token may not read the repository.
    #[error(
        "{endpoint} forbids {repo}, expected a token that may read it\n\
         hint: give the token read access to the repository at {endpoint}/settings/tokens"
    )]
    Forbidden {
        /// The hub.
        endpoint: String,
        /// The repository.
        repo: String,
    },

    /// There is no such repository.
    #[error(
        "found no folder {repo} here and no repository {repo} at {endpoint}, expected one of them\n\
         hint: look for it with `hf models ls --search {word}`; `mlxcel-compile models` lists the presets"
    )]
    NoRepository {
        /// The hub.
        endpoint: String,
        /// The repository.
        repo: String,
        /// The repository's name without its owner.
        word: String,
    },

    /// The repository has no such revision.
    #[error(
        "found no revision {revision} of {repo} at {endpoint}, expected a branch, a tag or a commit\n\
         hint: {endpoint}/{repo}/commits/main lists commits; leave out the revision for the newest"
    )]
    NoRevision {
        /// The hub.
        endpoint: String,
        /// The repository.
        repo: String,
        /// The revision.
        revision: String,
    },

    /// The repository has no file of this name.
    #[error(
        "found no {file} in {repo} at {commit}, expected {}\n{}",
        one_of(others),
        other_file(repo, others)
    )]
    NoFile {
        /// The file.
        file: String,
        /// The repository.
        repo: String,
        /// The commit.
        commit: String,
        /// Files of its kind that are there.
        others: Vec<String>,
    },

    /// The repository has no weights that can be read.
    #[error(
        "found no safetensors in {repo} at {commit}{}, expected model.safetensors or model.safetensors.index.json\n{}",
        but(found),
        no_safetensors(repo, gguf)
    )]
    NoSafetensors {
        /// The repository.
        repo: String,
        /// The commit.
        commit: String,
        /// Weights in other forms.
        found: Vec<String>,
        /// GGUF files.
        gguf: Vec<String>,
    },

    /// The hub lists a file that it does not have.
    #[error(
        "found no {file} of {repo} at {endpoint}, which lists it, expected its bytes\nhint: run the command again"
    )]
    Gone {
        /// The hub.
        endpoint: String,
        /// The repository.
        repo: String,
        /// The file.
        file: String,
    },

    /// A file has other bytes than the hub states.
    #[error(
        "{file} of {repo} is {found}, expected {expected}, as the hub states; it was removed\n\
         hint: run the command again to download it; if it is still wrong, unset HF_ENDPOINT or name another mirror"
    )]
    Digest {
        /// The repository.
        repo: String,
        /// The file.
        file: String,
        /// The digest of what was received.
        found: Box<HubDigest>,
        /// The digest that the hub states.
        expected: Box<HubDigest>,
    },

    /// A file has another size than the hub states.
    #[error(
        "{file} of {repo} has {found} bytes, expected {expected}, as the hub states; it was removed\n\
         hint: run the command again to download it; if it is still wrong, unset HF_ENDPOINT or name another mirror"
    )]
    Size {
        /// The repository.
        repo: String,
        /// The file.
        file: String,
        /// Bytes that were received, or that the server announces.
        found: u64,
        /// Bytes that the hub states.
        expected: u64,
    },

    /// A file in the cache is damaged, and nothing may be downloaded.
    #[error(
        "{} is {found}, expected {expected}, its name in the cache\n\
         hint: run the command once without --offline and HF_HUB_OFFLINE, which downloads it again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Its digest.
        found: Box<HubDigest>,
        /// The digest that names it.
        expected: Box<HubDigest>,
    },

    /// The disk has no space for what would be downloaded.
    #[error(
        "found {free} bytes free for {}, expected {needed} for {repo}\n\
         hint: remove what is not needed with `hf cache rm`, or set HF_HOME to a folder on a larger disk",
        folder.display()
    )]
    NoSpace {
        /// The repository.
        repo: String,
        /// The cache.
        folder: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that are missing.
        needed: u64,
    },

    /// The disk became full.
    #[error(
        "found no space left for {file} of {repo} after {written} of {size} bytes in {}, expected space for all\n\
         hint: free {} bytes or set HF_HOME to a folder on a larger disk; then the same command resumes",
        folder.display(), size.saturating_sub(*written)
    )]
    DiskFull {
        /// The repository.
        repo: String,
        /// The file.
        file: String,
        /// The cache.
        folder: PathBuf,
        /// Bytes that were written.
        written: u64,
        /// Size of the file.
        size: u64,
        /// The system's error.
        source: io::Error,
    },

    /// The hub cannot be reached.
    #[error(
        "cannot reach {endpoint} for {name}, which is no folder here: {reason}\n\
         hint: check the network, HTTPS_PROXY and HF_ENDPOINT; what is in the cache is found with --offline"
    )]
    Unreachable {
        /// The hub.
        endpoint: String,
        /// The model.
        name: HubName,
        /// What happened.
        reason: String,
    },

    /// A download stopped in the middle.
    #[error(
        "found the end of {file} of {repo} after {received} bytes, expected {size}: {reason}\n\
         hint: run the same command again; it resumes there"
    )]
    Cut {
        /// The repository.
        repo: String,
        /// The file.
        file: String,
        /// Bytes that are here.
        received: u64,
        /// Size of the file.
        size: u64,
        /// What happened.
        reason: String,
    },

    /// The hub is busy or has a defect.
    #[error("{endpoint} answers {repo} with status {status}, expected 200\nhint: {}", status_hint(*status))]
    Status {
        /// The hub.
        endpoint: String,
        /// The repository.
        repo: String,
        /// The status of HTTP.
        status: u16,
    },

    /// An answer is not what the hub's API says.
    #[error(
        "cannot read what {endpoint} answers about {repo}: {problem}\nhint: check that HF_ENDPOINT names a hub"
    )]
    Answer {
        /// The hub.
        endpoint: String,
        /// The repository.
        repo: String,
        /// What was found and expected.
        problem: String,
    },

    /// The cache lacks a file, and nothing may be downloaded.
    #[error(
        "found no {missing} of {name} in {}, and no such folder here, expected it in the cache, because --offline or \
         HF_HUB_OFFLINE allows no download\n\
         hint: run the command once without them, or `hf download {}`",
        cache.display(), name.repo()
    )]
    Offline {
        /// The model.
        name: HubName,
        /// What is missing.
        missing: String,
        /// The cache.
        cache: PathBuf,
    },

    /// The download was cancelled.
    #[error("cancelled; what was downloaded stays in the cache")]
    Cancelled,

    /// An operating system call failed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried: `read`, `write` …
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl HubError {
    /// Wraps a system error with what was tried on which path, for `map_err`.
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }

    /// Returns whether the same request may succeed a little later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Cut { .. } => true,
            Self::Status { status, .. } => *status == 429 || *status >= 500,
            _ => false,
        }
    }
}

/// How many files a message names.
const SHOWN: usize = 5;

/// Lists names, which come from a server.
fn list(names: &[String]) -> String {
    let shown = names.iter().take(SHOWN).map(|name| name.escape_default().to_string());
    let dots = if names.len() > SHOWN { ", …" } else { "" };
    shown.collect::<Vec<_>>().join(", ") + dots
}

fn one_of(others: &[String]) -> String {
    match others {
        [] => "a checkpoint in Hugging Face's format".into(),
        others => format!("one such as {}", list(others)),
    }
}

fn other_file(repo: &str, others: &[String]) -> String {
    match others.first() {
        Some(file) => format!("hint: pass --model {repo}/{}", file.escape_default()),
        None => format!("hint: choose a repository that transformers loads; {repo} is another kind"),
    }
}

fn but(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!(", but {}", list(found)) }
}

fn no_safetensors(repo: &str, gguf: &[String]) -> String {
    match gguf.first() {
        Some(file) => format!("hint: pass --model {repo}/{} to use that GGUF file", file.escape_default()),
        None => {
            "hint: convert them with transformers' save_pretrained(FOLDER), and pass that folder to --model"
                .into()
        }
    }
}

fn status_hint(status: u16) -> &'static str {
    match status {
        429 => "it limits requests: wait some minutes, or set HF_TOKEN, which has a higher limit",
        500.. => "it has a problem: run the command again later; what was downloaded is kept",
        _ => "check HF_ENDPOINT and proxies",
    }
}
