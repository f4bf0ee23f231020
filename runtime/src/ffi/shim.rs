//! Safe types over the C shim in `native/`: devices and modules of IREE. Calls and tensors are beside it.
//!
//! Each type owns the object it stands for and keeps alive what that object depends on: a tensor its module, a
//! [`Module`] its program, its parameters and its device. None is `Send`: an IREE context must not be used from two
//! threads, and two of these values may share one.

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    fmt,
    ptr::{self, NonNull},
    rc::Rc,
    time::Duration,
};

use memmap2::Mmap;
use mlxcel_artifacts::Version;

use super::{
    error::{Error, check},
    raw,
    recording::Recording,
};
use crate::trace::Trace;

/// Requests the use of AMX from the system; returns whether it is granted.
pub(crate) fn request_amx() -> bool {
    // SAFETY: the call takes nothing, and only permits instructions that were not permitted before.
    unsafe { raw::shim_request_amx() != 0 }
}

/// What a driver tells of a device without opening it.
#[derive(Debug)]
pub(crate) struct FoundDevice {
    pub(crate) name: String,
    /// What tells it from the others: of an NVIDIA GPU, the UUID as `nvidia-smi -L` prints it.
    pub(crate) path: String,
    /// Of an NVIDIA GPU.
    pub(crate) compute_capability: Option<Version>,
    /// The newest CUDA version of an NVIDIA GPU's driver.
    pub(crate) cuda: Option<Version>,
    pub(crate) memory_bytes: Option<u64>,
}

impl FoundDevice {
    /// # Safety
    /// The strings of `found` must be alive.
    unsafe fn new(found: &raw::FoundDevice) -> Self {
        let [major, minor] = found.compute_capability;
        let version = |major: c_int, minor: c_int| {
            Some(Version(u32::try_from(major).ok()?, u32::try_from(minor).ok()?))
        };
        Self {
            // SAFETY: the caller's promise.
            name: unsafe { found.name.to_string() },
            // SAFETY: the caller's promise.
            path: unsafe { found.path.to_string() },
            compute_capability: version(major, minor).filter(|_| major > 0),
            // 12040 is version 12.4.
            cuda: version(found.cuda / 1000, found.cuda % 1000 / 10).filter(|_| found.cuda > 0),
            memory_bytes: Some(found.memory_bytes).filter(|&bytes| bytes > 0),
        }
    }
}

/// Lists a driver's devices.
pub(crate) fn devices(driver: &str) -> Result<Vec<FoundDevice>, Error> {
    unsafe extern "C" fn add(user: *mut c_void, found: *const raw::FoundDevice) {
        // SAFETY: `user` is the vector passed below, which nothing else uses during the call.
        let devices = unsafe { &mut *user.cast::<Vec<FoundDevice>>() };
        // SAFETY: the shim passes a device that lives until this function returns, with its strings.
        devices.push(unsafe { FoundDevice::new(&*found) });
    }
    let mut devices = Vec::<FoundDevice>::new();
    // SAFETY: the string outlives the call; `add` is given the vector it expects.
    check(unsafe {
        raw::shim_driver_list(raw::String::new(driver), add, ptr::from_mut(&mut devices).cast())
    })?;
    Ok(devices)
}

/// A device that modules run on.
#[derive(Debug, Clone)]
pub(crate) struct Device(Rc<DeviceHandle>);

/// The handle, and where what the device does is recorded.
#[derive(Debug)]
struct DeviceHandle(NonNull<raw::Device>, RefCell<Option<Recording>>);

impl Device {
    /// Opens the device of `driver` with this index, or else the driver's default.
    ///
    /// `threads` is the number of local-task's workers, by default one for each physical core. What the device does is
    /// recorded on `trace` from then on, if it is on.
    pub(crate) fn create(
        driver: &str,
        index: Option<u32>,
        threads: Option<usize>,
        trace: &Trace,
    ) -> Result<Self, Error> {
        let mut device = ptr::null_mut();
        // SAFETY: the string outlives the call and `device` is a place for the result.
        check(unsafe {
            raw::shim_device_create(
                raw::String::new(driver),
                index.map_or(-1, i64::from),
                threads.unwrap_or(0),
                i32::from(trace.is_on()),
                &raw mut device,
            )
        })?;
        let device = Self(Rc::new(DeviceHandle(created(device), RefCell::new(None))));
        if trace.is_on() && !device.record(trace)? {
            trace.note(format!("{driver} does not tell of its dispatches: these are the times of the host"));
        }
        Ok(device)
    }

    pub(super) fn raw(&self) -> *mut raw::Device {
        self.0.0.as_ptr()
    }

    /// Returns whether both are the same opened device. One that is opened twice has two, whose memory differs.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the workers of a local-task device; 1 for others.
    pub(crate) fn threads(&self) -> usize {
        // SAFETY: the handle is alive as long as `self`.
        unsafe { raw::shim_device_threads(self.0.0.as_ptr()) }
    }

    /// Checks that what the device has was not taken away. Inputs lie in memory that would be gone with it.
    ///
    /// # Errors
    /// It was.
    pub(crate) fn check(&self) -> Result<(), Error> {
        // SAFETY: the handle is alive as long as `self`.
        check(unsafe { raw::shim_device_check(self.0.0.as_ptr()) })
    }

    /// Returns the bytes of memory that are left, if its driver says; right after it was created, on the same thread.
    pub(crate) fn free_memory(&self) -> Option<u64> {
        // SAFETY: the handle is alive as long as `self`.
        Some(unsafe { raw::shim_device_free_memory(self.0.0.as_ptr()) }).filter(|&bytes| bytes > 0)
    }

