//! `mlxcel_error_*`, and the version.

use std::{
    ffi::{CString, c_char},
    ptr,
};

use super::pointers::{Error, guard_or, number};
use crate::{
    errors::{Code, HeldError},
    handles::{Object as _, object},
};

object!(HeldError, 1, "an error");

/// The version, with the zero that ends it.
static VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Returns the version of this library. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// Returns what kind of error it is; MLXCEL_CODE_NONE for NULL. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_error_code(error: *const Error) -> Code {
    let otherwise = if error.is_null() { Code::None } else { Code::Usage };
    guard_or(otherwise, || Ok(HeldError::table().get(number(error))?.code))
}

/// Returns what failed and why, in one line; an empty text for NULL. Valid until the error is freed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_error_message(error: *const Error) -> *const c_char {
    let empty = c"".as_ptr();
    guard_or(empty, || Ok(HeldError::table().get(number(error))?.message.as_ptr()))
}

/// Returns what was found; NULL if the message does not say. Valid until the error is freed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_error_found(error: *const Error) -> *const c_char {
    part(error, |error| error.found.as_ref())
}

/// Returns what was expected; NULL if the message does not say. Valid until the error is freed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_error_expected(error: *const Error) -> *const c_char {
    part(error, |error| error.expected.as_ref())
}

/// Returns the remedy; NULL if there is none. Valid until the error is freed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_error_hint(error: *const Error) -> *const c_char {
    part(error, |error| error.hint.as_ref())
}

fn part(error: *const Error, choose: impl Fn(&HeldError) -> Option<&CString>) -> *const c_char {
    guard_or(ptr::null(), || {
        let held = HeldError::table().get(number(error))?;
        Ok(choose(&held).map_or(ptr::null(), |text| text.as_ptr()))
    })
}

/// Frees an error. NULL is allowed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_error_free(error: *mut Error) {
    drop(HeldError::table().remove(number(error)));
}
