//! The hints of errors.

use std::{io, path::Path};

use crate::blob::BlobRole;

pub(super) fn bundle_hint(path: &Path, checkpoint: bool, nearest: &[String]) -> String {
    if checkpoint {
        return format!("this is a checkpoint: compile it with `mlxcel-compile --model {}`", path.display());
    }
    if !nearest.is_empty() {
        return suggest(nearest);
    }
    "use the last line that mlxcel-compile printed, or a name that `mlxcel-bundle list` shows".into()
}

/// Suggests names in the store.
pub(super) fn suggest(nearest: &[String]) -> String {
    match nearest {
        [] => "the store is empty: add a bundle with `mlxcel-bundle copy BUNDLE --name NAME`".into(),
        [..] => format!("did you mean {}? `mlxcel-bundle list` shows all", nearest.join(", ")),
    }
}

/// Returns the hint for an error of the system, unless the error has a hint of its own.
pub(super) fn io_hint(source: &io::Error, path: &Path) -> String {
    if source.to_string().contains("\nhint: ") {
        return String::new();
    }
    let path = path.display();
    let hint = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "free some disk space, or use a path on another disk".into()
        }
        io::ErrorKind::ReadOnlyFilesystem => "use a path on a disk that can be written".into(),
        io::ErrorKind::PermissionDenied => format!("check owner and permissions with `ls -ld {path}`"),
        io::ErrorKind::NotFound => format!("check the path with `ls -ld {path}`"),
        _ => format!("check what is there with `ls -ld {path}`, then repeat the command"),
    };
    format!("\nhint: {hint}")
}

/// Returns the hint for an invalid key or signature.
pub(super) fn key_hint(what: &str) -> &'static str {
    if what == "signature" {
        "sign the bundle again with `mlxcel-bundle sign BUNDLE`"
    } else {
        "use a key that `mlxcel-bundle keygen` or minisign generated"
    }
}

/// Returns the hint for a damaged blob.
pub(super) fn remedy(role: &BlobRole) -> &'static str {
    if matches!(role, BlobRole::PackedWeights(_)) { DAMAGED_PACKED } else { DAMAGED }
}

const DAMAGED_PACKED: &str =
    "hint: pack the weights again with `mlxcel-pack BUNDLE`, or copy the bundle again";
pub(super) const BAD_MANIFEST: &str =
    "hint: the bundle is damaged: get it again from its maker, or compile it again with `mlxcel-compile`";
const DAMAGED: &str =
    "hint: the bundle is damaged: copy all of its files again, or compile it again with `mlxcel-compile`";
