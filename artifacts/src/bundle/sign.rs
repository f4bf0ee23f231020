//! Signatures of bundles: minisign's Ed25519 signatures of the manifest.
//!
//! The manifest names every blob by its digest, so its signature covers the whole bundle. Keys and signatures are minisign's
//! files: `minisign -Vm manifest.toml -p KEY` verifies them too.

use std::{
    ffi::OsStr,
    fmt,
    fs::{self, File},
    io::{self, Cursor, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use minisign::{KeyPair, SecretKeyBox, SignatureBox};

use super::{Bundle, location::Location};
use crate::{
    error::Error,
    files::{replace_file, staging, staging_in},
    layout::{SIGNATURE, StoreFolder},
    read::{Links, read_limited},
};

/// The longest file of a key or a signature.
pub(crate) const LIMIT_BYTES: u64 = 4096;

/// The first bytes of an Ed25519 key.
const ALGORITHM: &[u8] = b"Ed";

/// The base64 length of a signature with its algorithm and the key's id.
const SIGNATURE_CHARS: usize = 100;

/// The base64 length of the signature of the trusted comment.
const GLOBAL_SIGNATURE_CHARS: usize = 88;

/// A public key, which verifies signatures.
#[derive(Debug, Clone)]
pub struct PublicKey(minisign::PublicKey);

/// A secret key, which signs.
pub struct SecretKey(minisign::SecretKey);

/// The claims of a signature. Only [`Bundle::verify_signature`] proves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureInfo {
    /// The id of the key, 16 hex digits.
    pub key: String,
    /// The signer's comment, which the signature covers.
    pub comment: String,
}

/// The error of a text whose signature is not the one that was asked for.
#[derive(Debug, thiserror::Error)]
#[error("found {found}, expected a signature of this text by the key {expected}")]
pub struct WrongSignature {
    found: String,
    expected: String,
}

impl PublicKey {
    /// Reads a key from a file, or parses its base64 text.
    ///
    /// # Errors
    /// `text` is neither a key nor the file of one.
    pub fn find(text: &str) -> Result<Self, Error> {
        let bad = |reason: String| Error::Key { what: "public key", source: reason.into() };
        let path = Path::new(text);
        let text = if path.exists() { read(path, Links::Follow)? } else { text.into() };
        let line = text.lines().last().ok_or_else(|| bad("the file is empty".into()))?;
        let key = minisign::PublicKey::from_base64(line).map_err(|error| {
            let prefix = if path.exists() { "" } else { "no file has this name, and as a key: " };
            bad(format!("{prefix}{error}"))
        })?;
        if !key.to_bytes().starts_with(ALGORITHM) {
            return Err(bad("it is for another algorithm than Ed25519".into()));
        }
        Ok(Self(key))
    }

    /// Returns the key's id, 16 hex digits.
    #[must_use]
    pub fn id(&self) -> String {
        id(self.0.keynum())
    }

    /// Verifies that the key's owner signed a text by [`SecretKey::sign`].
    ///
    /// # Errors
    /// The signature is not minisign's, forged, of another text or another key's.
    pub fn verify(&self, text: &str, signature: &str) -> Result<SignatureInfo, WrongSignature> {
        let refuse = |found: String| WrongSignature { found, expected: self.id() };
        let signature = parse(signature).map_err(|_| refuse("a text that is not minisign's".into()))?;
        self.check(text, &signature, "text").map_err(refuse)
    }

    /// Returns the claims of a signature that the key's owner made, or else what was found in its place.
    fn check(&self, text: &str, signature: &SignatureBox, what: &str) -> Result<SignatureInfo, String> {
        if signature.keynum() != self.0.keynum() {
            return Err(format!("one by the key {}", id(signature.keynum())));
        }
        minisign::verify(&self.0, signature, Cursor::new(text), true, false, false)
            .map_err(|_| format!("one of another {what}, or a forged one"))?;
        Ok(claims(signature))
    }
}

impl fmt::Debug for SecretKey {
    /// Writes the key's id alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SecretKey").field(&self.id()).finish()
    }
}

