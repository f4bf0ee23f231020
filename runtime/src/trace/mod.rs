//! Timelines of what host and device did.
//!
//! A [`Trace`] is given to what loads a bundle ([`LoadOptions::trace`](crate::LoadOptions)). From then on the device's
//! calls, dispatches, transfers, waits and allocations are events of it, and [`Trace::span`] adds the phases of the
//! program. A trace that is [off](Trace::off), as by default, costs a comparison where an event would be.

mod chrome;
#[cfg_attr(not(feature = "iree"), allow(dead_code, reason = "devices alone make some of the events"))]
mod event;
mod file;
mod lanes;
mod picture;
#[cfg_attr(not(feature = "iree"), allow(dead_code, reason = "devices alone make some of the events"))]
mod recorder;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use event::Event;
#[cfg(any(feature = "iree", test))]
pub(crate) use event::Track;
pub use event::{Detail, Dispatch, Kind};
pub use file::TraceFile;
use recorder::Recorder;

/// The most events of a timeline, about 120 bytes of a file each. Later ones are left out, and the file says so.
const LIMIT: usize = 1 << 20;

/// A timeline that is being recorded, or none. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Trace(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    began: Instant,
    recorder: Mutex<Recorder>,
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trace {
    /// Begins a timeline.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(LIMIT)
    }

    /// Returns the trace that records nothing.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }

    /// Begins a timeline with at most so many events. Sums of dispatches have no limit.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self(Some(Arc::new(Shared { began: Instant::now(), recorder: Mutex::new(Recorder::new(limit)) })))
    }

    /// Returns whether anything is recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a phase of the calling thread. It ends when the value is dropped.
    pub fn span(&self, name: &'static str) -> Span {
        self.span_with(|| name.into())
    }

    /// Begins a phase whose name is made only if it is recorded.
    pub fn span_with(&self, name: impl FnOnce() -> Cow<'static, str>) -> Span {
        let open = self.0.as_ref().map(|shared| Open {
            start: shared.now(),
            shared: shared.clone(),
            name: name(),
            detail: Detail::None,
        });
        Span { open }
    }

    /// Notes something that whoever reads the timeline should know.
    pub fn note(&self, text: impl Into<String>) {
        if let Some(shared) = &self.0 {
            shared.lock().note(text.into());
        }
    }

    /// Returns what was noted, and whether anything was left out.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |shared| shared.lock().all_notes())
    }

    /// Names the device whose events come.
    #[cfg(any(feature = "iree", test))]
    pub(crate) fn name_device(&self, name: &str) {
        if let Some(shared) = &self.0 {
            shared.lock().device = Some(name.to_owned());
        }
    }

    /// Returns calls and time of all dispatches so far, by function.
    pub(crate) fn dispatches(&self) -> Vec<Dispatch> {
        self.0.as_ref().map_or_else(Vec::new, |shared| shared.lock().dispatches())
    }

    /// Returns the number of records that the device lost.
    pub(crate) fn lost(&self) -> u64 {
        self.0.as_ref().map_or(0, |shared| shared.lock().lost)
    }

    /// Adds events of a device, with one lock for all of them.
    #[cfg(any(feature = "iree", test))]
    pub(crate) fn add(&self, add: impl FnOnce(&mut DeviceEvents<'_>)) {
        if let Some(shared) = &self.0 {
            let mut recorder = shared.lock();
            let thread = recorder.thread();
            add(&mut DeviceEvents { recorder: &mut recorder, thread, function: None });
        }
    }

    /// Returns the time since the timeline began, in nanoseconds.
    #[cfg(feature = "iree")]
    pub(crate) fn now(&self) -> u64 {
        self.0.as_ref().map_or(0, |shared| shared.now())
    }
}

/// Takes the events of a device.
#[cfg(any(feature = "iree", test))]
pub(crate) struct DeviceEvents<'r> {
    recorder: &'r mut Recorder,
    thread: event::Track,
    /// The number of the name of the function that makes dispatches.
    function: Option<u32>,
}

#[cfg(any(feature = "iree", test))]
impl DeviceEvents<'_> {
    /// Names the function that the dispatches from now on are of.
    pub(crate) fn name_function(&mut self, name: &str) {
        self.function = Some(self.recorder.name(name));
    }

    /// Adds an event. Without a track, it is one of the calling thread.
    pub(crate) fn event(
        &mut self,
        track: Option<event::Track>,
        kind: Kind,
        name: &str,
        [start, end]: [u64; 2],
        detail: Detail,
    ) {
        let name = self.recorder.name(name);
        let track = track.unwrap_or(self.thread);
        let event = Event { track, kind, name, start, duration: end.saturating_sub(start), detail };
        if kind == Kind::Dispatch {
            self.recorder.add_dispatch(event, self.function);
        } else {
            self.recorder.add(event);
        }
    }

    /// Adds the bytes of buffers at a moment.
    pub(crate) fn buffers(&mut self, at: u64, bytes: u64) {
        self.recorder.count_buffers(at, bytes);
    }

    /// Adds the bytes of a pool at a moment.
    pub(crate) fn pool(&mut self, pool: u64, at: u64, bytes: u64) {
        self.recorder.count_pool(pool, at, bytes);
    }

    /// Adds a number of records that the device lost.
    #[cfg(feature = "iree")]
    pub(crate) fn lost(&mut self, records: u64) {
        self.recorder.lose(records);
    }
}

/// A phase that has begun. Dropping it ends the phase.
#[derive(Debug)]
#[must_use = "the phase ends when this is dropped"]
pub struct Span {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    shared: Arc<Shared>,
    start: u64,
    name: Cow<'static, str>,
    detail: Detail,
}

impl Span {
    /// Gives the phase another name.
    pub fn rename(&mut self, name: &'static str) {
        if let Some(open) = &mut self.open {
            open.name = name.into();
        }
    }

    /// Sets the numbers of the phase.
    pub fn set(&mut self, detail: Detail) {
        if let Some(open) = &mut self.open {
            open.detail = detail;
        }
    }

    /// Ends the phase without recording it.
    pub fn discard(mut self) {
        self.open = None;
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(Open { shared, start, name, detail }) = self.open.take() else { return };
        let duration = shared.now().saturating_sub(start);
        let mut recorder = shared.lock();
        let (name, track) = (recorder.name(&name), recorder.thread());
        recorder.add(Event { track, kind: Kind::Phase, name, start, duration, detail });
    }
}
