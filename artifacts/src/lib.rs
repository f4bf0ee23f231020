//! The bundle: the one thing that the build side and the run side share.
//!
//! A bundle is a folder with a `manifest.toml` and a folder `blobs` of files named by the 64 hex digits of their blake3
//! digest: a vmfb per target, the checkpoint's configuration and tokenizer, and its weights when it carries them.
//!
//! - **Opening verifies.** [`Bundle::open`] reads the manifest, validates it and compares the size and the digest of every
//!   blob. There is no other way to get a [`Bundle`]. Digests prove that a bundle is whole, not that it is honest: a vmfb
//!   for the CPU is native code.
//! - **Signing is minisign's.** [`Bundle::sign`] signs the manifest, which names every blob by its digest.
//! - **Writing is atomic.** [`BundleWriter`] works in a folder of its own and renames it when all is on the disk. At any
//!   moment a path holds the old bundle, the new one or none.
//! - **One description.** [`signature`] says what a module's entry points take and give, [`Manifest`] all the rest, and
//!   [`Manifest::validate`] is the one check of both. Names in a manifest are plain: none can lead out of the bundle.
//! - **The store is shared.** [`Store`] has files by their content: bundles under names, and what was built by the key of
//!   what made it. A damaged file counts as missing.
//! - **Registries have bundles too.** With the feature `registry`, [`Registry`] pushes and pulls them as OCI artifacts.
//! - **A target is chosen, not assumed.** [`judge`] compares what targets need with what a [`Machine`] has, so that no CPU
//!   meets an instruction that it lacks.
//!
//! Start reading at [`manifest`](Manifest), then `bundle.rs` and `writer.rs`. An [`Error`]'s message may end with `hint:`
//! lines; [`report`] renders one with its causes for a terminal.

mod archive;
mod built;
mod bundle;
mod cancel;
mod copy;
mod digest;
mod documents;
mod error;
mod extend;
mod known;
mod machine;
mod manifest;
mod place;
mod probe;
#[cfg(feature = "registry")]
mod registry;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod signature;
mod signing;
mod store;
mod tensors;
mod validate;
mod verdict;
mod writer;

pub use bundle::Bundle;
pub use cancel::{Cancel, INTERRUPTED, Watched};
pub use digest::{Digest, ParseDigestError};
pub use documents::{PROVENANCE, SBOM, with_parts};
pub use error::{Error, report};
pub use machine::{Driver, Gpu, Machine, ParseDriverError, ParseVersionError, Version};
pub use manifest::{
    Blob, Compiler, EmbeddingSpec, FORMAT, GpuNeeds, Manifest, ModelSpec, Packing, SMALL_FILE_LIMIT_BYTES,
    SelfTestCase, TargetArtifact, Traffic, Window,
};
pub use place::{DeviceClass, Place};
pub use probe::nvidia_gpus;
#[cfg(feature = "registry")]
pub use registry::{Registry, TransferEvent};
pub use signing::{PublicKey, SecretKey, Signed};
pub use store::{Collected, Name, Replaced, Scratch, SharedLock, Store, StoreWriter, Stored};
pub use tensors::{
    ALIGNMENT, HEADER_LIMIT_BYTES, aligned_header, printable, safetensors_header, safetensors_prefix,
};
pub use verdict::{Compatibility, Verdict, best, check_iree, judge, judge_on};
pub use writer::{BundleWriter, Destination};

/// The IREE that this workspace is pinned to: the build side compiles with it, the run side runs it.
pub const IREE_VERSION: &str = "3.13.0";
