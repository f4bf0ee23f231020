//! The version of IREE.

/// The version of IREE that compiles and runs bundles. A vmfb runs with the version that compiled it.
pub const IREE_VERSION: &str = "3.13.0";
