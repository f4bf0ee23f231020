//! NVIDIA's management library, as <https://docs.nvidia.com/deploy/nvml-api/> has it: what programs ask of devices without a context.
//!
//! It is a part of the driver's library here, so that both know of the same memory.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

use super::{
    codes::{SUCCESS, give},
    device::{NAME, device_index, memory, uuid_of},
    settings::SETTINGS,
};

const INVALID_ARGUMENT: c_int = 2;
const NOT_FOUND: c_int = 6;
const INSUFFICIENT_SIZE: c_int = 7;

/// `nvmlDevice_t`: the index of a device, plus one.
type Handle = *const c_void;

fn handle(index: usize) -> Handle {
    std::ptr::without_provenance(index + 1)
}

fn index(handle: Handle) -> Result<usize, c_int> {
    let index = handle.addr().checked_sub(1).and_then(|index| c_int::try_from(index).ok());
    index.and_then(|index| device_index(index).ok()).ok_or(INVALID_ARGUMENT)
}

/// Defines functions that the library has by their names.
macro_rules! functions {
    ($($(#[$words:meta])* $name:ident($($argument:ident: $type:ty),*) $body:block)*) => {$(
        $(#[$words])*
        ///
        /// # Safety
        /// Pointers are null, or those of C strings and of places for what is written.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the library has this name")]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            let body = || -> Result<c_int, c_int> { $body };
            body().unwrap_or_else(|error| error)
        }
    )*};
}

functions! {
    /// Begins to use the library.
    nvmlInit_v2() { Ok(SUCCESS) }

    /// Ends to use the library.
    nvmlShutdown() { Ok(SUCCESS) }

    /// Writes the version of CUDA that the driver supports.
    nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) {
        // SAFETY: the caller gives a place for a number.
        Ok(unsafe { give(version, SETTINGS.driver) })
    }

    /// Writes the number of devices.
    nvmlDeviceGetCount_v2(count: *mut c_uint) {
        // SAFETY: the caller gives a place for a number.
        Ok(unsafe { give(count, SETTINGS.devices as c_uint) })
    }

    /// Writes the handle of a device by its index.
    nvmlDeviceGetHandleByIndex_v2(device: c_uint, place: *mut Handle) {
        let index = index(handle(device as usize))?;
        // SAFETY: the caller gives a place for a handle.
        Ok(unsafe { give(place, handle(index)) })
    }

    /// Writes the handle of a device by what `nvidia-smi -L` prints.
    nvmlDeviceGetHandleByUUID(uuid: *const c_char, place: *mut Handle) {
        // SAFETY: the caller gives a C string, or null.
        let text = unsafe { uuid.as_ref().map(|uuid| CStr::from_ptr(uuid)) }.ok_or(INVALID_ARGUMENT)?;
        let is_named = |device: &usize| text.to_bytes() == uuid_text(*device).as_bytes();
        let index = (0..SETTINGS.devices).find(is_named).ok_or(NOT_FOUND)?;
        // SAFETY: the caller gives a place for a handle.
        Ok(unsafe { give(place, handle(index)) })
    }

    /// Writes the name of a device.
    nvmlDeviceGetName(device: Handle, place: *mut c_char, size: c_uint) {
        index(device)?;
        let text = NAME.to_bytes_with_nul();
        if place.is_null() || (size as usize) < text.len() {
            return Err(INSUFFICIENT_SIZE);
        }
        // SAFETY: the caller gives a place for as many characters.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), text.len()) };
        Ok(SUCCESS)
    }

    /// Writes the compute capability of a device.
    nvmlDeviceGetCudaComputeCapability(device: Handle, major: *mut c_int, minor: *mut c_int) {
        let found = SETTINGS.capability(index(device)?);
        // SAFETY: the caller gives places for both numbers.
        Ok(unsafe {
            give(major, found.0 as c_int);
            give(minor, found.1 as c_int)
        })
    }

    /// Writes what memory a device has, and how much of it is free.
    nvmlDeviceGetMemoryInfo_v2(device: Handle, place: *mut MemoryInfo) {
        let [total, free] = memory(index(device)?);
        // SAFETY: the caller gives a place for the numbers, with their version.
        let place = unsafe { place.as_mut() }.ok_or(INVALID_ARGUMENT)?;
        *place = MemoryInfo { total, reserved: 0, free, used: total - free, ..*place };
        Ok(SUCCESS)
    }
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MemoryInfo {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// Returns what `nvidia-smi -L` prints of a device.
fn uuid_text(device: usize) -> String {
    let digits: String = uuid_of(device).iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    format!("GPU-{}", parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_the_names_that_cuda_gives_them() {
        assert_eq!(uuid_text(1), "GPU-6d6c7863-656c-2065-6d75-6c61746f7201");
    }
}
