//! The version of IREE.

/// The IREE that this workspace is pinned to: the build side compiles with it, the run side runs it.
pub const IREE_VERSION: &str = "3.13.0";
