//! Memory of the device and of the host, which are the same.

use std::{
    alloc::{Layout, alloc, dealloc},
    collections::VecDeque,
    ffi::{c_int, c_uint, c_void},
    ptr,
    sync::{Mutex, PoisonError},
};

use super::{
    codes::{
        ALREADY_REGISTERED, INVALID_VALUE, NOT_REGISTERED, OUT_OF_MEMORY, SUCCESS, give, nothing, number,
    },
    contexts::{self, Context},
    counts,
    ranges::{Allocation, Kind, Memory},
    settings::SETTINGS,
    streams::{Stream, context_of},
};

/// The memory of the device.
pub(super) static MEMORY: Memory = Memory::new();

/// The alignment of the driver's allocations, and what their sizes are multiples of: iree-compile reads four elements where it needs
/// three.
const ALIGN: usize = 256;
/// What new memory has: NaN as floats.
const UNWRITTEN: u8 = 0xff;
/// Bytes on both sides of an allocation that belong to none.
const GUARD: usize = 4096;
/// The size of a page, or of a part of one, and the access that `mprotect` leaves.
const PAGE: u64 = GUARD as u64;
const NO_ACCESS: c_int = 0;

unsafe extern "C" {
    fn mprotect(place: *mut c_void, bytes: usize, access: c_int) -> c_int;
}

/// How many bytes that were freed are not given out again, so that stale addresses are found.
const QUARANTINE: usize = 64 << 20;

/// What was freed last, and its size with guards.
static FREED: Mutex<VecDeque<(u64, usize)>> = Mutex::new(VecDeque::new());

/// Returns the address of a function.
pub(super) fn function(name: &str) -> Option<*const c_void> {
    Some(match name {
        "cuMemAlloc" => allocate as *const c_void,
        "cuMemAllocManaged" => allocate_managed as *const c_void,
        "cuMemHostAlloc" => allocate_host as *const c_void,
        "cuMemAllocFromPoolAsync" => allocate_from_pool as *const c_void,
        "cuMemFree" => free as *const c_void,
        "cuMemFreeHost" => free_host as *const c_void,
        "cuMemFreeAsync" => free_async as *const c_void,
        "cuMemHostRegister" => register as *const c_void,
        "cuMemHostUnregister" => unregister as *const c_void,
        "cuMemHostGetDevicePointer" => device_pointer as *const c_void,
        "cuMemPoolCreate" => create_pool as *const c_void,
        "cuMemPoolGetAttribute" => pool_attribute as *const c_void,
        "cuMemPoolDestroy"
        | "cuMemPoolSetAccess"
        | "cuMemPoolSetAttribute"
        | "cuMemPoolTrimTo"
        | "cuMemPrefetchAsync" => nothing as *const c_void,
        "cuMemcpyAsync" => copy as *const c_void,
        "cuMemcpyHtoDAsync" => copy_to_device as *const c_void,
        "cuMemsetD8Async" => set_bytes as *const c_void,
        "cuMemsetD16Async" => set_halves as *const c_void,
        "cuMemsetD32Async" => set_words as *const c_void,
        _ => return None,
    })
}

/// Returns how much is taken for an allocation, with guards.
fn layout(bytes: usize) -> Option<Layout> {
    let padded = bytes.max(1).checked_next_multiple_of(ALIGN)?;
    Layout::from_size_align(padded.checked_add(2 * GUARD)?, ALIGN).ok()
}

/// Returns how much memory of a device is in use here.
pub(super) fn used(device: usize) -> u64 {
    let is_of = |found: &Allocation| {
        found.kind == Kind::Device && found.context.is_some_and(|context| context.device == device)
    };
    MEMORY.sum(is_of)
}

