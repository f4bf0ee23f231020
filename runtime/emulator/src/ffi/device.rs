//! The device, contexts, streams and events.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use super::{
    codes::{
        INVALID_PTX, INVALID_VALUE, LAUNCH_FAILED, NOT_FOUND, NOT_SUPPORTED, OUT_OF_MEMORY, SUCCESS, give,
        nothing,
    },
    counts,
};

const NAME: &CStr = c"Emulator";
/// CUDA 12.8.
const VERSION: c_int = 12080;
/// What it says of its memory, which is that of the machine.
const MEMORY_BYTES: usize = 16 << 30;
/// Anything but null, where a handle stands for nothing.
const HANDLE: *mut c_void = std::ptr::dangling_mut::<u8>().cast();

/// Returns the address of a function.
pub(super) fn function(name: &str) -> Option<*const c_void> {
    Some(match name {
        "cuGetErrorName" | "cuGetErrorString" => error_text as *const c_void,
        "cuDriverGetVersion" => version as *const c_void,
        "cuDeviceGetCount" => count as *const c_void,
        "cuDeviceGet" => device as *const c_void,
        "cuDeviceGetName" => device_name as *const c_void,
        "cuDeviceGetUuid" => uuid as *const c_void,
        "cuDeviceTotalMem" => total_memory as *const c_void,
        "cuDeviceGetAttribute" => attribute as *const c_void,
        "cuDevicePrimaryCtxRetain" => context as *const c_void,
        "cuCtxCreate" | "cuStreamCreate" => created as *const c_void,
        "cuCtxGetCurrent" => current as *const c_void,
        "cuEventCreate" => create_event as *const c_void,
        "cuEventDestroy" => destroy_event as *const c_void,
        "cuEventRecord" => record_event as *const c_void,
        "cuEventSynchronize" => synchronize_event as *const c_void,
        "cuStreamSynchronize" => synchronize_stream as *const c_void,
        "cuEventElapsedTime" => elapsed as *const c_void,
        "cuLaunchHostFunc" => host_function as *const c_void,
        "cuInit"
        | "cuCtxDestroy"
        | "cuDevicePrimaryCtxRelease"
        | "cuCtxSetCurrent"
        | "cuCtxPushCurrent"
        | "cuCtxPopCurrent"
        | "cuEventQuery"
        | "cuStreamDestroy"
        | "cuStreamWaitEvent" => nothing as *const c_void,
        _ => return None,
    })
}

unsafe extern "C" fn error_text(error: c_int, text: *mut *const c_char) -> c_int {
    let found = match error {
        SUCCESS => c"no error",
        OUT_OF_MEMORY => c"out of memory",
        INVALID_PTX => c"a PTX instruction that the emulator does not know",
        NOT_FOUND => c"named symbol not found",
        LAUNCH_FAILED => c"a kernel did something that is an error on a GPU",
        NOT_SUPPORTED => c"operation not supported by the emulator",
        _ => c"invalid argument",
    };
    // SAFETY: the caller gives a place for a pointer.
    unsafe { give(text, found.as_ptr()) }
}

unsafe extern "C" fn version(version: *mut c_int) -> c_int {
    // SAFETY: the caller gives a place for a number.
    unsafe { give(version, VERSION) }
}

unsafe extern "C" fn count(count: *mut c_int) -> c_int {
    // SAFETY: the caller gives a place for a number.
    unsafe { give(count, 1) }
}

unsafe extern "C" fn device(device: *mut c_int, ordinal: c_int) -> c_int {
    if ordinal != 0 {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a place for a number.
    unsafe { give(device, ordinal) }
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

unsafe extern "C" fn uuid(uuid: *mut [u8; 16], _device: c_int) -> c_int {
    // SAFETY: the caller gives a place for 16 bytes.
    unsafe { give(uuid, *b"mlxcel emulator\0") }
}

unsafe extern "C" fn total_memory(bytes: *mut usize, _device: c_int) -> c_int {
    // SAFETY: the caller gives a place for a number.
    unsafe { give(bytes, MEMORY_BYTES) }
}

/// Numbers of `CUdevice_attribute`, with those of a small GPU of compute capability 9.0.
unsafe extern "C" fn attribute(value: *mut c_int, attribute: c_int, _device: c_int) -> c_int {
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
        75 => 9,
        76 => 0,
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

unsafe extern "C" fn context(context: *mut *mut c_void, _device: c_int) -> c_int {
    // SAFETY: the caller gives a place for a pointer.
    unsafe { give(context, HANDLE) }
}

/// All contexts are one, and it is always the current one.
unsafe extern "C" fn current(context: *mut *mut c_void) -> c_int {
    // SAFETY: the caller gives a place for a pointer.
    unsafe { give(context, HANDLE) }
}

unsafe extern "C" fn created(handle: *mut *mut c_void, _flags: c_uint) -> c_int {
    // SAFETY: the caller gives a place for a pointer.
    unsafe { give(handle, HANDLE) }
}

/// A place in a stream: the time at which it was put there, when all before it had been done.
type Event = Mutex<Instant>;

unsafe extern "C" fn create_event(handle: *mut *mut Event, _flags: c_uint) -> c_int {
    // SAFETY: the caller gives a place for a handle.
    unsafe { give(handle, Box::into_raw(Box::new(Mutex::new(Instant::now())))) }
}

unsafe extern "C" fn destroy_event(event: *mut Event) -> c_int {
    if event.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a handle of `create_event`, and uses it no more.
    drop(unsafe { Box::from_raw(event) });
    SUCCESS
}

unsafe extern "C" fn record_event(event: *const Event, _stream: *mut c_void) -> c_int {
    // SAFETY: the caller gives a handle of `create_event`, or null.
    let Some(event) = (unsafe { event.as_ref() }) else { return INVALID_VALUE };
    *event.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    SUCCESS
}

extern "C" fn synchronize_event(_event: *const Event) -> c_int {
    counts::note("cuEventSynchronize");
    SUCCESS
}

extern "C" fn synchronize_stream(_stream: *mut c_void) -> c_int {
    counts::note("cuStreamSynchronize");
    SUCCESS
}

unsafe extern "C" fn elapsed(milliseconds: *mut f32, start: *const Event, end: *const Event) -> c_int {
    // SAFETY: the caller gives handles of `create_event`, or null.
    let (Some(start), Some(end)) = (unsafe { (start.as_ref(), end.as_ref()) }) else { return INVALID_VALUE };
    let [start, end] = [start, end].map(|event| *event.lock().unwrap_or_else(PoisonError::into_inner));
    let passed = end.saturating_duration_since(start);
    // SAFETY: the caller gives a place for a number.
    unsafe { give(milliseconds, passed.as_secs_f32() * 1e3) }
}

unsafe extern "C" fn host_function(
    _stream: *mut c_void,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> c_int {
    let Some(function) = function else { return INVALID_VALUE };
    // SAFETY: the caller gives a function that takes the data. What was submitted before is done.
    unsafe { function(data) };
    SUCCESS
}
