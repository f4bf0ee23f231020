//! Bundles in OCI registries.
//!
//! A bundle is one artifact with a layer for each of its files. Each layer is titled with the file's path, so `oras pull`
//! downloads the bundle's folder. The registry addresses layers by sha256; the bundle's manifest has the blake3 digests.
//! A pull reads the manifest first, then only the layers that it lists.

mod artifact;
mod authorize;
mod client;
mod credentials;
mod failure;
mod pull;
mod push;
mod transfer;

#[cfg(test)]
mod tests;

pub use client::Registry;
pub use credentials::DockerConfig;
pub use transfer::TransferEvent;