/// Allocates memory of a context, and writes its address.
///
/// # Safety
/// `place` is null, or an address can be written to it.
unsafe fn reserve(
    context: Result<&'static Context, c_int>,
    place: *mut u64,
    bytes: usize,
    kind: Kind,
) -> c_int {
    let context = match context {
        Ok(context) => context,
        Err(error) => return error,
    };
    let Some(layout) = layout(bytes).filter(|_| bytes > 0) else {
        return if bytes == 0 { INVALID_VALUE } else { OUT_OF_MEMORY };
    };
    let padded = layout.size() - 2 * GUARD;
    // One at a time, so that two do not get the same last bytes.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if kind == Kind::Device && used(context.device) + padded as u64 > SETTINGS.free(context.device) {
        return OUT_OF_MEMORY;
    }
    // SAFETY: the layout has at least one byte, and what was allocated can be written.
    let found = unsafe {
        let found = alloc(layout);
        if found.is_null() {
            return OUT_OF_MEMORY;
        }
        found.write_bytes(UNWRITTEN, layout.size());
        let start = found as u64 + GUARD as u64;
        MEMORY.add(start, Allocation { bytes, padded, kind, context: Some(context) });
        start
    };
    // SAFETY: the caller gives a place for an address.
    unsafe { give(place, found) }
}

/// Takes away what a context has. Whoever reaches for it ends the program, as where pages are the driver's.
pub(super) fn take_away(context: &Context) {
    for (place, found) in MEMORY.remove_all(context) {
        if matches!(found.kind, Kind::Device | Kind::Host) {
            // Guards are as large as a page, so that whole pages are those of this allocation.
            let (start, end) = (place & !(PAGE - 1), (place + found.padded as u64).next_multiple_of(PAGE));
            // SAFETY: these pages are never given back, and nobody has a right to them.
            unsafe { mprotect(start as *mut c_void, (end - start) as usize, NO_ACCESS) };
        }
    }
}

/// Frees an allocation of a kind.
///
/// # Safety
/// Nobody uses it any more.
unsafe fn release(place: u64, kind: Kind) -> c_int {
    // Any context may be the current one, but not none.
    if let Err(error) = contexts::current() {
        return error;
    }
    let Some(freed) = MEMORY.remove(place, kind) else { return INVALID_VALUE };
    let mut all = FREED.lock().unwrap_or_else(PoisonError::into_inner);
    all.push_back((place - GUARD as u64, freed.padded + 2 * GUARD));
    let mut bytes: usize = all.iter().map(|(_, bytes)| bytes).sum();
    while bytes > QUARANTINE {
        let Some((start, size)) = all.pop_front() else { break };
        bytes -= size;
        if let Ok(layout) = Layout::from_size_align(size, ALIGN) {
            // SAFETY: it was allocated with this layout, and is known no more.
            unsafe { dealloc(start as *mut u8, layout) };
        }
    }
    SUCCESS
}

/// Returns whether an address is in what was freed, or in the guards of it.
fn is_freed(place: u64) -> bool {
    let all = FREED.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().any(|&(start, bytes)| (start..start + bytes as u64).contains(&place))
}

unsafe extern "C" fn allocate(place: *mut u64, bytes: usize) -> c_int {
    counts::note("cuMemAlloc");
    // SAFETY: as the caller's.
    unsafe { reserve(contexts::current(), place, bytes, Kind::Device) }
}

unsafe extern "C" fn allocate_managed(place: *mut u64, bytes: usize, _flags: c_uint) -> c_int {
    // SAFETY: as the caller's.
    unsafe { reserve(contexts::current(), place, bytes, Kind::Device) }
}

unsafe extern "C" fn allocate_host(place: *mut u64, bytes: usize, _flags: c_uint) -> c_int {
    counts::note("cuMemHostAlloc");
    // SAFETY: as the caller's.
    unsafe { reserve(contexts::current(), place, bytes, Kind::Host) }
}

unsafe extern "C" fn allocate_from_pool(
    place: *mut u64,
    bytes: usize,
    _pool: *mut c_void,
    stream: *const Stream,
) -> c_int {
    counts::note("cuMemAllocFromPoolAsync");
    // SAFETY: as the caller's.
    unsafe { reserve(context_of(stream), place, bytes, Kind::Device) }
}

unsafe extern "C" fn free(place: u64) -> c_int {
    // SAFETY: as the caller's.
    if place == 0 { SUCCESS } else { unsafe { release(place, Kind::Device) } }
}

unsafe extern "C" fn free_host(place: u64) -> c_int {
    // SAFETY: as the caller's.
    if place == 0 { SUCCESS } else { unsafe { release(place, Kind::Host) } }
}

