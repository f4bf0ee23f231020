//! Keys and layers that families with mixtures of experts share.

use super::standard::{Standard, linear};
use crate::{
    error::Error,
    feed_forward::{Experts, Mlp},
    layers::Linear,
};

/// The number of experts, and of active experts per token.
pub(super) struct Count {
    pub(super) experts: usize,
    pub(super) active: usize,
}

/// Largest number of experts in all layers that is accepted. The largest models known have some 10^4.
const EXPERTS_MAX: usize = 1 << 16;

/// Returns the numbers of experts; `experts` and `active` if the keys are absent.
///
/// transformers accepts either key for the number of experts.
pub(super) fn count(model: &Standard<'_>, experts: usize, active: usize) -> Result<Count, Error> {
    let json = model.json;
    let key = if json.has("num_experts") { "num_experts" } else { "num_local_experts" };
    let experts = json.size(key, experts, EXPERTS_MAX / model.layers)?;
    Ok(Count { experts, active: json.size("num_experts_per_tok", active.min(experts), experts)? })
}

/// Names of an expert's layers in most families: gate, up and down.
pub(super) const LAYER_NAMES: [&str; 3] = ["gate_proj", "up_proj", "down_proj"];

/// Returns a mixture with separate tensors for each expert, `experts.0` and so on below `name`.
///
/// The pair is the intermediate width and the names of the layers.
pub(super) fn separate(
    model: &Standard<'_>,
    name: &str,
    count: &Count,
    (width, [gate, up, down]): (usize, [&str; 3]),
    normalized: bool,
) -> Experts {
    let hidden = model.hidden;
    let expert = |expert: usize| {
        let layer = |part, shape| linear(format!("{name}.experts.{expert}.{part}"), shape, false);
        let [gate, up] = [gate, up].map(|part| layer(part, [width, hidden]));
        model.gated_mlp(gate, up, layer(down, [hidden, width]))
    };
    Experts {
        normalized,
        ..mixture(linear(format!("{name}.gate"), [count.experts, hidden], false), count, expert)
    }
}

/// Returns the layer of one expert in a stack of `count`, `[count, …]`, given the shapes of one layer.
pub(super) fn expert_of_stack(all: &Linear, count: usize, expert: usize) -> Linear {
    let mut layer = all.clone();
    layer.weight.shape.insert(0, count);
    if let Some(bias) = &mut layer.bias {
        bias.shape.insert(0, count);
    }
    Linear { matrix: Some(expert), ..layer }
}

/// Returns a mixture of these experts, whose weights sum to one.
pub(super) fn mixture(
    router: Linear,
    Count { experts, active }: &Count,
    expert: impl Fn(usize) -> Mlp,
) -> Experts {
    Experts {
        router,
        active: *active,
        normalized: true,
        experts: (0..*experts).map(expert).collect(),
        shared: None,
    }
}

/// Returns whether each layer has a mixture: every `decoder_sparse_step`th one that is not in `mlp_only_layers`.
pub(super) fn sparse_layers(model: &Standard<'_>) -> Result<Vec<bool>, Error> {
    let json = model.json;
    let step = json.size("decoder_sparse_step", 1, 1 << 16)?;
    let dense = match json.value("mlp_only_layers") {
        None => vec![],
        Some(value) => {
            let listed =
                value.as_array().and_then(|layers| layers.iter().map(serde_json::Value::as_u64).collect());
            let listed: Option<Vec<u64>> = listed;
            listed.ok_or_else(|| json.invalid("mlp_only_layers", "null or a list of layers"))?
        }
    };
    let sparse = |layer: usize| !dense.contains(&(layer as u64)) && (layer + 1).is_multiple_of(step);
    Ok((0..model.layers).map(sparse).collect())
}
