//! What functions of the driver return.

use std::ffi::{CStr, c_char, c_int};

pub(super) const SUCCESS: c_int = 0;

/// Defines the errors, with the names and words that the driver has for them.
macro_rules! errors {
    ($($name:ident = $number:literal, $full:literal, $words:literal;)*) => {
        $(pub(super) const $name: c_int = $number;)*

        /// Returns the name of an error and what it says, if it is one of those that functions here return.
        fn words(error: c_int) -> Option<(&'static CStr, &'static CStr)> {
            match error {
                SUCCESS => Some((c"CUDA_SUCCESS", c"no error")),
                $($number => Some(($full, $words)),)*
                _ => None,
            }
        }
    };
}

errors! {
    INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument";
    OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory";
    DEVICE_UNAVAILABLE = 46, c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"CUDA-capable device(s) is/are busy or unavailable";
    NO_DEVICE = 100, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected";
    INVALID_DEVICE = 101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal";
    INVALID_CONTEXT = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context";
    INVALID_PTX = 218, c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed";
    UNSUPPORTED_PTX = 222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the provided PTX was compiled with an unsupported toolchain.";
    INVALID_HANDLE = 400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle";
    NOT_FOUND = 500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found";
    CONTEXT_IS_DESTROYED = 709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"context is destroyed";
    ALREADY_REGISTERED = 712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"part or all of the requested memory range is already mapped";
    NOT_REGISTERED = 713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"pointer does not correspond to a registered memory region";
    LAUNCH_FAILED = 719, c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure";
    NOT_SUPPORTED = 801, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported";
}

/// Returns the address of a function.
pub(super) fn function(name: &str) -> Option<*const std::ffi::c_void> {
    Some(match name {
        "cuGetErrorName" => error_name as *const _,
        "cuGetErrorString" => error_string as *const _,
        _ => return None,
    })
}

unsafe extern "C" fn error_name(error: c_int, text: *mut *const c_char) -> c_int {
    let Some((name, _)) = words(error) else { return INVALID_VALUE };
    // SAFETY: the caller gives a place for a pointer.
    unsafe { give(text, name.as_ptr()) }
}

unsafe extern "C" fn error_string(error: c_int, text: *mut *const c_char) -> c_int {
    let Some((_, words)) = words(error) else { return INVALID_VALUE };
    // SAFETY: the caller gives a place for a pointer.
    unsafe { give(text, words.as_ptr()) }
}

/// Returns the number of a result, whose success has one too.
pub(super) fn number(result: Result<c_int, c_int>) -> c_int {
    result.unwrap_or_else(|error| error)
}

pub(super) extern "C" fn not_supported() -> c_int {
    NOT_SUPPORTED
}

/// What has nothing to do, because work is done when it is submitted.
pub(super) extern "C" fn nothing() -> c_int {
    SUCCESS
}

/// Writes a result; returns an error if there is no place for it.
///
/// # Safety
/// `place` is null, or a result can be written to it.
pub(super) unsafe fn give<T>(place: *mut T, value: T) -> c_int {
    if place.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller says so.
    unsafe { place.write(value) };
    SUCCESS
}
