//! Where a session's time goes, by dispatch.

use std::time::Duration;

use mlxcel_artifacts::Cancel;

use super::bench::BenchCase;
use crate::{
    error::Error,
    session::{Dispatch, Session},
};

/// Time of some work, by dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The time of the whole work.
    pub total: Duration,
    /// Times by function, the longest first.
    pub dispatches: Vec<Dispatch>,
}

impl Profile {
    /// Runs the work of `case` once and records its dispatches.
    ///
    /// # Errors
    /// The session cannot record a profile, or [`BenchCase::run`] would fail.
    pub fn record(case: &BenchCase, session: &mut dyn Session, cancel: &Cancel) -> Result<Self, Error> {
        case.prepare(session)?;
        case.once(session, cancel)?;
        session.start_profile()?;
        let total = case.once(session, cancel);
        let mut dispatches = session.end_profile()?;
        dispatches.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        Ok(Self { total: total?, dispatches })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{measure::bench::BenchWork, scripted::ScriptedSession};

    #[test]
    fn a_session_that_cannot_record_is_refused() {
        let case = BenchCase { work: BenchWork::Decode(1), depth: 0 };
        let mut session = ScriptedSession::new(64, 10, |_| vec![0.0; 10]);
        let error = Profile::record(&case, &mut session, &Cancel::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "scripted keeps no profile of dispatches\nhint: choose --device local-task"
        );
    }
}
