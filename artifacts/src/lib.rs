#![doc = include_str!("../README.md")]

#[cfg(feature = "tensors")]
mod arrays;
mod blob;
mod bundle;
mod cancel;
mod command_line;
mod describe;
mod digest;
mod driver;
mod error;
mod files;
mod gguf;
mod identity;
mod iree;
mod layout;
mod machine;
mod manifest;
mod name;
mod nearest;
mod read;
#[cfg(feature = "registry")]
mod registry;
mod safetensors;
mod store;
mod tensor;
mod version;

pub use self::safetensors::{
    ALIGNMENT, CheckpointIndex, HEADER_LIMIT_BYTES, INDEX_FILE, IndexError, LFS_POINTER, SINGLE_FILE,
    aligned_header, printable, safetensors_header, safetensors_prefix,
};
#[cfg(feature = "tensors")]
pub use arrays::{
    dtypes::{dtype_of_mlir, dtype_of_numpy, numpy_name},
    element::Element,
    error::TensorFileError,
    file::TensorFile,
    safetensors_file::safetensors_tensors,
    value::{Number, Tensor, TensorSizeError},
    write::{safetensors_bytes, write_tensors},
};
pub use blob::{Blob, BlobRole};
pub use bundle::{
    Bundle,
    documents::{PROVENANCE, SBOM, with_file_list},
    sign::{PublicKey, SecretKey, SignatureInfo, WrongSignature},
    write::{BundleWriter, Destination},
};
pub use cancel::{Cancel, INTERRUPTED, Watched};
pub use command_line::parse_arguments;
pub use describe::{byte_count::ByteCount, describe, differences::Differences};
pub use digest::{Digest, ParseDigestError};
pub use driver::{Driver, NEVER_RUN, ParseDriverError};
pub use error::{Error, Report, report};
pub use files::SharedLock;
pub use gguf::{GGUF_MAGIC, GgmlType, GgufError, GgufHeader, GgufTensor, MetadataValue};
pub use identity::FileIdentity;
pub use iree::IREE_VERSION;
pub use machine::{
    compatibility::{
        Compatibility, Verdict, best_target, check_iree_version, check_targets, check_targets_at,
        least_gpu_bytes,
    },
    cpu::{UnknownCpuFeature, cpu_features},
    hardware::{Gpu, Machine},
    nvidia_free_bytes,
    place::{DeviceClass, Place},
};
#[cfg(any(test, feature = "sample"))]
pub use manifest::sample;
pub use manifest::{
    CONFIG_FILE, CalibratedBy, Compiler, EmbeddingSpec, FORMAT, FORMAT_OF_CALIBRATION, FORMAT_OF_PARTS,
    FORMAT_OF_PROGRAMS, GpuNeeds, Manifest, ModelSpec, Packing, SMALL_FILE_LIMIT_BYTES, SMALL_FILES,
    SelfTestCase, Serving, TargetArtifact, Traffic, Window, entry,
    numerics::{CacheType, Float, ParseWordError, Pooling, Quant},
    program::{BundleKind, Golden, ProgramSpec},
};
pub use name::{Name, ParseNameError};
pub use nearest::nearest_names;
pub use read::{Links, ReadError, read_limited};
#[cfg(feature = "registry")]
pub use registry::{DockerConfig, Registry, TransferEvent};
pub use store::{GcSummary, ReplacedBundle, ScratchFolder, Store, StoreWriter, StoredBundle};
pub use tensor::{signless, tensor_bytes, type_text};
pub use version::{ParseVersionError, Version};
