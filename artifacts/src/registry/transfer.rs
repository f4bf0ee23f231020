//! Progress and retries of transfers.

use std::time::Duration;

use oci_client::errors::OciDistributionError;

use super::failure::{describe, is_transient};

/// The number of attempts that may fail in a row without a byte transferred.
const MAX_ATTEMPTS: u32 = 5;

/// The wait before the second attempt is twice this; each further one doubles it.
const BACKOFF: Duration = Duration::from_millis(200);

/// What happens during a transfer, for progress displays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferEvent {
    /// The transfer of a file begins.
    Started {
        /// What the file is, such as `vmfb of target cpu`.
        what: String,
        /// The file's length.
        bytes: u64,
    },
    /// This many bytes of the file have arrived. Files that the destination already has arrive at once.
    Progress(u64),
    /// The transfer failed and resumes.
    Retrying {
        /// Why it failed.
        problem: String,
    },
}

/// Counts attempts that transferred nothing.
#[derive(Default)]
pub(super) struct Attempts(u32);

impl Attempts {
    /// Waits before the next attempt. Returns `error` if there is to be none.
    pub(super) async fn wait_after(
        &mut self,
        error: OciDistributionError,
        progress: &mut dyn FnMut(TransferEvent),
    ) -> Result<(), OciDistributionError> {
        self.0 += 1;
        if self.0 >= MAX_ATTEMPTS || !is_transient(&error) {
            return Err(error);
        }
        progress(TransferEvent::Retrying { problem: describe(&error) });
        tokio::time::sleep(BACKOFF * (1 << self.0)).await;
        Ok(())
    }
}
