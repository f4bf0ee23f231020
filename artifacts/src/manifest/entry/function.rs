//! Functions of programs: what callers name, and what they do not see.

use super::{ArgumentKind, ArgumentSpec, Entry, ResultSpec};

impl Entry {
    /// Returns the name of the program's function.
    #[must_use]
    pub fn function_name(&self) -> &str {
        self.function.as_deref().unwrap_or(&self.name)
    }

    /// Returns the arguments that a caller gives, with their names: all but storages. One without a name is called `argN`.
    pub fn inputs(&self) -> impl Iterator<Item = (String, &ArgumentSpec)> {
        let own = self.arguments.iter().enumerate().filter(|(_, spec)| !spec.is_storage());
        own.map(|(index, spec)| (spec.name.clone().unwrap_or_else(|| format!("arg{index}")), spec))
    }

    /// Returns the results with their names. One without a name is called `resultN`.
    pub fn outputs(&self) -> impl Iterator<Item = (String, &ResultSpec)> {
        let all = self.results.iter().enumerate();
        all.map(|(index, spec)| (spec.name.clone().unwrap_or_else(|| format!("result{index}")), spec))
    }
}

impl ArgumentSpec {
    /// Returns whether it is a buffer for a result, which no caller gives.
    #[must_use]
    pub fn is_storage(&self) -> bool {
        matches!(self.kind, ArgumentKind::Storage { .. })
    }

    /// Returns the result that takes the argument's place in the next call.
    #[must_use]
    pub fn next_state(&self) -> Option<usize> {
        match self.kind {
            ArgumentKind::State { result } => Some(result),
            _ => None,
        }
    }
}

/// Returns whether the work of a call is unknown, which manifests do not say.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(super) fn is_unknown(work: &u64) -> bool {
    *work == 0
}
