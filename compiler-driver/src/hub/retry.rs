//! Repeats requests that fail for reasons that pass.

use std::{
    thread,
    time::{Duration, Instant},
};

use mlxcel_artifacts::Cancel;

use crate::hub::error::HubError;

/// The waits before a request is repeated. They begin again when it got further than before.
const WAITS: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_millis(900), Duration::from_millis(2700)];

/// How often the token is looked at.
const POLL: Duration = Duration::from_millis(50);

/// Repeats `request` while `passes` says of its error that it may succeed a little later. `reached` says how far it got.
pub(super) fn repeated<T>(
    cancel: &Cancel,
    passes: impl Fn(&HubError) -> bool,
    reached: impl Fn() -> u64,
    mut request: impl FnMut() -> Result<T, HubError>,
) -> Result<T, HubError> {
    let (mut attempts, mut furthest) = (0, reached());
    loop {
        match request() {
            Err(error) if passes(&error) => {
                let now = reached();
                if now > furthest {
                    (attempts, furthest) = (0, now);
                }
                let Some(&wait) = WAITS.get(attempts) else { return Err(error) };
                attempts += 1;
                let start = Instant::now();
                while start.elapsed() < wait && !cancel.is_cancelled() {
                    thread::sleep(POLL);
                }
            }
            result => return result,
        }
        if cancel.is_cancelled() {
            return Err(HubError::Cancelled);
        }
    }
}
