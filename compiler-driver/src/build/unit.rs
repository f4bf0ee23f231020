//! Inputs and outputs of the compiler.

use std::path::PathBuf;

use mlxcel_artifacts::{Digest, entry::Parameter};
use mlxcel_emitter::{Object, Program};

use crate::target::ResolvedTarget;

/// A compilation unit: a module with the objects it is linked with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit<'u> {
    /// The module's text.
    pub(crate) mlir: &'u str,
    /// Objects to link.
    pub(crate) objects: &'u [Object],
    /// Parameters that the module reads.
    pub(crate) parameters: &'u [Parameter],
}

/// A unit to compile for a target.
pub(crate) struct Job<'j> {
    /// Label for messages: the target's name, and which of its modules this is.
    pub(crate) label: String,
    pub(crate) target: &'j ResolvedTarget,
    pub(crate) unit: Unit<'j>,
}

/// The compiled module of a job.
pub(crate) struct CompiledModule {
    pub(crate) build_key: Digest,
    /// Path of the vmfb in the store.
    pub(crate) vmfb: PathBuf,
}

impl<'j> Job<'j> {
    /// Returns the jobs of a target: its program, then the module that packs the program's parameters if there is one.
    pub(crate) fn of_program(target: &'j ResolvedTarget, program: &'j Program) -> Vec<Self> {
        let Program { mlir, objects, parameters, packed, .. } = program;
        let unit = Unit { mlir, objects, parameters };
        let mut jobs = vec![Self { label: target.name.clone(), target, unit }];
        if let Some(packed) = packed {
            let unit = Unit { mlir: &packed.mlir, objects: &packed.objects, parameters: &[] };
            jobs.push(Self { label: format!("{} packing", target.name), target, unit });
        }
        jobs
    }
}
