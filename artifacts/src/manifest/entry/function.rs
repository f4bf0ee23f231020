//! Functions of programs: what callers name, and what they do not see.

use super::{ArgumentKind, ArgumentSpec, Entry, ResultSpec};

/// Returns the name of a function's argument: `argN` if its program gives none.
#[must_use]
pub fn argument_name(name: Option<&str>, index: usize) -> String {
    name.map_or_else(|| format!("arg{index}"), ToOwned::to_owned)
}

/// Returns the name of a function's result: `resultN` if its program gives none.
#[must_use]
pub fn result_name(name: Option<&str>, index: usize) -> String {
    name.map_or_else(|| format!("result{index}"), ToOwned::to_owned)
}

impl Entry {
    /// Returns the name of the program's function.
    #[must_use]
    pub fn function_name(&self) -> &str {
        self.function.as_deref().unwrap_or(&self.name)
    }

    /// Returns the arguments that a caller gives, with their names: all but storages.
    pub fn inputs(&self) -> impl Iterator<Item = (String, &ArgumentSpec)> {
        let own = self.arguments.iter().enumerate().filter(|(_, spec)| !spec.is_storage());
        own.map(|(index, spec)| (argument_name(spec.name.as_deref(), index), spec))
    }

    /// Returns the results with their names.
    pub fn outputs(&self) -> impl Iterator<Item = (String, &ResultSpec)> {
        let all = self.results.iter().enumerate();
        all.map(|(index, spec)| (result_name(spec.name.as_deref(), index), spec))
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
