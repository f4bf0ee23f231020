//! The programs of a build, from MLIR to the artifacts of a bundle.

use std::collections::{BTreeMap, btree_map::Entry};

use mlxcel_artifacts::{BundleWriter, Driver, Machine, Packing, TargetArtifact, entry::Parameter};
use mlxcel_emitter::{Numerics, Program};

use crate::{
    build::{
        event::{Event, Progress},
        ptx,
        source::Source,
        unit::{CompiledModule, Job},
    },
    error::Error,
    target::ResolvedTarget,
};

/// The targets of a build, and a program for each kind of them.
pub(crate) struct Programs {
    targets: Vec<ResolvedTarget>,
    /// By numerics and architecture, which determine what is emitted.
    by_kind: BTreeMap<(Numerics, String), Program>,
}

impl Programs {
    /// Resolves the targets for `machine` and emits their modules.
    pub(crate) fn emit(
        source: &dyn Source,
        machine: &Machine,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Error> {
        let targets = source.targets(machine);
        let mut by_kind = BTreeMap::new();
        for target in &targets {
            source.warnings(target).into_iter().for_each(|text| progress(Event::Warning(text)));
            if let Entry::Vacant(entry) = by_kind.entry(kind(target)) {
                entry.insert(source.emit(target, progress)?);
            }
        }
        Ok(Self { targets, by_kind })
    }

    /// Returns the jobs of all targets: a target's program comes before the module that packs its weights.
    pub(crate) fn jobs(&self) -> Vec<Job<'_>> {
        let of_target = |target| self.program(target).map(|program| Job::of_program(target, program));
        self.targets.iter().filter_map(of_target).flatten().collect()
    }

    /// Returns the parameters that are read from the checkpoint. They are the same for all targets.
    pub(crate) fn parameters(&self) -> Result<Vec<Parameter>, Error> {
        let program = self.by_kind.values().next().ok_or(Error::NoTarget)?;
        Ok(program.parameters.clone())
    }

    /// Adds the module of each of [`Self::jobs`] to a bundle. Returns the targets as the manifest describes them.
    pub(crate) fn write_modules(
        &self,
        jobs: &[Job<'_>],
        modules: Vec<CompiledModule>,
        writer: &mut BundleWriter,
    ) -> Result<BTreeMap<String, TargetArtifact>, Error> {
        let mut artifacts = BTreeMap::new();
        for (job, CompiledModule { build_key, vmfb }) in jobs.iter().zip(modules) {
            let Some(program) = self.program(job.target) else { continue };
            let ResolvedTarget { name, driver, arch, cpu_features, flags, numerics: _ } = job.target.clone();
            let gpu = if driver == Driver::Cuda { ptx::needs(&vmfb)? } else { None };
            let vmfb = writer.add_file(&vmfb)?;
            match artifacts.entry(name) {
                Entry::Vacant(entry) => {
                    let Program { entries, step_bytes, serving, dispatches, .. } = program.clone();
                    entry.insert(TargetArtifact {
                        driver,
                        arch,
                        cpu_features,
                        gpu,
                        flags,
                        build_key,
                        vmfb,
                        entries,
                        step_bytes,
                        serving,
                        rewind: None,
                        dispatches,
                        packing: None,
                    });
                }
                // The target's second job is its packing module.
                Entry::Occupied(mut entry) => {
                    let packed = program.packed.as_ref();
                    entry.get_mut().packing = Some(Packing {
                        build_key,
                        vmfb,
                        weights: None,
                        made_from: BTreeMap::new(),
                        calibrated_by: None,
                        calibration: packed.and_then(|packed| packed.calibration.clone()),
                        steps: packed.map(|packed| packed.steps.clone()).unwrap_or_default(),
                    });
                }
            }
        }
        Ok(artifacts)
    }

    fn program(&self, target: &ResolvedTarget) -> Option<&Program> {
        self.by_kind.get(&kind(target))
    }
}

/// Returns what determines the program of a target.
fn kind(target: &ResolvedTarget) -> (Numerics, String) {
    (target.numerics, target.arch.clone())
}
