//! The files and sockets that the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are not connections: of bundles, of the engine, and of the runtime.
const OTHERS: u64 = 64;

/// Raises the limit as far as the process may, and returns how many connections fit.
pub(crate) fn connections() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let room = current.unwrap_or(u64::MAX).saturating_sub(OTHERS).max(1);
    usize::try_from(room).unwrap_or(usize::MAX)
}
