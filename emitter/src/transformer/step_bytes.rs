//! How much a decode step reads.

use std::{collections::BTreeMap, slice};

use mlxcel_artifacts::entry::Parameter;
use mlxcel_models::{Embedding, FeedForward, Head, Mlp, ModelConfig};

use crate::packing::Packed;

/// Returns the bytes of parameters that a decode step reads: one row of each table, the active experts of a mixture, and all
/// other weights.
pub(super) fn step_bytes(model: &ModelConfig, parameters: &[Parameter], packed: Option<&Packed>) -> u64 {
    let Embedding { weight, positions, token_types, .. } = &model.embedding;
    let is_head = matches!(&model.head, Head::Logits(head) if head.tied);
    let tables = [(!is_head).then_some(weight), positions.as_ref(), token_types.as_ref()];
    let bytes = |parameters: &[Parameter]| parameters.iter().filter_map(Parameter::bytes).sum::<usize>();
    let mut expert_weights = BTreeMap::new();
    for block in &model.blocks {
        if let FeedForward::Experts(layer) = &block.mlp.layer {
            let linears = layer.experts.iter().flat_map(Mlp::linears);
            let weights = linears.map(|linear| linear.weight.name.as_str());
            expert_weights.extend(weights.map(|name| (name, (layer.active, layer.experts.len()))));
        }
    }
    let read = |name: &str, parameters: &[Parameter]| {
        let table = tables.into_iter().flatten().find(|table| table.name == name);
        let rows = table.and_then(|table| table.shape.first().copied()).unwrap_or(1);
        let (active, experts) = expert_weights.get(name).copied().unwrap_or((1, 1));
        (bytes(parameters) / rows.max(1) * active / experts.max(1)) as u64
    };
    match packed {
        None => parameters.iter().map(|one| read(&one.name, slice::from_ref(one))).sum(),
        Some(Packed { steps, first_weights, .. }) => {
            first_weights.iter().zip(steps).map(|(name, step)| read(name, &step.results)).sum()
        }
    }
}
