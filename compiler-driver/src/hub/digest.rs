//! Digests by which the hub names files: SHA-256 for large ones, and git's for small ones.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use mlxcel_artifacts::Cancel;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

/// A digest that the hub states of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubDigest {
    /// SHA-256 of a file in large-file storage.
    Sha256(String),
    /// SHA-1 of a git blob.
    GitBlob(String),
}

/// Size and digests of a file, as they were computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Computed {
    pub(crate) size: u64,
    pub(crate) sha256: String,
    git_blob: String,
}

impl HubDigest {
    /// Reads a digest from the name of a file in the cache, or from a server's `ETag` without its quotes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match text.len() {
            64 if is_hex => Some(Self::Sha256(text.to_owned())),
            40 if is_hex => Some(Self::GitBlob(text.to_owned())),
            _ => None,
        }
    }

    /// Returns the digest in hexadecimal digits, which names the file in the cache.
    pub(crate) fn hex(&self) -> &str {
        match self {
            Self::Sha256(hex) | Self::GitBlob(hex) => hex,
        }
    }

    /// Returns the name that in-toto gives this kind of digest.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Sha256(_) => "sha256",
            Self::GitBlob(_) => "gitBlob",
        }
    }

    /// Returns what a file has in place of this digest, if it is another.
    pub(crate) fn mismatch(&self, computed: &Computed) -> Option<Self> {
        let found = match self {
            Self::Sha256(_) => Self::Sha256(computed.sha256.clone()),
            Self::GitBlob(_) => Self::GitBlob(computed.git_blob.clone()),
        };
        (found != *self).then_some(found)
    }
}

impl fmt::Display for HubDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.hex())
    }
}

impl Computed {
    /// Reads a file and computes its digests.
    pub(crate) fn of(path: &Path, cancel: &Cancel) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut sha256 = Sha256::new();
        let mut sha1 = Sha1::new().chain_update(format!("blob {size}\0"));
        let mut buffer = vec![0; 1 << 20];
        let mut read = 0;
        loop {
            let length = cancel.watch(&mut file).read(&mut buffer)?;
            if length == 0 {
                break;
            }
            read += length as u64;
            sha256.update(&buffer[..length]);
            sha1.update(&buffer[..length]);
        }
        Ok(Self { size: read, sha256: hex(&sha256.finalize()), git_blob: hex(&sha1.finalize()) })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_git_and_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "hello\n").unwrap();
        let computed = Computed::of(&path, &Cancel::new()).unwrap();
        let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        let git_blob = "ce013625030ba8dba906f756967f9e9ca394464a";
        assert_eq!((computed.size, computed.sha256.as_str()), (6, sha256));
        for stated in [sha256, git_blob] {
            assert_eq!(HubDigest::parse(stated).unwrap().mismatch(&computed), None);
        }
        let other = HubDigest::GitBlob("0".repeat(40));
        assert_eq!(other.mismatch(&computed), Some(HubDigest::GitBlob(git_blob.into())));
    }

    #[test]
    fn only_digests_name_files() {
        for text in ["", "../../x", "abc", &"g".repeat(40), &"A".repeat(64), &"0".repeat(41)] {
            assert_eq!(HubDigest::parse(text), None, "{text}");
        }
    }
}
