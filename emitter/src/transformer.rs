//! From a description to a program.

mod best;
mod block;
mod entry;
mod head;
mod step_bytes;

use mlxcel_artifacts::entry::{MODULE_NAME, Parameter};
use mlxcel_models::ModelConfig;
use safetensors::Dtype;

use self::{entry::emit_entry, step_bytes::step_bytes};
use crate::{error::Error, module::Module, packing::Packing, plan::Plan, program::Program};

/// Builds the program of `model` for `plan`. `dtype_of` gives the element type of each weight in the checkpoint.
///
/// # Errors
/// [`Error::Plan`] if the plan does not fit the model. Other errors mean that the description contradicts itself.
pub fn emit(model: &ModelConfig, plan: &Plan, dtype_of: &dyn Fn(&str) -> Dtype) -> Result<Program, Error> {
    let (module, packing) = build(model, plan, dtype_of)?;
    let parameters = model.weights().into_iter().map(|weight| Parameter {
        aliases: model.aliases.of(&weight.name),
        ..Parameter::new(&weight.name, dtype_of(&weight.name), &weight.shape)
    });
    let parameters: Vec<_> = parameters.collect();
    let packed = if packing.has_functions() { Some(packing.finish()?) } else { None };
    let step_bytes = step_bytes(model, &parameters, packed.as_ref());
    Ok(Program {
        mlir: module.to_mlir()?,
        entries: plan.entries(model),
        parameters,
        packed,
        step_bytes,
        serving: plan.serving(model),
        dispatches: module.traffic(),
        objects: module.objects(),
    })
}

/// Builds the module and its packing module.
pub(crate) fn build(
    model: &ModelConfig,
    plan: &Plan,
    dtype_of: &dyn Fn(&str) -> Dtype,
) -> Result<(Module, Packing), Error> {
    plan.validate(model)?;
    let (mut module, mut packing) = (Module::new(MODULE_NAME), Packing::new());
    for entry in &plan.entries(model) {
        let function = emit_entry(&mut module, &mut packing, model, plan, entry, dtype_of)?;
        module.add(function);
    }
    Ok((module, packing))
}
