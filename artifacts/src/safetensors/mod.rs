//! Safetensors files: their headers, and the index of a checkpoint in several files.

mod header;
mod index;

pub use header::{
    ALIGNMENT, HEADER_LIMIT_BYTES, LFS_POINTER, aligned_header, printable, safetensors_header,
    safetensors_prefix,
};
pub use index::{CheckpointIndex, INDEX_FILE, IndexError, SINGLE_FILE};
