//! Copies of files and folders.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use anyhow::{Context as _, Result};

/// Copies a file, and makes the folders on the way.
pub(crate) fn copy_file(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let context = || format!("{} to {}", from.display(), to.display());
    fs::create_dir_all(to.parent().unwrap_or(to)).with_context(context)?;
    fs::copy(from, to).with_context(context)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).with_context(context)
}

/// Copies a folder with what is in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &to)?,
            false => copy_file(&entry.path(), &to, 0o644)?,
        }
    }
    Ok(())
}
