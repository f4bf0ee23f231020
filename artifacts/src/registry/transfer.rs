//! Progress, retries and patience of transfers.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use oci_client::errors::OciDistributionError;

use super::{
    client::Patience,
    failure::{describe, is_transient},
};

/// The number of attempts that may fail in a row without a byte transferred.
const MAX_ATTEMPTS: u32 = 5;

/// The wait before the second attempt is twice this; each further one doubles it.
const BACKOFF: Duration = Duration::from_millis(200);

/// The time between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

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

/// Makes attempts until one succeeds, or none is left.
pub(super) async fn retried<T, F>(
    progress: &mut dyn FnMut(TransferEvent),
    mut attempt: impl FnMut() -> F,
) -> Result<T, OciDistributionError>
where
    F: Future<Output = Result<T, OciDistributionError>>,
{
    let mut attempts = Attempts::default();
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => attempts.wait_after(error, progress).await?,
        }
    }
}

/// Waits for an upload of `bytes` bytes, of which `sent` counts those that were taken, and reports them.
///
/// # Errors
/// Those of the upload, or it stood still for too long.
pub(super) async fn uploaded<T>(
    upload: impl Future<Output = Result<T, OciDistributionError>>,
    (sent, bytes): (&AtomicU64, u64),
    patience: Patience,
    progress: &mut dyn FnMut(TransferEvent),
) -> Result<T, OciDistributionError> {
    tokio::pin!(upload);
    let (mut before, mut moved) = (0, Instant::now());
    loop {
        tokio::select! {
            done = &mut upload => return done,
            () = tokio::time::sleep(REPORT_INTERVAL) => {}
        }
        let now = sent.load(Ordering::Relaxed);
        progress(TransferEvent::Progress(now));
        if now != before {
            (before, moved) = (now, Instant::now());
        }
        let longest = if now < bytes { patience.byte } else { patience.answer };
        if moved.elapsed() > longest {
            let waits_for = if now < bytes { "took no byte" } else { "did not answer" };
            let text = format!("the registry {waits_for} for {:?}", longest);
            return Err(io::Error::new(io::ErrorKind::TimedOut, text).into());
        }
    }
}
