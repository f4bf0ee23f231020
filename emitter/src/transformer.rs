//! From a description to a program.

mod best;
mod block;
mod calibration;
mod entry;
#[cfg(test)]
mod gpu_steps;
mod head;
#[cfg(test)]
mod predictions;
mod stage;
mod step_bytes;

use std::collections::BTreeSet;

use mlxcel_artifacts::entry::{MODULE_NAME, Parameter};
use mlxcel_models::{ModelConfig, Storage, StoredTensor, Weight};

use self::{calibration::collect, entry::emit_entry, step_bytes::step_bytes};
use crate::{
    collected::Collected, error::Error, form::Forms, layers::builder::KnownWeights, module::Module,
    packing::Packing, plan::Plan, program::Program,
};

/// Builds the program of `model` for `plan`. `storage_of` says how the checkpoint stores each weight.
///
/// # Errors
/// [`Error::Plan`] if the plan does not fit the model. Other errors mean that the description contradicts itself.
pub fn emit(
    model: &ModelConfig,
    plan: &Plan,
    storage_of: &dyn Fn(&Weight) -> Storage,
) -> Result<Program, Error> {
    let (module, packing) = build(model, plan, storage_of)?;
    let parameters = parameters(model, storage_of);
    let packed = if packing.has_functions() { Some(packing.finish()?) } else { None };
    let step_bytes = step_bytes(model, &parameters, packed.as_ref());
    Ok(Program {
        mlir: module.to_mlir()?,
        entries: plan.entries(model),
        parameters,
        packed,
        step_bytes,
        serving: Some(plan.serving(model)),
        dispatches: module.traffic(),
        loops_in_place: false,
        objects: module.objects(),
    })
}

/// Returns the tensors of the checkpoint, each once, in the order of use.
fn parameters(model: &ModelConfig, storage_of: &dyn Fn(&Weight) -> Storage) -> Vec<Parameter> {
    let (mut names, mut parameters) = (BTreeSet::new(), Vec::new());
    for weight in model.weights() {
        let Storage { tensors, coding, order: _ } = storage_of(weight);
        for StoredTensor { name, dtype, shape } in tensors {
            if names.insert(name.clone()) {
                // Schemes have one name for a tensor.
                let aliases = if coding.is_none() { model.aliases.of(&name) } else { vec![] };
                parameters.push(Parameter { aliases, ..Parameter::new(&name, dtype, &shape) });
            }
        }
    }
    parameters
}

/// Builds the module and its packing module.
pub(crate) fn build(
    model: &ModelConfig,
    plan: &Plan,
    storage_of: &dyn Fn(&Weight) -> Storage,
) -> Result<(Module, Packing), Error> {
    plan.validate(model)?;
    let mut module = Module::new(MODULE_NAME);
    let forms = Forms::new(model, plan, storage_of);
    let collected =
        if plan.calibration { collect(model, plan, storage_of, &forms)? } else { Collected::default() };
    let mut packing = Packing::new(collected);
    let weights = KnownWeights { storage_of, forms: &forms };
    for entry in &plan.entries(model) {
        let function = emit_entry(&mut module, &mut packing, model, plan, entry, weights)?;
        module.add(function);
    }
    Ok((module, packing))
}
