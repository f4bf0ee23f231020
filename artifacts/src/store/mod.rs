//! The store: files by their content, which the bundles and builds of this machine share.
//!
//! ```text
//! blobs/<digest>                 a file, named by the blake3 digest of its content
//! bundles/<digest>/              a bundle's manifest, in a folder named by its digest
//! names/<name>                   the digest of the manifest that a name stands for
//! signatures/<name>=<digest>     the signature of a bundle under a name
//! built/<key>                    the digest of the module that was compiled for a build key
//! incoming/                      files that are not complete, and unfinished downloads
//! notes/                         what this machine remembers of bundles: `bundle/verified.rs`, `bundle/origin.rs`
//! lock                           held shared by writers and readers, exclusively by garbage collection
//! ```
//!
//! Every file is written to `incoming`, synced and renamed, and before the file that names it. So a process that dies leaves a
//! valid store, with at most some files that nothing names. [`Store::gc`] removes those. A damaged file counts as missing, and
//! adding it again repairs the store.

mod build_cache;
mod bundles;
#[cfg(feature = "registry")]
mod download;
mod gc;
mod open;
#[cfg(test)]
mod tests;
mod write;

#[cfg(feature = "registry")]
pub(crate) use self::download::{Download, PartialDownload};
pub use self::{
    bundles::StoredBundle,
    gc::GcSummary,
    open::{ScratchFolder, Store},
    write::{ReplacedBundle, StoreWriter},
};
