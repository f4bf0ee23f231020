//! Programs: functions of tensors, with state that stays on the device.

#[cfg(not(feature = "iree"))]
mod absent;
pub(crate) mod bundle;
pub(crate) mod compare;
#[cfg(feature = "iree")]
pub(crate) mod function;
pub(crate) mod golden;
#[cfg(feature = "iree")]
pub(crate) mod loaded;
pub(crate) mod names;

#[cfg(not(feature = "iree"))]
pub use absent::{Function, LoadedProgram};
#[cfg(feature = "iree")]
pub use function::{DeviceTensor, Function};
#[cfg(feature = "iree")]
pub use loaded::LoadedProgram;
