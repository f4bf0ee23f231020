//! Machines, their devices, and the targets that run on them.

pub(crate) mod compatibility;
pub(crate) mod cpu;
mod detect;
pub(crate) mod hardware;
pub(crate) mod place;

pub use detect::nvidia_free_bytes;
