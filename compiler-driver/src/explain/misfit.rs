//! Options that a model does not permit.

use mlxcel_artifacts::Float;
use mlxcel_emitter::{Isa, Plan, Products};
use mlxcel_models::ModelConfig;

use crate::build::request::DEFAULT_CONTEXT;

/// Returns the default plan on CPUs with kernels.
pub(super) fn plan_with_kernels(config: &ModelConfig) -> Plan {
    let mut plan = Plan::new(config, Float::F32, DEFAULT_CONTEXT);
    plan.numerics.products = Products::Kernels(Isa::X86_64V3);
    plan
}

/// Returns why a plan does not fit the model, after `change` changed the default plan with kernels, which restrict the least.
pub(super) fn misfit(config: &ModelConfig, change: impl FnOnce(&mut Plan)) -> Option<String> {
    let mut plan = plan_with_kernels(config);
    change(&mut plan);
    let problem = plan.validate(config).err()?.to_string();
    problem.lines().next().map(str::to_owned)
}
