//! What functions of the driver return.

use std::ffi::c_int;

pub(super) const SUCCESS: c_int = 0;
pub(super) const INVALID_VALUE: c_int = 1;
pub(super) const OUT_OF_MEMORY: c_int = 2;
pub(super) const INVALID_PTX: c_int = 218;
pub(super) const NOT_FOUND: c_int = 500;
pub(super) const ALREADY_REGISTERED: c_int = 712;
pub(super) const NOT_REGISTERED: c_int = 713;
pub(super) const LAUNCH_FAILED: c_int = 719;
pub(super) const NOT_SUPPORTED: c_int = 801;

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
