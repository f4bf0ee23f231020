//! Recordings of a device, whose events go to a timeline.

use std::{ffi::c_void, ptr};

use super::{
    error::{Error, check},
    raw,
};
use crate::trace::{Detail, DeviceEvents, Kind, Trace, Track};

/// A device that is recorded.
#[derive(Debug)]
pub(super) struct Recording {
    trace: Trace,
    /// The time of IREE's clock when the timeline began.
    origin: i64,
}

impl Recording {
    /// Begins the recording of a device that has none. Returns whether the device tells of its dispatches.
    ///
    /// # Safety
    /// The device must be alive.
    pub(super) unsafe fn begin(device: *mut raw::Device, trace: &Trace) -> Result<(Self, bool), Error> {
        let mut is_profiling = 0;
        // SAFETY: the caller's promise; `is_profiling` is a place for the result.
        check(unsafe { raw::shim_recording_begin(device, &raw mut is_profiling) })?;
        Ok((Self { trace: trace.clone(), origin: origin(trace) }, is_profiling != 0))
    }

    /// Adds an event to the timeline.
    fn add(&self, event: &raw::Event, call: &str, events: &mut DeviceEvents<'_>) {
        let time = |ns: i64| u64::try_from(ns - self.origin).unwrap_or(0);
        let (start, end) = (time(event.start_ns), time(event.end_ns));
        let bytes = Detail::Bytes(event.bytes);
        let mut add = |track, kind, name: &str, detail| events.event(track, kind, name, [start, end], detail);
        let queue = Some(Track::Queue);
        match event.kind {
            raw::EVENT_DISPATCH => {
                let busy = u64::try_from(event.busy_ns).unwrap_or(0);
                let detail = Detail::Dispatch { workgroups: event.workgroups, busy };
                // SAFETY: the shim passes a name that lives until the function that it calls returns.
                let name = unsafe { event.name.to_string() };
                add(Some(Track::Dispatches), Kind::Dispatch, &name, detail);
            }
            raw::EVENT_WORKGROUPS => {
                let worker = Track::Worker(u16::try_from(event.lane).unwrap_or(u16::MAX));
                // SAFETY: as above.
                let name = unsafe { event.name.to_string() };
                add(Some(worker), Kind::Workgroups, &name, Detail::Workgroups(event.count));
            }
            raw::EVENT_EXECUTE => add(queue, Kind::Queue, "commands", Detail::None),
            raw::EVENT_COPY => add(queue, Kind::Transfer, "copy", bytes),
            raw::EVENT_FILL => add(queue, Kind::Transfer, "fill", bytes),
            raw::EVENT_UPDATE => add(queue, Kind::Transfer, "update", bytes),
            raw::EVENT_READ_FILE => add(queue, Kind::Transfer, "read parameters", bytes),
            raw::EVENT_ALLOCA => add(queue, Kind::Allocation, "allocate", bytes),
            raw::EVENT_DEALLOCA => add(queue, Kind::Allocation, "free", bytes),
            raw::EVENT_BARRIER => add(queue, Kind::Queue, "barrier", Detail::None),
            raw::EVENT_CALL => add(None, Kind::Call, call, Detail::None),
            raw::EVENT_INPUTS => add(None, Kind::Transfer, "write arguments", bytes),
            raw::EVENT_WAIT => add(None, Kind::Wait, "wait for the device", Detail::None),
            raw::EVENT_READ => add(None, Kind::Transfer, "read", bytes),
            raw::EVENT_WRITE => add(None, Kind::Transfer, "write", bytes),
            raw::EVENT_ALLOCATE => add(None, Kind::Allocation, "allocate a buffer", bytes),
            raw::EVENT_BUFFER_BYTES => events.buffers(start, event.bytes),
            raw::EVENT_POOL_BYTES => events.pool(event.count, start, event.bytes),
            _ => events.lost(event.count),
        }
    }
}

/// Returns the time of IREE's clock when the timeline began.
///
/// Both clocks are the monotonic one, but that of Rust keeps its numbers to itself. The closest of a few readings of one
/// between two of the other is right to tens of nanoseconds.
fn origin(trace: &Trace) -> i64 {
    let reading = |_| {
        let before = trace.now();
        // SAFETY: the call takes nothing.
        let now = unsafe { raw::shim_now() };
        let width = trace.now() - before;
        (width, now - i64::try_from(before + width / 2).unwrap_or(0))
    };
    (0..16).map(reading).min().map_or(0, |(_, origin)| origin)
}

/// What the shim's callback needs.
struct Target<'a, 'r> {
    recording: &'a Recording,
    call: &'a str,
    events: &'a mut DeviceEvents<'r>,
}

unsafe extern "C" fn found(user: *mut c_void, event: *const raw::Event) {
    // SAFETY: `user` is the target that was passed with this function, which nothing else uses during the call.
    let target = unsafe { &mut *user.cast::<Target<'_, '_>>() };
    // SAFETY: the shim passes an event that lives until this function returns.
    target.recording.add(unsafe { &*event }, target.call, target.events);
}

type Collect = unsafe extern "C" fn(*mut raw::Device, raw::Found, *mut c_void) -> *mut raw::Error;

impl Recording {
    /// Returns where events go.
    pub(super) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Takes what was recorded since the last time. Calls among it were of `call`.
    ///
    /// # Safety
    /// The device must be alive, and the one that is recorded.
    pub(super) unsafe fn collect(&self, device: *mut raw::Device, call: &str) {
        let _span = self.trace.span("collect the recording");
        // SAFETY: the caller's promise.
        unsafe { self.take(device, call, raw::shim_recording_collect) };
    }

    /// Ends the recording of a device.
    ///
    /// # Safety
    /// The device must be alive, and the one that is recorded.
    pub(super) unsafe fn end(self, device: *mut raw::Device) {
        // SAFETY: the caller's promise.
        unsafe { self.take(device, "", raw::shim_recording_end) };
    }

    /// Takes what was recorded since the last time.
    ///
    /// # Safety
    /// The device must be alive, and the one that is recorded.
    unsafe fn take(&self, device: *mut raw::Device, call: &str, collect: Collect) {
        let mut result = Ok(());
        self.trace.add(|events| {
            if !call.is_empty() {
                events.name_function(call);
            }
            let mut target = Target { recording: self, call, events };
            // SAFETY: the caller's promise; `found` is given the target that it expects.
            result = check(unsafe { collect(device, found, ptr::from_mut(&mut target).cast()) });
        });
        if let Err(error) = result {
            self.trace.note(format!("records of the device are missing: {error}"));
        }
    }
}
