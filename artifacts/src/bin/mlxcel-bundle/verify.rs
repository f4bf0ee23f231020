//! `verify`: digests and signatures.

use std::collections::HashMap;

use anyhow::Result;
use clap::Args;
use mlxcel_artifacts::{Bundle, ByteCount, Error, PublicKey, SignatureInfo};

use crate::{
    arguments::{Source, StoreArguments},
    outcome::Outcome,
    sign::comment_suffix,
};

/// Verify the size and digest of every file, and the signature
#[derive(Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    source: Source,
    /// Require a signature by this key: a public key, or its file
    #[arg(long)]
    key: Option<String>,
}

impl Verify {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let key = self.key.as_deref().map(PublicKey::find).transpose()?;
        let bundle = self.source.open(store)?;
        let origin = origin(&bundle, key.as_ref())?;
        let sizes: HashMap<_, _> = bundle.manifest().blobs().map(|(_, b)| (b.digest, b.size)).collect();
        let bytes = ByteCount(sizes.values().sum());
        Ok(format!("ok: {} is intact, {} blobs, {bytes}\n{origin}\n", bundle.display_name(), sizes.len())
            .into())
    }
}

/// Returns a line that says who signed the bundle.
///
/// # Errors
/// The owner of `key` did not sign it.
fn origin(bundle: &Bundle, key: Option<&PublicKey>) -> Result<String, Error> {
    if let Some(key) = key {
        let signed = bundle.verify_signature(key)?;
        return Ok(format!("ok: signed by key {}{}", signed.key, comment_suffix(&signed)));
    }
    Ok(match bundle.signature_info()? {
        Some(SignatureInfo { key, .. }) => {
            format!("not verified: claims a signature by key {key}; verify it with --key")
        }
        None => "not signed: nothing proves who made it".into(),
    })
}
