//! `keygen` and `sign`: keys and signatures.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Result;
use clap::Args;
use mlxcel_artifacts::{SecretKey, SignatureInfo};

use crate::{
    arguments::{Source, StoreArguments},
    outcome::Outcome,
};

/// The file name of a secret key, unless another is given.
const DEFAULT_KEY: &str = "mlxcel.key";

/// The longest comment that a signature holds.
const COMMENT_LIMIT_BYTES: usize = 1024;

/// Create a key pair for signing, in minisign's format
#[derive(Args)]
pub(crate) struct Keygen {
    /// The secret key's file; the public key's has the extension `.pub`
    #[arg(long, value_name = "FILE", default_value = DEFAULT_KEY)]
    out: PathBuf,
    #[command(flatten)]
    password: Password,
}

impl Keygen {
    pub(crate) fn run(&self) -> Result<Outcome> {
        let public = self.out.with_extension("pub");
        let password = self.password.read("password for the new key")?;
        let key = SecretKey::generate(&self.out, &public, password)?;
        Ok(format!(
            "key     {}\nsecret  {}: keep it private\npublic  {}: share it with those who verify\n",
            key.id(),
            self.out.display(),
            public.display()
        )
        .into())
    }
}

/// Sign a bundle
///
/// Writes `manifest.toml.minisig` beside the manifest. `minisign -Vm manifest.toml` verifies it too.
#[derive(Args)]
pub(crate) struct Sign {
    #[command(flatten)]
    source: Source,
    /// The secret key's file
    #[arg(long, value_name = "FILE", default_value = DEFAULT_KEY)]
    key: PathBuf,
    /// One line to sign with the bundle, shown by `verify`
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = parse_comment)]
    comment: String,
    #[command(flatten)]
    password: Password,
}

impl Sign {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let ask_password = || {
            let refused = || {
                io::Error::other(
                    "the key is encrypted, but --no-password was given\nhint: pass --password-file FILE",
                )
            };
            self.password.read("password of the key")?.ok_or_else(refused)
        };
        let key = SecretKey::open(&self.key, ask_password)?;
        let signed = self.source.open(store)?.sign(&key, &self.comment)?;
        let bundle = self.source.bundle.display();
        Ok(format!("signed {bundle} with key {}{}\n", signed.key, comment_suffix(&signed)).into())
    }
}

/// Returns the signer's comment after `: `, or nothing if there is none.
pub(crate) fn comment_suffix(SignatureInfo { comment, .. }: &SignatureInfo) -> String {
    if comment.is_empty() { String::new() } else { format!(": {}", comment.escape_debug()) }
}

/// Parses a comment that fits into the signature's line.
fn parse_comment(text: &str) -> Result<String, String> {
    if text.len() > COMMENT_LIMIT_BYTES || text.contains(char::is_control) || text.trim() != text {
        return Err(format!(
            "expected one line of at most {COMMENT_LIMIT_BYTES} bytes, without control characters and surrounding spaces"
        ));
    }
    Ok(text.to_owned())
}

/// The source of a secret key's password. Without these options, the program asks for it.
#[derive(Args)]
struct Password {
    /// Read the key's password from the first line of this file
    #[arg(long, value_name = "FILE", conflicts_with = "no_password")]
    password_file: Option<PathBuf>,
    /// Use a key without a password; anyone who can read it can sign
    #[arg(long)]
    no_password: bool,
}

impl Password {
    /// Returns the password, or `None` if there is to be none. Errors have hints.
    fn read(&self, prompt: &str) -> io::Result<Option<String>> {
        match &self.password_file {
            _ if self.no_password => Ok(None),
            Some(path) => read_first_line(path).map(Some),
            None => {
                let ask = rpassword::prompt_password(format!("{prompt}: "));
                ask.map(Some)
                    .map_err(|error| without_password(&format!("cannot ask for a password: {error}")))
            }
        }
    }
}

/// Returns the first line of a file. The error names the file.
fn read_first_line(path: &Path) -> io::Result<String> {
    let failed = |problem: &str| without_password(&format!("cannot read {}: {problem}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| failed(&error.to_string()))?;
    text.lines().next().map(str::to_owned).ok_or_else(|| failed("it is empty, expected a password"))
}

fn without_password(problem: &str) -> io::Error {
    io::Error::other(format!(
        "{problem}\nhint: pass --password-file FILE, or --no-password for a key without one"
    ))
}
