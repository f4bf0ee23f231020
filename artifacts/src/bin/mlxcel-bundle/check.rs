//! Whether a bundle runs on a machine, target by target.

use std::{fmt, fs, path::Path};

use anyhow::{Context as _, Result};
use mlxcel_artifacts::{Driver, Judgement, Machine, Manifest, Place, best, judge, judge_on};
use serde::Serialize;

/// The judgements, and what a loader would run.
#[derive(Serialize)]
pub(crate) struct Checked<'m> {
    judgements: Vec<Judgement<'m>>,
    /// In the order of preference the first device that something runs on, with the best target for it.
    runs: Option<Choice>,
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
        // As the runtime looks: CUDA, then Vulkan, then the CPU.
        let gpus_of = |driver| machine.gpus.iter().filter(move |gpu| gpu.driver == driver);
        let gpus = [Driver::Cuda, Driver::Vulkan].into_iter().flat_map(gpus_of).map(Place::Gpu);
        let mut places =
            gpus.chain([Place::Cpu]).filter(|place| only.is_none_or(|only| only == place.driver()));
        let runs = places.find_map(|place| {
            let judged = judge_on(manifest, machine, place);
            let best = best(&judged)?;
            Some(Choice { target: best.target.to_owned(), device: place.to_string() })
        });
        Self { judgements, runs }
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
        let width = |text: fn(&Judgement<'_>) -> usize| self.judgements.iter().map(text).max().unwrap_or(0);
        let (names, devices) = (width(|j| j.target.chars().count()), width(|j| j.device.chars().count()));
        for Judgement { target, verdict, device, reasons, .. } in &self.judgements {
            let reasons = reasons.join("; ");
            writeln!(f, "{target:<names$}  {device:<devices$}  {verdict:<16}  {reasons}")?;
        }
        match &self.runs {
            Some(Choice { target, device }) => writeln!(f, "runs the target {target} on {device}"),
            None => writeln!(f, "runs nowhere on the machine: compile it for that, e.g. with --target cpu"),
        }
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
