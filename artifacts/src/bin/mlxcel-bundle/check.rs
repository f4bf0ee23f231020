//! Whether a bundle runs on a machine, target by target.

use std::{fmt, fs, path::Path};

use anyhow::{Context as _, Result};
use mlxcel_artifacts::{Compatibility, DeviceClass, Driver, Machine, Manifest, best, judge, judge_on};
use serde::Serialize;

/// The judgements, and what a loader would run.
#[derive(Serialize)]
pub(crate) struct Checked<'m> {
    judgements: Vec<Compatibility<'m>>,
    /// The first place that something runs in, with the best target for it.
    runs: Option<Choice>,
    /// What the loader takes instead, if a device is there that only its driver knows of.
    may_run: Option<Choice>,
}

/// A target on a device.
#[derive(Serialize)]
struct Choice {
    target: String,
    device: String,
}

impl<'m> Checked<'m> {
    pub(crate) fn new(manifest: &'m Manifest, machine: &Machine, only: Option<Driver>) -> Self {
        let mut judgements = judge(manifest, machine);
        judgements.retain(|judgement| only.is_none_or(|driver| driver == judgement.artifact().driver));
        let places = machine.places().into_iter();
        let places = places.filter(|place| only.is_none_or(|driver| driver == place.driver()));
        let choices = places.filter_map(|place| {
            let judged = judge_on(manifest, machine, place);
            let best = best(&judged)?;
            let choice = Choice { target: best.target.to_owned(), device: place.to_string() };
            Some((place.preference(), choice))
        });
        let (possible, certain): (Vec<_>, Vec<_>) =
            choices.partition(|(preference, _)| *preference == DeviceClass::Possible);
        let (runs, may_run) = (certain.into_iter().next(), possible.into_iter().next());
        // At its best, a device that may be there is a GPU.
        let is_better = runs.as_ref().is_none_or(|(preference, _)| DeviceClass::Vulkan < *preference);
        let choice = |(_, choice)| choice;
        Self { judgements, runs: runs.map(choice), may_run: may_run.filter(|_| is_better).map(choice) }
    }

    pub(crate) fn runs(&self) -> bool {
        self.runs.is_some()
    }

    pub(crate) fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl fmt::Display for Checked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width =
            |text: fn(&Compatibility<'_>) -> usize| self.judgements.iter().map(text).max().unwrap_or(0);
        let (names, devices) = (width(|j| j.target.chars().count()), width(|j| j.device.chars().count()));
        for Compatibility { target, verdict, device, reasons, .. } in &self.judgements {
            let reasons = reasons.join("; ");
            writeln!(f, "{target:<names$}  {device:<devices$}  {verdict:<16}  {reasons}")?;
        }
        match (&self.runs, &self.may_run) {
            (Some(runs), None) => writeln!(f, "runs {runs}"),
            (Some(runs), Some(may)) => writeln!(f, "runs {runs}, or {may} and it is a GPU"),
            (None, Some(may)) => writeln!(
                f,
                "is not known to run: it runs {may}\n\
                 hint: mlxcel-run --device vulkan says on the machine whether there is, or compile it for that, e.g. with \
                 --target cpu"
            ),
            (None, None) => {
                writeln!(f, "runs nowhere on the machine: compile it for that, e.g. with --target cpu")
            }
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the target {} on {}", self.target, self.device)
    }
}

/// The machine that a file describes.
pub(crate) fn read_machine(path: &Path) -> Result<Machine> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| {
        format!(
            "{} describes no machine\nhint: `mlxcel-bundle machine` there writes what is expected",
            path.display()
        )
    })
}
