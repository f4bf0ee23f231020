//! The key that signs receipts.

use std::{fs, io, path::Path};

use mlxcel_artifacts::{Error, SecretKey};

/// Reads the key, whose password is the first line of another file.
pub(crate) fn receipt_key(key: &Path, password: Option<&Path>) -> Result<SecretKey, Error> {
    SecretKey::open(key, || {
        let hint = "\nhint: give the file of its password with --receipt-key-password";
        let refused = |problem: String| io::Error::other(problem + hint);
        let path = password.ok_or_else(|| refused("the key is encrypted, expected a password".into()))?;
        let text = fs::read_to_string(path)
            .map_err(|error| refused(format!("cannot read {}: {error}", path.display())))?;
        let line = text.lines().next();
        line.map(str::to_owned)
            .ok_or_else(|| refused(format!("{} is empty, expected a password", path.display())))
    })
}
