//! Whose a bundle is: minisign's Ed25519 signatures over its manifest.
//!
//! A manifest names every blob by its digest, so that a signature over its bytes is one over the whole bundle. Keys and
//! signatures are minisign's files: `minisign -Vm manifest.toml -p KEY` verifies them too.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Cursor, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use minisign::{KeyPair, SecretKeyBox, SignatureBox};

use crate::{
    bundle::{Bundle, location::Location},
    error::Error,
    files::{replace_file, staging, staging_in},
    layout::{INCOMING, SIGNATURE, SIGNATURES},
    read::{Links, read_limited},
};

/// No key and no signature is longer.
pub(crate) const LIMIT_BYTES: u64 = 4096;

/// What a key's bytes begin with.
const ALGORITHM: &[u8] = b"Ed";

/// Lengths of the base64 of a signature with algorithm and key, and of one alone.
const SIGNATURE_CHARS: usize = 100;
const GLOBAL_SIGNATURE_CHARS: usize = 88;

/// A key that verifies.
#[derive(Debug, Clone)]
pub struct PublicKey(minisign::PublicKey);

/// A key that signs.
#[derive(Debug)]
pub struct SecretKey(minisign::SecretKey);

/// A signature as a bundle carries it; whether it is one of the bundle, [`Bundle::verify_signature`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The id of the key, 16 hex digits, as the signature has it.
    pub key: String,
    /// What the signer says, covered by the signature.
    pub comment: String,
}

impl PublicKey {
    /// The key of a file, or of its base64 text.
    ///
    /// # Errors
    /// It is neither.
    pub fn find(text: &str) -> Result<Self, Error> {
        let bad = |reason: String| Error::Key { what: "public key", source: reason.into() };
        let path = Path::new(text);
        let text = if path.exists() { read(path)? } else { text.into() };
        let line = text.lines().last().ok_or_else(|| bad("the file is empty".into()))?;
        let key = minisign::PublicKey::from_base64(line).map_err(|error| {
            let place = if path.exists() { "" } else { "no file has this name, and as a key: " };
            bad(format!("{place}{error}"))
        })?;
        if !key.to_bytes().starts_with(ALGORITHM) {
            return Err(bad("it is for another algorithm than Ed25519".into()));
        }
        Ok(Self(key))
    }

    /// Its id, 16 hex digits.
    #[must_use]
    pub fn id(&self) -> String {
        id(self.0.keynum())
    }
}

impl SecretKey {
    /// Makes a pair of keys and writes them to two new files, the secret one for its owner's eyes. It is kept encrypted with
    /// `password`, or as it is.
    ///
    /// # Errors
    /// A file is there already, or cannot be written.
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

    /// The key in a file; `password` is asked for where it is encrypted.
    ///
    /// # Errors
    /// The file cannot be read or is no key, or the password is not its own.
    pub fn open(path: &Path, password: impl FnOnce() -> io::Result<String>) -> Result<Self, Error> {
        let bad = |source: minisign::PError| Error::Key { what: "secret key", source: Box::new(source) };
        if !path.exists() {
            let source = format!("{} does not exist", path.display()).into();
            return Err(Error::Key { what: "secret key", source });
        }
        let text = read(path)?;
        let parse = || SecretKeyBox::from_string(&text).map_err(bad);
        if let Ok(key) = parse()?.into_unencrypted_secret_key() {
            return Ok(Self(key));
        }
        let password = password().map_err(Error::read(path))?;
        parse()?.into_secret_key(Some(password)).map(Self).map_err(bad)
    }
}

impl Bundle {
    /// Signs the bundle. A signature that was there is replaced.
    ///
    /// # Errors
    /// When the signature cannot be written.
    pub fn sign(&self, key: &SecretKey, comment: &str) -> Result<Signed, Error> {
        let bad = |source: minisign::PError| Error::Key { what: "secret key", source: Box::new(source) };
        let text = Cursor::new(self.text());
        let signature =
            minisign::sign(None, &key.0, text, Some(comment), Some("signature of an mlxcel bundle"));
        let signature = signature.map_err(bad)?;
        let text = signature.to_string();
        self.write_signature(&text)?;
        Ok(Signed { key: id(signature.keynum()), comment: comment.to_owned() })
    }