impl SecretKey {
    /// Returns the key's id, 16 hex digits.
    #[must_use]
    pub fn id(&self) -> String {
        id(self.0.keynum())
    }

    /// Signs a text with a comment. Returns the text of minisign's file, whose first line names `what` was signed.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(&self, text: &str, comment: &str, what: &str) -> Result<String, Error> {
        let bad = |source: minisign::PError| Error::Key { what: "secret key", source: Box::new(source) };
        let about = format!("signature of {what}");
        let signature = minisign::sign(None, &self.0, Cursor::new(text), Some(comment), Some(&about));
        Ok(signature.map_err(bad)?.to_string())
    }

    /// Generates a pair of keys and writes them to two new files.
    ///
    /// Only the owner can read the secret key. With a password it is encrypted.
    ///
    /// # Errors
    /// A file exists already, or cannot be written, or both are one.
    pub fn generate(secret: &Path, public: &Path, password: Option<String>) -> Result<PublicKey, Error> {
        let bad = |source: minisign::PError| Error::Key { what: "new key", source: Box::new(source) };
        let encrypted = password.is_some();
        let KeyPair { pk, sk } = match password {
            Some(password) => KeyPair::generate_encrypted_keypair(Some(password)),
            None => KeyPair::generate_unencrypted_keypair(),
        }
        .map_err(bad)?;
        let kind = if encrypted { "encrypted secret key" } else { "secret key" };
        let files = [
            (public, pk.to_box().map_err(bad)?.into_string(), 0o644),
            (secret, sk.to_box(Some(&format!("mlxcel {kind}"))).map_err(bad)?.into_string(), 0o600),
        ];
        if public == secret {
            let problem = "it is the public key's file, too\nhint: name the secret key's file otherwise";
            return Err(Error::write(secret)(io::Error::other(problem)));
        }
        if let Some((path, ..)) = files.iter().find(|(path, ..)| path.exists()) {
            return Err(Error::KeyExists { path: path.to_path_buf() });
        }
        for (path, text, mode) in files {
            let write = || {
                let mut file = File::options().write(true).create_new(true).mode(mode).open(path)?;
                file.write_all(text.as_bytes())?;
                file.sync_all()
            };
            write().map_err(Error::write(path))?;
        }
        Ok(PublicKey(pk))
    }

    /// Reads a key from a file. If it is encrypted, calls `password`.
    ///
    /// # Errors
    /// The file cannot be read or is not a key, or the password is wrong.
    pub fn open(path: &Path, password: impl FnOnce() -> io::Result<String>) -> Result<Self, Error> {
        let bad = |source: minisign::PError| Error::Key { what: "secret key", source: Box::new(source) };
        if !path.exists() {
            let source = format!("{} does not exist", path.display()).into();
            return Err(Error::Key { what: "secret key", source });
        }
        let text = read(path, Links::Follow)?;
        let parse = || SecretKeyBox::from_string(&text).map_err(bad);
        if let Ok(key) = parse()?.into_unencrypted_secret_key() {
            return Ok(Self(key));
        }
        let password = password().map_err(Error::read(path))?;
        parse()?.into_secret_key(Some(password)).map(Self).map_err(bad)
    }
}

impl Bundle {
    /// Signs the bundle, and replaces its signature if it has one.
    ///
    /// # Errors
    /// The bundle changed since it was opened, or the signature cannot be written.
    pub fn sign(&self, key: &SecretKey, comment: &str) -> Result<SignatureInfo, Error> {
        self.write_signature(&key.sign(self.text(), comment, "an mlxcel bundle")?)?;
        Ok(SignatureInfo { key: key.id(), comment: comment.to_owned() })
    }

