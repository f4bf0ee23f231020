//! Streams and events. Work is done when it is submitted, so that neither has anything to wait for.

use std::{
    ffi::{c_int, c_uint, c_void},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use super::{
    codes::{INVALID_VALUE, SUCCESS, give, number},
    contexts::{self, Context},
    counts,
};

/// Returns the address of a function.
pub(super) fn function(name: &str) -> Option<*const c_void> {
    Some(match name {
        "cuStreamCreate" => create as *const c_void,
        "cuStreamDestroy" => destroy as *const c_void,
        "cuStreamSynchronize" => synchronize as *const c_void,
        "cuStreamWaitEvent" => wait_event as *const c_void,
        "cuLaunchHostFunc" => host_function as *const c_void,
        "cuEventCreate" => create_event as *const c_void,
        "cuEventDestroy" => destroy_event as *const c_void,
        "cuEventRecord" => record_event as *const c_void,
        "cuEventQuery" => query_event as *const c_void,
        "cuEventSynchronize" => synchronize_event as *const c_void,
        "cuEventElapsedTime" => elapsed as *const c_void,
        _ => return None,
    })
}

/// A stream of a context.
#[derive(Debug)]
pub(super) struct Stream {
    context: &'static Context,
}

/// Returns the context of a stream, unless it has ended. No stream is that of the current context.
///
/// # Safety
/// The stream was created and not destroyed, or it is null.
pub(super) unsafe fn context_of(stream: *const Stream) -> Result<&'static Context, c_int> {
    // SAFETY: the caller says so.
    unsafe { stream.as_ref() }.map_or_else(contexts::current, |stream| stream.context.check())
}

unsafe extern "C" fn create(handle: *mut *mut Stream, _flags: c_uint) -> c_int {
    let stream = |context| Box::into_raw(Box::new(Stream { context }));
    // SAFETY: the caller gives a place for a handle.
    number(contexts::current().map(|context| unsafe { give(handle, stream(context)) }))
}

unsafe extern "C" fn destroy(stream: *mut Stream) -> c_int {
    if stream.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a handle of `create`.
    if let Err(error) = unsafe { context_of(stream) } {
        return error;
    }
    // SAFETY: the caller uses it no more.
    drop(unsafe { Box::from_raw(stream) });
    SUCCESS
}

unsafe extern "C" fn synchronize(stream: *const Stream) -> c_int {
    counts::note("cuStreamSynchronize");
    // SAFETY: the caller gives a handle of `create`, or null.
    number(unsafe { context_of(stream) }.and_then(Context::wait).map(|_| SUCCESS))
}

unsafe extern "C" fn wait_event(stream: *const Stream, event: *const Event, _flags: c_uint) -> c_int {
    // SAFETY: the caller gives a handle of `create`, or null.
    let stream = unsafe { context_of(stream) };
    // SAFETY: the caller gives a handle of `create_event`, or null.
    number(stream.and_then(|_| unsafe { event_of(event) }).map(|_| SUCCESS))
}

unsafe extern "C" fn host_function(
    stream: *const Stream,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> c_int {
    let Some(function) = function else { return INVALID_VALUE };
    // SAFETY: the caller gives a handle of `create`, or null.
    if let Err(error) = unsafe { context_of(stream) } {
        return error;
    }
    // SAFETY: the caller gives a function that takes the data. What was submitted before is done.
    unsafe { function(data) };
    SUCCESS
}

/// A place in a stream.
#[derive(Debug)]
struct Event {
    context: &'static Context,
    /// When it was put there, when all before it had been done.
    time: Mutex<Instant>,
}

impl Event {
    fn time(&self) -> Instant {
        *self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an event, unless it is null or its context has ended.
///
/// # Safety
/// It was created and not destroyed, or it is null.
unsafe fn event_of<'e>(event: *const Event) -> Result<&'e Event, c_int> {
    // SAFETY: the caller says so.
    let event = unsafe { event.as_ref() }.ok_or(INVALID_VALUE)?;
    event.context.check().map(|_| event)
}

unsafe extern "C" fn create_event(handle: *mut *mut Event, _flags: c_uint) -> c_int {
    let event = |context| Box::into_raw(Box::new(Event { context, time: Mutex::new(Instant::now()) }));
    // SAFETY: the caller gives a place for a handle.
    number(contexts::current().map(|context| unsafe { give(handle, event(context)) }))
}

unsafe extern "C" fn destroy_event(event: *mut Event) -> c_int {
    // SAFETY: the caller gives a handle of `create_event`, or null.
    if let Err(error) = unsafe { event_of(event) } {
        return error;
    }
    // SAFETY: the caller uses it no more.
    drop(unsafe { Box::from_raw(event) });
    SUCCESS
}

unsafe extern "C" fn record_event(event: *const Event, stream: *const Stream) -> c_int {
    // SAFETY: the caller gives a handle of `create`, or null.
    let stream = unsafe { context_of(stream) };
    // SAFETY: the caller gives a handle of `create_event`, or null.
    number(stream.and_then(|_| unsafe { event_of(event) }).map(|event| {
        *event.time.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        SUCCESS
    }))
}

unsafe extern "C" fn query_event(event: *const Event) -> c_int {
    // SAFETY: the caller gives a handle of `create_event`, or null.
    number(unsafe { event_of(event) }.and_then(|event| event.context.wait()).map(|_| SUCCESS))
}

unsafe extern "C" fn synchronize_event(event: *const Event) -> c_int {
    counts::note("cuEventSynchronize");
    // SAFETY: the caller gives a handle of `create_event`, or null.
    number(unsafe { event_of(event) }.and_then(|event| event.context.wait()).map(|_| SUCCESS))
}

unsafe extern "C" fn elapsed(milliseconds: *mut f32, start: *const Event, end: *const Event) -> c_int {
    // SAFETY: the caller gives handles of `create_event`, or null.
    let (start, end) = unsafe { (event_of(start), event_of(end)) };
    number(start.and_then(|start| Ok((start.time(), end?.time()))).map(|(start, end)| {
        let passed = end.saturating_duration_since(start);
        // SAFETY: the caller gives a place for a number.
        unsafe { give(milliseconds, passed.as_secs_f32() * 1e3) }
    }))
}
