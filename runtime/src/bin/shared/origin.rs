//! The options about the origin of a bundle's code, for every program that runs bundles.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use clap::Args;
use mlxcel_artifacts::{Bundle, Error, PublicKey, SignatureInfo, Store, report};
use mlxcel_runtime::OriginRules;

/// The store that knows a bundle's origin, and the signature that the bundle needs before its code may run.
#[derive(Debug, Args)]
pub(crate) struct Origin {
    /// Run only bundles signed with this minisign key: a public key or its file
    #[arg(long, value_name = "KEY", env = "MLXCEL_REQUIRE_SIGNATURE", value_parser = public_key)]
    require_signature: Option<PublicKey>,
    /// Path to the store [default: $MLXCEL_STORE, else $XDG_CACHE_HOME/mlxcel, else ~/.cache/mlxcel]
    #[arg(long, value_name = "FOLDER")]
    store: Option<PathBuf>,
}

impl Origin {
    /// Opens a bundle without reading its weights: a folder, a name in the store, or a bundle that came with the programs.
    pub(crate) fn open(&self, bundle: &Path) -> Result<Bundle, Error> {
        let store = match Store::from_env(self.store.as_deref()) {
            // A folder needs no store.
            Err(Error::NoStore) => None,
            store => Some(store?),
        };
        OriginRules { store, shipped: shipped(), require_signature: None }.open(bundle)
    }

    /// Checks the signature that is required, and returns it.
    pub(crate) fn check(&self, bundle: &Bundle) -> Result<Option<SignatureInfo>, Error> {
        self.rules().check(bundle)
    }

    /// Notes on stderr that the code about to run was neither compiled here nor signed as required.
    pub(crate) fn note(&self, bundle: &Bundle) -> Result<(), Error> {
        if let Some(note) = self.rules().note(bundle)? {
            // A failure to write the note is not an error.
            _ = writeln!(
                io::stderr().lock(),
                "note: {note}\nhint: --require-signature KEY runs only bundles that are signed with the key"
            );
        }
        Ok(())
    }

    /// Returns what is required of a bundle that was opened.
    fn rules(&self) -> OriginRules {
        OriginRules { require_signature: self.require_signature.clone(), ..OriginRules::default() }
    }
}

/// Returns the folder of the bundles that came with the programs: `share/mlxcel` beside the folder `bin`.
fn shipped() -> Option<PathBuf> {
    let program = env::current_exe().and_then(fs::canonicalize).ok()?;
    Some(program.parent()?.parent()?.join("share/mlxcel"))
}

/// Parses a public key, or reads it from a file.
pub(crate) fn public_key(text: &str) -> Result<PublicKey, String> {
    PublicKey::find(text).map_err(|error| report(&error).trim_start_matches("error: ").to_owned())
}
