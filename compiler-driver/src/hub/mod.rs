//! Checkpoints of the Hugging Face hub: names, the cache that other programs share, and downloads that are verified.
//!
//! The crate `hf-hub` has the API, the URLs and the layout of the cache. `transfer.rs` reads files itself, because what
//! the crate reads is neither verified nor safe from a server that names files.

pub(crate) mod digest;
pub(crate) mod error;
pub(crate) mod fetch;
pub(crate) mod name;
pub(crate) mod settings;
pub(crate) mod snapshot;

mod cache;
mod client;
mod interrupt;
mod lock;
mod retry;
mod space;
mod transfer;
mod wanted;
