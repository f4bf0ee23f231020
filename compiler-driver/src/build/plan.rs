//! The plan as the manifest records it.

use mlxcel_artifacts::{EmbeddingSpec, ModelSpec, Pooling as PoolingSpec, Window};
use mlxcel_emitter::Plan;
use mlxcel_models::{Head, ModelConfig, Pooling, PoolingKind};

/// Returns the manifest's description of `model` compiled by `plan`.
pub(crate) fn model_spec(model: &ModelConfig, plan: &Plan) -> ModelSpec {
    let mut elements = model.cache_elements_per_token();
    let position_bytes = plan.cache_type.bytes(elements.remove(&None).unwrap_or(0));
    let windows = elements.into_iter().filter_map(|(window, elements)| {
        Some(Window { positions: window?, position_bytes: plan.cache_type.bytes(elements) })
    });
    let embedding = match model.head {
        Head::Logits(_) => None,
        Head::Pooling(Pooling { kind, normalized }) => {
            Some(EmbeddingSpec { width: model.hidden, pooling: pooling_spec(kind), normalized })
        }
    };
    ModelSpec {
        precision: plan.precision,
        quant: plan.quant,
        cache_type: plan.cache_type,
        batch: None,
        context: plan.context,
        vocab: model.vocab,
        position_bytes,
        windows: windows.collect(),
        embedding,
    }
}

/// Returns the manifest's name of a kind of pooling.
fn pooling_spec(kind: PoolingKind) -> PoolingSpec {
    match kind {
        PoolingKind::Mean => PoolingSpec::Mean,
        PoolingKind::Cls => PoolingSpec::Cls,
    }
}
