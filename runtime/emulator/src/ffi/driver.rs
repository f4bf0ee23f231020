//! The one function that a driver's library must have: it gives the others.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::{
    allocations,
    codes::{self, INVALID_VALUE, give, not_supported},
    contexts, device, graphs, modules, primary,
    settings::SETTINGS,
    streams,
};

/// Writes the address of a function of the driver, as `cuGetProcAddress` of CUDA 11.3 does.
///
/// # Safety
/// `name` is a C string, and `function` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetProcAddress(
    name: *const c_char,
    function: *mut *const c_void,
    version: c_int,
    _flags: u64,
) -> c_int {
    if name.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default();
    let found = match name {
        "cuGetProcAddress" => Some(cuGetProcAddress as *const c_void),
        _ => codes::function(name)
            .or_else(|| device::function(name))
            .or_else(|| contexts::function(name))
            .or_else(|| primary::function(name))
            .or_else(|| streams::function(name))
            .or_else(|| allocations::function(name))
            .or_else(|| modules::function(name))
            .or_else(|| graphs::function(name, version.min(SETTINGS.driver))),
    };
    // SAFETY: the caller gives a place for a pointer. What is not here is nothing that IREE needs to run a bundle.
    unsafe { give(function, found.unwrap_or(not_supported as *const c_void)) }
}
