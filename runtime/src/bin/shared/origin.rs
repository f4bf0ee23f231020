//! Whose code it is that a bundle has, for every program that runs it.

use std::io::{self, Write as _};

use clap::Args;
use mlxcel_artifacts::{Bundle, Error, PublicKey, Signed, report};

/// Whose code may run.
#[derive(Debug, Args)]
pub(crate) struct Origin {
    /// Run only a bundle that the owner of this key signed: minisign's public key, or its file.
    #[arg(long, value_name = "KEY", env = "MLXCEL_REQUIRE_SIGNATURE", value_parser = public_key)]
    require_signature: Option<PublicKey>,
}

impl Origin {
    /// Whether the bundle is signed as it has to be.
    pub(crate) fn check(&self, bundle: &Bundle) -> Result<(), Error> {
        self.require_signature.iter().try_for_each(|key| bundle.verify_signature(key).map(drop))
    }

    /// Says on stderr where the code comes from that is about to run, if nobody vouches for it.
    pub(crate) fn note(&self, bundle: &Bundle) -> Result<(), Error> {
        if self.require_signature.is_none() && !bundle.is_from_here() {
            // That nobody hears it is no error.
            _ = writeln!(
                io::stderr().lock(),
                "{}",
                from_elsewhere(&bundle.display_name(), bundle.signed()?.as_ref())
            );
        }
        Ok(())
    }
}

/// A public key, or its file.
fn public_key(text: &str) -> Result<PublicKey, String> {
    PublicKey::find(text).map_err(|error| report(&error).trim_start_matches("error: ").to_owned())
}

/// That nobody here vouches for a bundle's code.
fn from_elsewhere(bundle: &str, signed: Option<&Signed>) -> String {
    let origin = signed.map_or("is not signed".into(), |Signed { key, .. }| {
        format!("says that the key {key} signed it, which was not checked")
    });
    format!(
        "note: the bundle {bundle} was not compiled here and {origin}: its code runs as any program's does\n\
         hint: --require-signature runs only what the owner of a key signed"
    )
}
