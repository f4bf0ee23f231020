//! The programs and libraries that the build needs: the list of them, and how they are detected and installed.

pub(crate) mod apt;
pub(crate) mod cross;
pub(crate) mod detect;
pub(crate) mod doctor;
pub(crate) mod part;
pub(crate) mod parts;
pub(crate) mod setup;
pub(crate) mod uv;
pub(crate) mod venv;
mod version;
pub(crate) mod wheels;

/// The constant of mlxcel-artifacts, which this crate does not depend on: it builds before anything is installed.
#[allow(unreachable_pub, reason = "it is public in mlxcel-artifacts")]
#[path = "../../../artifacts/src/iree.rs"]
pub(crate) mod iree;
