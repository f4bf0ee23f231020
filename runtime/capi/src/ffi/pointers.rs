//! Reading and writing the caller's memory. What is null or misaligned is an error; that the rest is memory of the caller, of the
//! stated length, is the caller's promise.

use std::{
    ffi::{CStr, c_char},
    mem::MaybeUninit,
    panic::{self, AssertUnwindSafe},
    ptr, slice,
};

use crate::{
    errors::{HeldError, Problem},
    handles::Object,
};

/// An error, with its message.
#[derive(Debug)]
pub struct Error {
    _private: [u8; 0],
}

/// Runs the work of an exported function. Returns null, or a handle of the error.
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Problem>) -> *mut Error {
    let result = panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Problem::Internal));
    match result {
        Ok(()) => ptr::null_mut(),
        Err(problem) => to_handle(HeldError::table().add(problem.held())),
    }
}

/// Runs work that returns a value, and another one if there is none.
pub(crate) fn guard_or<T>(otherwise: T, work: impl FnOnce() -> Result<T, Problem>) -> T {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Problem::Internal)).unwrap_or(otherwise)
}

/// Returns a handle as C has it.
pub(crate) fn to_handle<T>(handle: usize) -> *mut T {
    ptr::without_provenance_mut(handle)
}

/// Returns the number of a handle. C gives it as a pointer, which is never read.
pub(crate) fn number<T>(handle: *const T) -> usize {
    handle.addr()
}

/// Writes to an out-parameter.
pub(crate) fn put<T>(name: &str, to: *mut T, value: T) -> Result<(), Problem> {
    if to.is_null() || !to.is_aligned() {
        return Err(refused(name, "a pointer to write to"));
    }
    // SAFETY: the pointer is aligned and not null; the caller promises that it points to memory for the type.
    unsafe { to.write(value) };
    Ok(())
}

/// Returns a text that ends with a zero; `None` for null.
pub(crate) fn text<'a>(name: &str, from: *const c_char) -> Result<Option<&'a str>, Problem> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not null; the caller promises that it points to a text that ends with a zero.
    let bytes = unsafe { CStr::from_ptr(from) };
    bytes.to_str().map(Some).map_err(|_| refused(name, "a text in UTF-8"))
}

/// Returns a text that has to be there.
pub(crate) fn need_text<'a>(name: &str, from: *const c_char) -> Result<&'a str, Problem> {
    text(name, from)?.ok_or_else(|| refused(name, "a text"))
}

/// Returns a text of so many bytes, or one that ends with a zero if `length` is 0.
pub(crate) fn sized_text<'a>(
    name: &str,
    from: *const c_char,
    length: usize,
) -> Result<Option<&'a str>, Problem> {
    if length == 0 {
        return text(name, from);
    }
    let bytes = array(name, from.cast::<u8>(), length)?;
    std::str::from_utf8(bytes).map(Some).map_err(|_| refused(name, "a text in UTF-8"))
}

/// Returns an array of the caller.
pub(crate) fn array<'a, T>(name: &str, from: *const T, length: usize) -> Result<&'a [T], Problem> {
    check(name, from, length)?;
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: it is aligned, not null and no longer than an object can be; the caller promises that it points to so many.
    Ok(unsafe { slice::from_raw_parts(from, length) })
}

/// Returns a buffer of the caller to write to.
pub(crate) fn buffer<'a, T>(name: &str, to: *mut T, length: usize) -> Result<&'a mut [T], Problem> {
    check(name, to, length)?;
    if length == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as in `array`; the caller promises that nothing else uses it during the call.
    Ok(unsafe { slice::from_raw_parts_mut(to, length) })
}

fn check<T>(name: &str, from: *const T, length: usize) -> Result<(), Problem> {
    let is_bad = length > 0 && (from.is_null() || !from.is_aligned());
    if is_bad || length.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(refused(name, "a pointer to that many elements"));
    }
    Ok(())
}

/// A structure of options: plain numbers and pointers, for which all zeros say nothing.
///
/// # Safety
/// All zeros must be a value, and every field but the first, the size, may be any bits that C writes.
pub(crate) unsafe trait Options: Sized {}

/// Reads a structure whose first field is its size in bytes, as the caller's header has it. A shorter one of an older header
/// has zeros at its end. Null is all zeros.
pub(crate) fn options<T: Options>(name: &str, from: *const T) -> Result<T, Problem> {
    let mut copy = MaybeUninit::<T>::zeroed();
    if !from.is_null() {
        if !from.is_aligned() {
            return Err(refused(name, "an aligned pointer"));
        }
        // SAFETY: it is aligned and not null; the caller promises that it points to a structure, whose first field is its size.
        let size = unsafe { from.cast::<usize>().read() };
        if size < size_of::<usize>() {
            return Err(refused(name, "the size of the structure in its field `size`"));
        }
        let known = size.min(size_of::<T>());
        // SAFETY: the caller promises `size` bytes, and `copy` has room for those that are known.
        unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), known) };
    }
    // SAFETY: all zeros are a value of the type, and so is what C writes over them (see `Options`).
    Ok(unsafe { copy.assume_init() })
}

fn refused(name: &str, expected: &str) -> Problem {
    Problem::Argument(format!("the argument {name} cannot be used, expected {expected}"))
}
