//! `check` and `machine`: whether a bundle runs on a machine.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::Args;
use mlxcel_artifacts::{
    Compatibility, DeviceClass, Driver, Machine, Manifest, best_target, check_targets, check_targets_at,
};
use serde::Serialize;

use crate::{
    arguments::{Source, StoreArguments},
    outcome::Outcome,
    registry::connect,
};

/// Check whether a bundle runs on this machine
///
/// Lists every target with a verdict and its reasons. Exits with 1 if no target is certain to run.
#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    source: Source,
    /// BUNDLE is an address in a registry: reads the manifest there, and pulls nothing
    #[arg(long)]
    remote: bool,
    /// With --remote: use HTTP without TLS; always used for registries on this machine
    #[arg(long, requires = "remote")]
    plain_http: bool,
    /// Consider only devices of this driver: local, cuda, vulkan, hip or metal
    #[arg(long, value_name = "DRIVER")]
    device: Option<Driver>,
    /// Check another machine, described by a file that `mlxcel-bundle machine` wrote there
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        let machine = self.machine.as_deref().map_or_else(|| Ok(this_machine()), read_machine)?;
        let manifest = if self.remote {
            connect(&self.source.bundle.to_string_lossy(), self.plain_http)?.manifest()?
        } else {
            self.source.open_without_weights(store)?.manifest().clone()
        };
        let report = Report::new(&manifest, &machine, self.device);
        let text = if self.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() };
        Ok(Outcome { text, status: u8::from(report.runs.is_none()) })
    }
}

/// Describes this machine as JSON.
pub(crate) fn describe_machine() -> Result<Outcome> {
    Ok((serde_json::to_string_pretty(&this_machine())? + "\n").into())
}

/// Detects this machine, with the Vulkan drivers that the environment's variables select.
fn this_machine() -> Machine {
    let driver_files = env::var_os("VK_DRIVER_FILES").or_else(|| env::var_os("VK_ICD_FILENAMES"));
    Machine::host_with_gpus(driver_files.as_deref())
}

/// Reads a file that [`describe_machine`] wrote.
fn read_machine(path: &Path) -> Result<Machine> {
    let shown = path.display();
    let hint = format!("hint: on the machine to check, run `mlxcel-bundle machine > {shown}`");
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}\n{hint}"))?;
    serde_json::from_str(&text).with_context(|| format!("{shown} does not describe a machine\n{hint}"))
}

/// The targets of a bundle on a machine.
#[derive(Serialize)]
struct Report<'m> {
    #[serde(rename = "judgements")]
    targets: Vec<Compatibility<'m>>,
    /// The best target on the best device that certainly exists.
    runs: Option<Choice>,
    /// The target that the runtime takes instead if a device exists that only its driver can list.
    may_run: Option<Choice>,
}

/// A target on a device.
#[derive(Serialize)]
struct Choice {
    target: String,
    device: String,
}

impl<'m> Report<'m> {
    fn new(manifest: &'m Manifest, machine: &Machine, only: Option<Driver>) -> Self {
        let mut targets = check_targets(manifest, machine);
        targets.retain(|target| only.is_none_or(|driver| driver == target.artifact().driver));
        let places = machine.places().into_iter();
        let places = places.filter(|place| only.is_none_or(|driver| driver == place.driver()));
        let choices = places.filter_map(|place| {
            let targets = check_targets_at(manifest, machine, place);
            let best = best_target(&targets)?;
            let choice = Choice { target: best.target.to_owned(), device: place.to_string() };
            Some((place.device_class(), choice))
        });
        let (possible, certain): (Vec<_>, Vec<_>) =
            choices.partition(|(class, _)| *class == DeviceClass::Possible);
        let (runs, may_run) = (certain.into_iter().next(), possible.into_iter().next());
        // A possible device is a GPU at best.
        let may_be_better = runs.as_ref().is_none_or(|(class, _)| DeviceClass::Vulkan < *class);
        let choice = |(_, choice)| choice;
        Self { targets, runs: runs.map(choice), may_run: may_run.filter(|_| may_be_better).map(choice) }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: fn(&Compatibility<'_>) -> usize| self.targets.iter().map(text).max().unwrap_or(0);
        let (names, devices) = (width(|c| c.target.chars().count()), width(|c| c.device.chars().count()));
        for Compatibility { target, verdict, device, reasons, .. } in &self.targets {
            let reasons = reasons.join("; ");
            writeln!(f, "{target:<names$}  {device:<devices$}  {verdict:<16}  {reasons}")?;
        }
        match (&self.runs, &self.may_run) {
            (Some(runs), None) => writeln!(f, "runs {runs}"),
            (Some(runs), Some(may_run)) => writeln!(f, "runs {runs}, or {may_run} and it is a GPU"),
            (None, Some(may_run)) => writeln!(
                f,
                "may run {may_run}\n\
                 hint: find out with `mlxcel-run --device vulkan` on that machine, or compile for its CPU with \
                 `mlxcel-compile --target cpu`"
            ),
            (None, None) => writeln!(
                f,
                "no target runs on the machine\n\
                 hint: compile for its CPU with `mlxcel-compile --target cpu`"
            ),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "target {} on {}", self.target, self.device)
    }
}