    /// Writes the signature beside the manifest or, of a stored bundle, into the store under the bundle's name.
    fn write_signature(&self, text: &str) -> Result<(), Error> {
        let Location { signature, stored, notes, .. } = self.location();
        if let (Some(_), Some(store)) = (stored, notes) {
            let [folder, incoming] =
                [StoreFolder::Signatures, StoreFolder::Incoming].map(|folder| folder.path(store));
            for folder in [&folder, &incoming] {
                fs::create_dir_all(folder).map_err(Error::write(folder))?;
            }
            let (staging, _lock) = staging_in(&incoming, OsStr::new("."))?;
            let name = signature.file_name().and_then(OsStr::to_str).unwrap_or(SIGNATURE);
            return replace_file(&folder, staging.path(), name, text.as_bytes())
                .map_err(Error::write(signature));
        }
        let path = self.path().canonicalize().map_err(Error::read(self.path()))?;
        let _lock = self.lock_unchanged(&path)?;
        let (staging, _staging_lock) = staging(&path)?;
        replace_file(&path, staging.path(), SIGNATURE, text.as_bytes()).map_err(Error::write(&path))
    }

    /// Returns the claims of the bundle's signature without verifying them.
    ///
    /// # Errors
    /// The signature cannot be read, or is not minisign's.
    pub fn signature_info(&self) -> Result<Option<SignatureInfo>, Error> {
        Ok(self.signature()?.as_ref().map(claims))
    }

    /// Verifies that the owner of `key` signed this bundle.
    ///
    /// # Errors
    /// [`Error::Signature`] if the signature is missing, forged or another key's.
    pub fn verify_signature(&self, key: &PublicKey) -> Result<SignatureInfo, Error> {
        let refuse = |found: String| Error::Signature { found, expected: key.id() };
        let signature = self.signature()?.ok_or_else(|| refuse("no signature".into()))?;
        key.check(self.text(), &signature, "manifest").map_err(refuse)
    }

    /// Returns the text of the signature's file, if there is one.
    pub(crate) fn signature_text(&self) -> Result<Option<String>, Error> {
        let path = &self.location().signature;
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::read(path)(error)),
            Ok(_) => {}
        }
        read(path, Links::Refuse).map(Some)
    }

    /// Parses the bundle's signature.
    fn signature(&self) -> Result<Option<SignatureBox>, Error> {
        self.signature_text()?.as_deref().map(parse).transpose()
    }
}

/// Returns the claims of a signature.
fn claims(signature: &SignatureBox) -> SignatureInfo {
    // Valid: it was read as UTF-8.
    SignatureInfo { key: id(signature.keynum()), comment: signature.trusted_comment().unwrap_or_default() }
}

/// Parses a signature.
fn parse(text: &str) -> Result<SignatureBox, Error> {
    let bad = |reason: &str| Error::Key { what: "signature", source: reason.into() };
    // The library does not check lengths.
    let lengths: Vec<usize> = text.lines().map(|line| line.trim().len()).collect();
    if !matches!(lengths[..], [_, SIGNATURE_CHARS, _, GLOBAL_SIGNATURE_CHARS, ..]) {
        return Err(bad("its lines do not have the lengths of minisign's"));
    }
    let signature = SignatureBox::from_string(text).map_err(|error| bad(&error.to_string()))?;
    // Every signature has one valid text, except for line ends. The last line encodes 64 bytes.
    let is_long = text.lines().nth(3).is_none_or(|line| !line.ends_with("=="));
    if is_long || !signature.to_string().lines().eq(text.lines()) {
        return Err(bad("it differs from the text that minisign writes"));
    }
    Ok(signature)
}

/// Returns a key's id as minisign shows it.
fn id(bytes: &[u8]) -> String {
    bytes.iter().rev().map(|byte| format!("{byte:02X}")).collect()
}

/// Reads a key or a signature.
fn read(path: &Path, links: Links) -> Result<String, Error> {
    let read = || {
        let bytes = read_limited(path, LIMIT_BYTES, links)?;
        String::from_utf8(bytes)
            .map_err(|_| io::Error::other("found bytes that are not UTF-8, expected text"))
    };
    read().map_err(Error::read(path))
}