    /// Puts a signature in its place, at once: beside the manifest, or in the store under the bundle's name.
    fn write_signature(&self, text: &str) -> Result<(), Error> {
        let Location { signature, stored, notes, .. } = self.location();
        if let (Some(_), Some(store)) = (stored, notes) {
            let (folder, incoming) = (store.join(SIGNATURES), store.join(INCOMING));
            for folder in [&folder, &incoming] {
                fs::create_dir_all(folder).map_err(Error::write(folder))?;
            }
            let (staging, _lock) = staging_in(&incoming, OsStr::new("."))?;
            let name = signature.file_name().and_then(OsStr::to_str).unwrap_or(SIGNATURE);
            return replace_file(&folder, staging.path(), name, text.as_bytes())
                .map_err(Error::write(signature));
        }
        let path = self.path().canonicalize().map_err(Error::read(self.path()))?;
        let _alone = self.alone(&path)?;
        let (staging, _lock) = staging(&path)?;
        replace_file(&path, staging.path(), SIGNATURE, text.as_bytes()).map_err(Error::write(&path))
    }

    /// The signature that the bundle carries, which may be anybody's and of anything.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn signed(&self) -> Result<Option<Signed>, Error> {
        Ok(self.signature()?.map(|signature| Signed {
            key: id(signature.keynum()),
            // Read from UTF-8.
            comment: signature.trusted_comment().unwrap_or_default(),
        }))
    }

    /// Whether the owner of `key` signed this bundle.
    ///
    /// # Errors
    /// [`Error::Signature`] when it is not so.
    pub fn verify_signature(&self, key: &PublicKey) -> Result<Signed, Error> {
        let refuse = |found: String| Error::Signature { found, expected: key.id() };
        let signature = self.signature()?.ok_or_else(|| refuse("no signature".into()))?;
        if signature.keynum() != key.0.keynum() {
            return Err(refuse(format!("one by the key {}", id(signature.keynum()))));
        }
        minisign::verify(&key.0, &signature, Cursor::new(self.text()), true, false, false)
            .map_err(|_| refuse("one of another manifest, or a forged one".into()))?;
        Ok(Signed { key: key.id(), comment: signature.trusted_comment().unwrap_or_default() })
    }

    /// The signature's file as it is, if there is one.
    pub(crate) fn signature_text(&self) -> Result<Option<String>, Error> {
        let path = &self.location().signature;
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::read(path)(error)),
            Ok(_) => {}
        }
        read(path).map(Some)
    }

    fn signature(&self) -> Result<Option<SignatureBox>, Error> {
        let Some(text) = self.signature_text()? else { return Ok(None) };
        let no_signature = |reason: &str| Error::Key { what: "signature", source: reason.into() };
        // The library takes lengths for granted.
        let lengths: Vec<usize> = text.lines().map(|line| line.trim().len()).collect();
        if !matches!(lengths[..], [_, SIGNATURE_CHARS, _, GLOBAL_SIGNATURE_CHARS, ..]) {
            return Err(no_signature("its lines are not those of minisign"));
        }
        let signature = SignatureBox::from_string(&text).map_err(|error| no_signature(&error.to_string()))?;
        // One signature has one text, but for line ends; the last line is of 64 bytes.
        let is_long = text.lines().nth(3).is_none_or(|line| !line.ends_with("=="));
        if is_long || !signature.to_string().lines().eq(text.lines()) {
            return Err(no_signature("its text is not as minisign writes it"));
        }
        Ok(Some(signature))
    }
}

/// An id as minisign shows it.
fn id(bytes: &[u8]) -> String {
    bytes.iter().rev().map(|byte| format!("{byte:02X}")).collect()
}

/// Reads a key or a signature.
fn read(path: &Path) -> Result<String, Error> {
    let read = || {
        let bytes = read_limited(path, LIMIT_BYTES, Links::Refuse)?;
        String::from_utf8(bytes)
            .map_err(|_| io::Error::other("found bytes that are not UTF-8, expected text"))
    };
    read().map_err(Error::read(path))
}