    /// Returns the bytes of memory that were allocated so far, those that were freed again included.
    pub(crate) fn allocated(&self) -> u64 {
        // SAFETY: the handle is alive as long as `self`.
        unsafe { raw::shim_device_allocated(self.0.0.as_ptr()) }
    }

    /// Copies bytes from one place of its memory to another until that takes at least `least`. Returns the bytes that were copied,
    /// and the time.
    pub(crate) fn time_copies(&self, bytes: usize, least: Duration) -> Result<(u64, Duration), Error> {
        let (mut count, mut ns) = (0, 0);
        let least = i64::try_from(least.as_nanos()).unwrap_or(i64::MAX);
        // SAFETY: the device is alive, and there are places for the results.
        check(unsafe {
            raw::shim_device_time_copies(self.raw(), bytes, least, &raw mut count, &raw mut ns)
        })?;
        Ok((count * bytes as u64, Duration::from_nanos(ns.unsigned_abs())))
    }

    /// Starts recording what the device does. Returns whether it tells of its dispatches.
    pub(crate) fn record(&self, trace: &Trace) -> Result<bool, Error> {
        // SAFETY: the device is alive.
        let (recording, is_profiling) = unsafe { Recording::begin(self.0.0.as_ptr(), trace) }?;
        *self.0.1.borrow_mut() = Some(recording);
        Ok(is_profiling)
    }

    /// Returns the timeline of the device; it is off if the device is not recorded.
    pub(crate) fn trace(&self) -> Trace {
        self.0.1.borrow().as_ref().map_or_else(Trace::off, |recording| recording.trace().clone())
    }

    /// Takes what was recorded since the last time, if the device is recorded. Calls among it were of `call`.
    ///
    /// The buffers of IREE are limited, so that this follows each call.
    pub(super) fn collect(&self, call: &str) {
        if let Some(recording) = &*self.0.1.borrow() {
            // SAFETY: the device is alive, and its own recording is with it.
            unsafe { recording.collect(self.0.0.as_ptr(), call) };
        }
    }

    /// Stops recording, if the device is recorded.
    pub(crate) fn end_recording(&self) {
        if let Some(recording) = self.0.1.take() {
            // SAFETY: as above.
            unsafe { recording.end(self.0.0.as_ptr()) };
        }
    }
}

impl Drop for DeviceHandle {
    fn drop(&mut self) {
        if let Some(recording) = self.1.take() {
            // SAFETY: the device is alive, and its own recording is with it.
            unsafe { recording.end(self.0.as_ptr()) };
        }
        // SAFETY: the only owner frees the handle once. Modules hold a `Device` and are dropped before it.
        unsafe { raw::shim_device_free(self.0.as_ptr()) }
    }
}

/// Bytes of a module's parameters, by name.
pub(crate) trait ParameterSource: fmt::Debug {
    /// Returns the parameter's bytes, little-endian; they need not be aligned.
    fn parameter(&self, name: &str) -> Option<&[u8]>;
}

/// A program loaded on a device.
#[derive(Debug)]
pub(crate) struct Module(pub(super) Rc<ModuleHandle>);

#[derive(Debug)]
pub(super) struct ModuleHandle {
    pub(super) raw: NonNull<raw::Module>,
    pub(super) device: Device,
    // `raw` points into these.
    _program: Mmap,
    _parameters: Rc<dyn ParameterSource>,
}

impl Module {
    /// Returns another handle of the same module.
    pub(crate) fn share(&self) -> Self {
        Self(Rc::clone(&self.0))
    }

    /// Loads a program with the parameters of `source` that it may read, and runs its initializers.
    ///
    /// A program for the CPU is native code, and loading it runs it with the rights of this process.
    pub(crate) fn load(
        device: &Device,
        program: Mmap,
        source: Rc<dyn ParameterSource>,
        scope: &str,
        names: &[&str],
    ) -> Result<Self, Error> {
        let parameters = names
            .iter()
            .map(|&name| {
                let data =
                    source.parameter(name).ok_or_else(|| Error::invalid(format!("no tensor '{name}'")))?;
                Ok(raw::Parameter { name: raw::String::new(name), data: data.as_ptr(), length: data.len() })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let mut module = ptr::null_mut();
        // SAFETY: the device is alive. The shim copies the strings during the call. The program lies in a read-only
        // mapping, which does not move when its owner moves into the handle below. The parameters are borrowed from
        // the source, which is behind an `Rc` that the handle keeps: nobody can move it or borrow it mutably. Every
        // value that reaches IREE's objects holds that handle.
        check(unsafe {
            raw::shim_module_load(
                device.0.0.as_ptr(),
                program.as_ptr(),
                program.len(),
                raw::String::new(scope),
                parameters.as_ptr(),
                parameters.len(),
                &raw mut module,
            )
        })?;
        let raw = created(module);
        // What its initializers did.
        device.collect("");
        Ok(Self(Rc::new(ModuleHandle {
            raw,
            device: device.clone(),
            _program: program,
            _parameters: source,
        })))
    }
}

impl Drop for ModuleHandle {
    fn drop(&mut self) {
        // SAFETY: the only owner frees the handle once, before the device and the memory that it points into, which are
        // fields of `self`. Calls and tensors hold the handle, so that none is left.
        unsafe { raw::shim_module_free(self.raw.as_ptr()) }
    }
}

/// Returns the value of an out-parameter, which the shim sets if it reports no error.
pub(super) fn created<T>(pointer: *mut T) -> NonNull<T> {
    NonNull::new(pointer).expect("the shim returned neither a value nor an error")
}
