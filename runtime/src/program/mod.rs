//! Programs: functions of tensors, with state that stays on the device.

pub(crate) mod bundle;
pub(crate) mod compare;
#[cfg(feature = "iree")]
pub(crate) mod function;
#[cfg(feature = "iree")]
pub(crate) mod golden;
#[cfg(feature = "iree")]
pub(crate) mod loaded;
pub(crate) mod names;
