//! The contexts of devices that all of a program share, and what ends them.

use std::{
    ffi::{c_int, c_uint, c_void},
    ptr,
    sync::{
        LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::{
    allocations,
    codes::{CONTEXT_IS_DESTROYED, DEVICE_UNAVAILABLE, INVALID_CONTEXT, SUCCESS, give, number},
    contexts::{self, Context},
    device::device_index,
    settings::{AtLaunch, SETTINGS},
};

/// The context of a device that all of a program share.
#[derive(Debug)]
struct Primary {
    /// None before it is used, and after a reset.
    context: Option<&'static Context>,
    /// How often it was retained and not released, which a reset does not change.
    retained: usize,
}

/// A device.
#[derive(Debug)]
struct Device {
    primary: Mutex<Primary>,
    /// Launches until now, of kernels and of graphs.
    launches: AtomicU64,
}

static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| {
    let primary = || Mutex::new(Primary { context: None, retained: 0 });
    let device = |_| Device { primary: primary(), launches: AtomicU64::new(0) };
    (0..SETTINGS.devices).map(device).collect()
});
/// Returns the address of a function.
pub(super) fn function(name: &str) -> Option<*const c_void> {
    Some(match name {
        "cuDevicePrimaryCtxRetain" => retain as *const c_void,
        "cuDevicePrimaryCtxRelease" => release as *const c_void,
        "cuDevicePrimaryCtxReset" => reset as *const c_void,
        "cuDevicePrimaryCtxGetState" => state as *const c_void,
        _ => return None,
    })
}

/// Makes the context of the first device the current one, if this thread has none yet.
pub(super) fn ensure_current() {
    contexts::ensure_current(|| retained(0).ok());
}

/// Runs what is launched in a context, unless the launch is one that ends it.
pub(super) fn launch(context: &'static Context, run: impl FnOnce() -> c_int) -> c_int {
    let device = context.device;
    let launch = DEVICES[device].launches.fetch_add(1, Relaxed) + 1;
    let here = Some(AtLaunch { device, launch });
    if SETTINGS.lost == here {
        eprintln!("cuda emulator: device {device} is lost with launch {launch}");
        context.lose();
    }
    if SETTINGS.reset == here {
        eprintln!("cuda emulator: the context of device {device} is reset before launch {launch}");
        reset(c_int::try_from(device).unwrap_or_default());
    }
    // Launches return before they run. Whoever waits gets the error.
    number(context.check().map(|_| if context.is_lost() { SUCCESS } else { run() }))
}

/// Returns whether a device was lost, which a process that ends is the remedy for.
fn is_lost(device: usize) -> bool {
    let launches = DEVICES[device].launches.load(Relaxed);
    SETTINGS.lost.is_some_and(|lost| lost.device == device && lost.launch <= launches)
}

/// Returns the primary context of a device.
fn primary(device: c_int) -> Result<MutexGuard<'static, Primary>, c_int> {
    Ok(DEVICES[device_index(device)?].primary.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Retains the primary context of a device.
fn retained(device: c_int) -> Result<&'static Context, c_int> {
    let index = device_index(device)?;
    if is_lost(index) {
        return Err(DEVICE_UNAVAILABLE);
    }
    let mut primary = primary(device)?;
    primary.retained += 1;
    Ok(primary.context.get_or_insert_with(|| Context::new(index)))
}

unsafe extern "C" fn retain(handle: *mut *const Context, device: c_int) -> c_int {
    // SAFETY: the caller gives a place for a handle.
    number(retained(device).map(|context| unsafe { give(handle, ptr::from_ref(context)) }))
}

extern "C" fn release(device: c_int) -> c_int {
    number(primary(device).and_then(|mut primary| {
        primary.retained = primary.retained.checked_sub(1).ok_or(INVALID_CONTEXT)?;
        if primary.retained == 0 {
            primary.destroy();
        }
        Ok(SUCCESS)
    }))
}

extern "C" fn reset(device: c_int) -> c_int {
    number(primary(device).map(|mut primary| {
        primary.destroy();
        SUCCESS
    }))
}

impl Primary {
    fn destroy(&mut self) {
        if let Some(context) = self.context.take() {
            context.end(CONTEXT_IS_DESTROYED);
            allocations::take_away(context);
        }
    }
}

unsafe extern "C" fn state(device: c_int, flags: *mut c_uint, active: *mut c_int) -> c_int {
    number(primary(device).map(|primary| {
        // SAFETY: the caller gives places for both numbers.
        unsafe {
            give(flags, 0);
            give(active, c_int::from(primary.context.is_some()))
        }
    }))
}
