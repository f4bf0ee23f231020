//! Inputs and outputs of the compiler.

use std::path::PathBuf;

use mlxcel_artifacts::Digest;
use mlxcel_emitter::{Object, Packed, Program};

use crate::target::ResolvedTarget;

/// Flags of modules that pack weights, after those of the target.
///
/// The compiler would run what depends on no argument, mostly counters as large as a part of a weight, and store the results:
/// more code to compile and a file 40 times as large. Now the runtime computes them as it loads the module.
///
/// `--iree-opt-const-expr-hoisting=false` must not be added: a sort of a counter then reads memory that nothing has written
/// (IREE 3.13).
const PACKING_FLAGS: &[&str] = &["--iree-opt-const-eval=false"];

/// A compilation unit: a module with the objects it is linked with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit<'u> {
    /// The module's text.
    pub(crate) mlir: &'u str,
    /// Objects to link.
    pub(crate) objects: &'u [Object],
    /// Flags beside those of the target.
    pub(crate) flags: &'u [&'u str],
    /// Whether loops may update what they carry where it is.
    pub(crate) loops_in_place: bool,
}

impl Unit<'_> {
    /// Returns all flags of the compiler for a target.
    pub(crate) fn flags_for(&self, target: &ResolvedTarget) -> Vec<String> {
        target.flags.iter().cloned().chain(self.flags.iter().map(|&flag| flag.to_owned())).collect()
    }
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
        let Program { mlir, objects, packed, loops_in_place, .. } = program;
        let unit = Unit { mlir, objects, flags: &[], loops_in_place: *loops_in_place };
        let mut jobs = vec![Self { label: target.name.clone(), target, unit }];
        if let Some(packed) = packed {
            let Packed { mlir, objects, .. } = packed;
            let unit = Unit { mlir, objects, flags: PACKING_FLAGS, loops_in_place: false };
            jobs.push(Self { label: format!("{} packing", target.name), target, unit });
        }
        jobs
    }
}
