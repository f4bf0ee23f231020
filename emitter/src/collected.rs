//! What collects moments of inputs, and which weights are rounded by them.

use std::collections::BTreeMap;

use mlxcel_artifacts::entry::{Calibration, Parameter};

use crate::graph::Function;

/// What collects moments.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) functions: Vec<Function>,
    pub(crate) calibration: Option<Calibration>,
    /// The moments by which a weight is rounded.
    pub(crate) moments: BTreeMap<String, Parameter>,
}

impl Collected {
    /// Returns the moments by which weights are rounded, if they are the same for all.
    pub(crate) fn moments_of(&self, weights: &[&str]) -> Option<Parameter> {
        let first = self.moments.get(*weights.first()?)?;
        weights.iter().all(|&weight| self.moments.get(weight) == Some(first)).then(|| first.clone())
    }
}
