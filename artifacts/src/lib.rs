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
//! - **One description.** [`entry`] says what a module's entry points take and give, [`Manifest`] all the rest, and
//!   [`Manifest::validate`] is the one check of both. Names in a manifest are plain: none can lead out of the bundle.
//! - **The store is shared.** [`Store`] has files by their content: bundles under names, and what was built by the key of
//!   what made it. A damaged file counts as missing.
//! - **Registries have bundles too.** With the feature `registry`, [`Registry`] pushes and pulls them as OCI artifacts.
//! - **A target is chosen, not assumed.** [`check_targets`] compares what targets need with what a [`Machine`] has, so that no CPU
//!   meets an instruction that it lacks.
//!
//! Start reading at [`manifest`](Manifest), then `bundle/mod.rs` and `bundle/write.rs`. An [`Error`]'s message may end with `hint:`
//! lines; [`report`] renders one with its causes for a terminal.

mod blob;
mod bundle;
mod cancel;
mod digest;
mod driver;
mod error;
mod files;
mod iree;
mod layout;
mod machine;
mod manifest;
mod name;
#[cfg(feature = "registry")]
mod registry;
mod safetensors;
mod store;
mod version;

pub use self::safetensors::{
    ALIGNMENT, HEADER_LIMIT_BYTES, aligned_header, printable, safetensors_header, safetensors_prefix,
};
pub use blob::Blob;
pub use bundle::{
    Bundle,
    documents::{PROVENANCE, SBOM, with_file_list},
    sign::{PublicKey, SecretKey, Signed},
    write::{BundleWriter, Destination},
};
pub use cancel::{Cancel, INTERRUPTED, Watched};
pub use digest::{Digest, ParseDigestError};
pub use driver::{Driver, ParseDriverError};
pub use error::{Error, report};
pub use iree::IREE_VERSION;
pub use machine::{
    compatibility::{
        Compatibility, Verdict, best_target, check_iree_version, check_targets, check_targets_at,
    },
    hardware::{Gpu, Machine},
    nvidia_gpus,
    place::{DeviceClass, Place},
};
#[cfg(any(test, feature = "sample"))]
pub use manifest::sample;
pub use manifest::{
    Compiler, EmbeddingSpec, FORMAT, GpuNeeds, Manifest, ModelSpec, Packing, SMALL_FILE_LIMIT_BYTES,
    SelfTestCase, TargetArtifact, Traffic, Window, entry,
};
pub use name::Name;
#[cfg(feature = "registry")]
pub use registry::{DockerConfig, Registry, TransferEvent};
pub use store::{Collected, Replaced, Scratch, SharedLock, Store, StoreWriter, Stored};
pub use version::{ParseVersionError, Version};
