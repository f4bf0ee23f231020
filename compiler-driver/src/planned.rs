//! A plan as a bundle's manifest has it.

use mlxcel_artifacts::{EmbeddingSpec, ModelSpec, Window};
use mlxcel_models::{Head, ModelConfig, Pooling};

use crate::target::float_name;

/// What the manifest says of `plan` for `model`.
pub(crate) fn planned(model: &ModelConfig, plan: &mlxcel_emitter::Plan) -> ModelSpec {
    let mut elements = model.cache_elements_per_token();
    let position_bytes = plan.kv.bytes(elements.remove(&None).unwrap_or(0));
    let windows = elements.into_iter().filter_map(|(window, elements)| {
        Some(Window { positions: window?, position_bytes: plan.kv.bytes(elements) })
    });
    let embedding = match model.head {
        Head::Logits(_) => None,
        Head::Pooling(Pooling { kind, normalised }) => {
            Some(EmbeddingSpec { width: model.hidden, pooling: kind.to_string(), normalised })
        }
    };
    ModelSpec {
        precision: float_name(plan.precision),
        quant: plan.quant.to_string(),
        kv: plan.kv.to_string(),
        batch: plan.batch,
        context: plan.context,
        vocab: model.vocab,
        position_bytes,
        windows: windows.collect(),
        embedding,
    }
}
