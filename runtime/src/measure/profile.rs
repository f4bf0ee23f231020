//! Where a session's time goes, by dispatch.

use std::time::Duration;

use mlxcel_artifacts::Cancel;

use super::bench::BenchCase;
use crate::{
    error::Error,
    session::{Dispatch, Session},
};

/// Where the time of some work went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// How long the work took.
    pub total: Duration,
    /// By function, the longest first.
    pub dispatches: Vec<Dispatch>,
}

impl Profile {
    /// Does the case's work once, watched.
    ///
    /// # Errors
    /// When the session keeps no profile, or as [`BenchCase::run`].
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
    fn a_session_without_profiles_says_so() {
        let case = BenchCase { work: BenchWork::Decode(1), depth: 0 };
        let mut session = ScriptedSession::new(64, 10, |_| vec![0.0; 10]);
        let error = Profile::record(&case, &mut session, &Cancel::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "scripted keeps no profile of dispatches\nhint: choose --device local-task"
        );
    }
}
