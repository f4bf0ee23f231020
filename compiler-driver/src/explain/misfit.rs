//! Options that a model does not permit.

use mlxcel_artifacts::Float;
use mlxcel_emitter::{Isa, Plan, Products};
use mlxcel_models::ModelConfig;

use crate::build::request::DEFAULT_CONTEXT;

/// Returns why a plan does not fit the model, after `change` changed the default plan.
pub(super) fn misfit(config: &ModelConfig, change: impl FnOnce(&mut Plan)) -> Option<String> {
    let mut plan = Plan::new(config, Float::F32, DEFAULT_CONTEXT);
    // Some targets have kernels, and kernels restrict the least.
    plan.numerics.products = Products::Kernels(Isa::X86_64V3);
    change(&mut plan);
    let problem = plan.validate(config).err()?.to_string();
    problem.lines().next().map(str::to_owned)
}
