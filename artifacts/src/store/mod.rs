//! The store: files by their content, shared by everything on this machine that has them in common.

mod build_cache;
mod bundles;
#[cfg(feature = "registry")]
mod download;
mod gc;
mod open;
#[cfg(test)]
mod tests;

#[cfg(feature = "registry")]
pub(crate) use self::download::Part;
pub use self::{
    bundles::{Replaced, StoreWriter, Stored},
    gc::Collected,
    open::{Scratch, Store},
};
