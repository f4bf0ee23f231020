//! What a machine has to run bundles with, and which targets it runs.

mod cpu;
mod detect;
pub(crate) mod hardware;
pub(crate) mod judge;
pub(crate) mod place;

pub use detect::nvidia_gpus;
