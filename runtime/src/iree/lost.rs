//! Devices that are lost.

use std::sync::Arc;

use crate::{
    device::DeviceInfo,
    error::{EngineError, Error},
    ffi,
};

/// Names the device where an error says that it is lost.
pub(super) fn named<T>(result: Result<T, Error>, device: &DeviceInfo) -> Result<T, Error> {
    let is_lost = |error: &ffi::Error| error.is_of_lost_device();
    result.map_err(|error| match error {
        Error::Iree { source, .. } if source.downcast_ref().is_some_and(is_lost) => {
            EngineError::DeviceLost { device: device.name.clone(), source: Arc::from(source) }.into()
        }
        other => other,
    })
}
