//! Contexts, and which of them is current.
//!
//! A context lasts as long as the process, so that its handle never is that of another one. Once it has ended, every call that uses
//! it returns the same error: that of a GPU that was lost, or that the context is destroyed.

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI32, Ordering::Relaxed},
    },
};

use super::codes::{CONTEXT_IS_DESTROYED, INVALID_CONTEXT, LAUNCH_FAILED, SUCCESS, give, number};

/// The context of a device.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) device: usize,
    /// What all calls return, or 0 while it lasts.
    ended: AtomicI32,
    /// Whether the GPU was lost, which is not known before somebody waits for it.
    is_lost: AtomicBool,
}

/// All that there were.
static CONTEXTS: Mutex<Vec<&'static Context>> = Mutex::new(Vec::new());

thread_local! {
    /// The contexts that are current on this thread, the last one before the others.
    static CURRENT: RefCell<Vec<Option<&'static Context>>> = const { RefCell::new(Vec::new()) };
}

/// Returns the address of a function.
pub(super) fn function(name: &str) -> Option<*const c_void> {
    Some(match name {
        "cuCtxGetCurrent" => get_current as *const c_void,
        "cuCtxSetCurrent" => set_current as *const c_void,
        "cuCtxPushCurrent" => push_current as *const c_void,
        "cuCtxPopCurrent" => pop_current as *const c_void,
        _ => return None,
    })
}

/// Returns the context that is current on this thread, unless it has ended.
pub(super) fn current() -> Result<&'static Context, c_int> {
    let found = CURRENT.with_borrow(|contexts| contexts.last().copied().flatten());
    found.ok_or(INVALID_CONTEXT)?.check()
}

/// Makes the context that `first` returns the current one, if this thread has none yet.
pub(super) fn ensure_current(first: impl FnOnce() -> Option<&'static Context>) {
    CURRENT.with_borrow_mut(|contexts| {
        if contexts.is_empty() {
            contexts.push(first());
        }
    });
}

impl Context {
    /// Makes a context of a device.
    pub(super) fn new(device: usize) -> &'static Self {
        let made = Box::leak(Box::new(Self {
            device,
            ended: AtomicI32::new(SUCCESS),
            is_lost: AtomicBool::new(false),
        }));
        CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner).push(made);
        made
    }

    /// Returns the context, unless it has ended.
    pub(super) fn check(&'static self) -> Result<&'static Self, c_int> {
        match self.ended.load(Relaxed) {
            SUCCESS => Ok(self),
            error => Err(error),
        }
    }

    /// Loses the GPU: what is launched from now on never runs.
    pub(super) fn lose(&self) {
        self.is_lost.store(true, Relaxed);
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Relaxed)
    }

    /// Returns the context when all its work is done, unless it has ended.
    pub(super) fn wait(&'static self) -> Result<&'static Self, c_int> {
        let found = self.check()?;
        if self.is_lost() {
            self.end(LAUNCH_FAILED);
            return Err(LAUNCH_FAILED);
        }
        Ok(found)
    }

    /// Ends the context: all calls return this error.
    pub(super) fn end(&self, error: c_int) {
        self.ended.store(error, Relaxed);
    }
}

unsafe extern "C" fn get_current(handle: *mut *const Context) -> c_int {
    let found = CURRENT.with_borrow(|contexts| contexts.last().copied().flatten());
    // SAFETY: the caller gives a place for a handle.
    unsafe { give(handle, found.map_or(ptr::null(), ptr::from_ref)) }
}

/// Returns the context of a handle, `None` for that of none.
fn of_handle(handle: *const Context) -> Result<Option<&'static Context>, c_int> {
    if handle.is_null() {
        return Ok(None);
    }
    let contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = contexts.iter().find(|context| ptr::eq(**context, handle)).copied();
    let found = found.ok_or(INVALID_CONTEXT)?;
    // One that was lost can be current: what is called next gets the error.
    if found.ended.load(Relaxed) == CONTEXT_IS_DESTROYED {
        Err(CONTEXT_IS_DESTROYED)
    } else {
        Ok(Some(found))
    }
}

extern "C" fn set_current(handle: *const Context) -> c_int {
    number(of_handle(handle).map(|context| {
        CURRENT.with_borrow_mut(|contexts| {
            contexts.pop();
            contexts.push(context);
        });
        SUCCESS
    }))
}

extern "C" fn push_current(handle: *const Context) -> c_int {
    number(of_handle(handle).map(|context| {
        CURRENT.with_borrow_mut(|contexts| contexts.push(context));
        SUCCESS
    }))
}

unsafe extern "C" fn pop_current(handle: *mut *const Context) -> c_int {
    let Some(popped) = CURRENT.with_borrow_mut(Vec::pop) else { return INVALID_CONTEXT };
    if handle.is_null() {
        return SUCCESS;
    }
    // SAFETY: the caller gives a place for a handle.
    unsafe { give(handle, popped.map_or(ptr::null(), ptr::from_ref)) }
}