unsafe extern "C" fn free_async(place: u64, stream: *const Stream) -> c_int {
    counts::note("cuMemFreeAsync");
    // SAFETY: as the caller's.
    number(unsafe { context_of(stream) }.map(|_| unsafe { free(place) }))
}

unsafe extern "C" fn register(place: u64, bytes: usize, _flags: c_uint) -> c_int {
    if place == 0 || bytes == 0 {
        return INVALID_VALUE;
    }
    let context = match contexts::current() {
        Ok(context) => context,
        Err(error) => return error,
    };
    if MEMORY.overlaps(place, bytes) {
        return ALREADY_REGISTERED;
    }
    // SAFETY: the caller gives memory that stays until it is unregistered.
    unsafe {
        MEMORY.add(place, Allocation { bytes, padded: bytes, kind: Kind::Registered, context: Some(context) })
    };
    SUCCESS
}

extern "C" fn unregister(place: u64) -> c_int {
    if let Err(error) = contexts::current() {
        return error;
    }
    if MEMORY.remove(place, Kind::Registered).is_some() { SUCCESS } else { NOT_REGISTERED }
}

unsafe extern "C" fn device_pointer(device: *mut u64, host: u64, _flags: c_uint) -> c_int {
    // SAFETY: the caller gives a place for an address.
    unsafe { give(device, host) }
}

unsafe extern "C" fn create_pool(pool: *mut u64, _properties: *const c_void) -> c_int {
    // SAFETY: the caller gives a place for a handle.
    unsafe { give(pool, 1) }
}

unsafe extern "C" fn pool_attribute(_pool: u64, _attribute: c_int, value: *mut u64) -> c_int {
    // SAFETY: the caller gives a place for a number.
    unsafe { give(value, 0) }
}

/// Returns whether bytes can be copied: in an allocation, all are, and else they are of the host, which is not known here.
fn can_copy(place: u64, bytes: usize, writes: bool) -> bool {
    match MEMORY.around(place, GUARD as u64) {
        Some((start, found)) => {
            let size = if writes { found.bytes } else { found.padded };
            place >= start && place.checked_add(bytes as u64).is_some_and(|end| end <= start + size as u64)
        }
        None => place != 0 && !is_freed(place),
    }
}

unsafe extern "C" fn copy(to: u64, from: u64, bytes: usize, stream: *const Stream) -> c_int {
    counts::note("cuMemcpyAsync");
    // SAFETY: as the caller's.
    if let Err(error) = unsafe { context_of(stream) } {
        return error;
    }
    if bytes > 0 && !(can_copy(to, bytes, true) && can_copy(from, bytes, false)) {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives memory of this size; one of both is of the host, which is not known here.
    unsafe { ptr::copy(from as *const u8, to as *mut u8, bytes) };
    SUCCESS
}

unsafe extern "C" fn copy_to_device(to: u64, from: *const u8, bytes: usize, stream: *const Stream) -> c_int {
    counts::note("cuMemcpyHtoDAsync");
    // SAFETY: as the caller's.
    if let Err(error) = unsafe { context_of(stream) } {
        return error;
    }
    if bytes > 0 && !(MEMORY.contains(to, bytes) && can_copy(from as u64, bytes, false)) {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives memory of this size; that of the host is not known here.
    unsafe { ptr::copy(from, to as *mut u8, bytes) };
    SUCCESS
}

/// Makes a function that fills memory with numbers of a size.
macro_rules! fill {
    ($($function:literal $name:ident: $ty:ty;)*) => {$(
        unsafe extern "C" fn $name(place: u64, value: $ty, count: usize, stream: *const Stream) -> c_int {
            counts::note($function);
            // SAFETY: as the caller's.
            if let Err(error) = unsafe { context_of(stream) } {
                return error;
            }
            let bytes = count.saturating_mul(size_of::<$ty>());
            if !MEMORY.contains(place, bytes) {
                return INVALID_VALUE;
            }
            for index in 0..count {
                // SAFETY: all of these bytes are in an allocation.
                unsafe { (place as *mut $ty).add(index).write_unaligned(value) };
            }
            SUCCESS
        }
    )*};
}
fill! {
    "cuMemsetD8Async" set_bytes: u8;
    "cuMemsetD16Async" set_halves: u16;
    "cuMemsetD32Async" set_words: u32;
}
