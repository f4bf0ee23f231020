//! The devices and what they say of themselves.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::{
    allocations,
    codes::{INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, SUCCESS, give, number},
    contexts,
    settings::SETTINGS,
};

pub(super) const NAME: &CStr = c"Emulator";

/// Returns the address of a function.
pub(super) fn function(name: &str) -> Option<*const c_void> {
    Some(match name {
        "cuInit" => init as *const c_void,
        "cuDriverGetVersion" => version as *const c_void,
        "cuDeviceGetCount" => count as *const c_void,
        "cuDeviceGet" => device as *const c_void,
        "cuDeviceGetName" => device_name as *const c_void,
        "cuDeviceGetUuid" => uuid as *const c_void,
        "cuDeviceTotalMem" => total_memory as *const c_void,
        "cuDeviceGetAttribute" => attribute as *const c_void,
        "cuMemGetInfo" => memory_info as *const c_void,
        _ => return None,
    })
}

/// Returns the index of a device.
pub(super) fn device_index(device: c_int) -> Result<usize, c_int> {
    usize::try_from(device).ok().filter(|&index| index < SETTINGS.devices).ok_or(INVALID_DEVICE)
}

extern "C" fn init(_flags: c_uint) -> c_int {
    if SETTINGS.devices == 0 { NO_DEVICE } else { SUCCESS }
}

unsafe extern "C" fn version(version: *mut c_int) -> c_int {
    // SAFETY: the caller gives a place for a number.
    unsafe { give(version, SETTINGS.driver) }
}

unsafe extern "C" fn count(count: *mut c_int) -> c_int {
    // SAFETY: the caller gives a place for a number.
    unsafe { give(count, c_int::try_from(SETTINGS.devices).unwrap_or(c_int::MAX)) }
}

unsafe extern "C" fn device(device: *mut c_int, ordinal: c_int) -> c_int {
    // SAFETY: the caller gives a place for a number.
    number(device_index(ordinal).map(|_| unsafe { give(device, ordinal) }))
}

unsafe extern "C" fn device_name(name: *mut c_char, size: c_int, _device: c_int) -> c_int {
    let text = NAME.to_bytes_with_nul();
    if name.is_null() || usize::try_from(size).is_ok_and(|size| size < text.len()) {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a place for as many characters.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), name.cast(), text.len()) };
    SUCCESS
}

/// Returns the bytes that no other device has.
pub(super) fn uuid_of(device: usize) -> [u8; 16] {
    let mut bytes = *b"mlxcel emulator\0";
    bytes[15] = u8::try_from(device).unwrap_or(u8::MAX);
    bytes
}

unsafe extern "C" fn uuid(uuid: *mut [u8; 16], device: c_int) -> c_int {
    // SAFETY: the caller gives a place for 16 bytes.
    number(device_index(device).map(|device| unsafe { give(uuid, uuid_of(device)) }))
}

/// Returns the size of a device's memory, and what is left of it.
pub(super) fn memory(device: usize) -> [u64; 2] {
    let used = allocations::used(device);
    [SETTINGS.memory(device), SETTINGS.free(device).saturating_sub(used)]
}

unsafe extern "C" fn total_memory(bytes: *mut usize, device: c_int) -> c_int {
    // SAFETY: the caller gives a place for a number.
    number(device_index(device).map(|device| unsafe { give(bytes, memory(device)[0] as usize) }))
}

unsafe extern "C" fn memory_info(free: *mut usize, total: *mut usize) -> c_int {
    number(contexts::current().map(|context| {
        let [all, left] = memory(context.device);
        // SAFETY: the caller gives places for both numbers.
        unsafe {
            give(free, left as usize);
            give(total, all as usize)
        }
    }))
}

/// Numbers of `CUdevice_attribute`, with those of a small GPU.
unsafe extern "C" fn attribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_int {
    let Ok(device) = device_index(device) else { return INVALID_DEVICE };
    let (major, minor) = SETTINGS.capability(device);
    let found = match attribute {
        // Threads of a block, in all and by dimension.
        1..=3 => 1024,
        4 => 64,
        // Blocks of a grid, by dimension.
        5 => c_int::MAX,
        6 | 7 => 65535,
        // Shared memory of a block, and registers.
        8 => 48 << 10,
        12 | 82 => 64 << 10,
        10 => 32,
        // Multiprocessors.
        16 => 2,
        // Compute capability.
        75 => major as c_int,
        76 => minor as c_int,
        // Shared memory of a multiprocessor, and of a block that asks for it.
        81 => 164 << 10,
        97 => 163 << 10,
        // Memory that both sides use, memory pools, memory of the host.
        89 | 99 | 113 | 115 => 1,
        _ => 0,
    };
    // SAFETY: the caller gives a place for a number.
    unsafe { give(value, found) }
}
