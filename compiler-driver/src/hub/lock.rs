//! The lock of a file that is being downloaded, which huggingface_hub takes too.

use std::{
    fs::{File, TryLockError},
    path::Path,
    thread,
    time::Duration,
};

use mlxcel_artifacts::Cancel;

use crate::hub::{cache::create_parent, error::HubError};

/// How often a lock that another process holds is tried.
const POLL: Duration = Duration::from_millis(100);

/// Takes a lock, which is held until the file is dropped. Calls `waiting` if another process holds it.
pub(super) fn lock(path: &Path, cancel: &Cancel, waiting: impl FnOnce()) -> Result<File, HubError> {
    create_parent(path)?;
    let file = File::options().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(HubError::io("write", path))?;
    let mut waiting = Some(waiting);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if cancel.is_cancelled() => return Err(HubError::Cancelled),
            Err(TryLockError::WouldBlock) => {
                if let Some(waiting) = waiting.take() {
                    waiting();
                }
                thread::sleep(POLL);
            }
            Err(TryLockError::Error(error)) => return Err(HubError::io("lock", path)(error)),
        }
    }
}
