//! What families with mixtures of experts share.

use super::standard::{Standard, linear};
use crate::{Error, Experts, Linear, Mlp};

/// How many experts there are, and how many of them compute a token.
pub(super) struct Count {
    pub(super) experts: usize,
    pub(super) active: usize,
}

/// More experts than this, in all layers, and the description is a mistake: the largest models known have some 10^4.
const EXPERTS_MAX: usize = 1 << 16;

/// The sizes of a mixture, of `experts` experts and `active` ones if the keys are absent. transformers takes either key
/// for the other.
pub(super) fn count(model: &Standard<'_>, experts: usize, active: usize) -> Result<Count, Error> {
    let json = model.json;
    let key = if json.has("num_experts") { "num_experts" } else { "num_local_experts" };
    let experts = json.size(key, experts, EXPERTS_MAX / model.layers)?;
    Ok(Count { experts, active: json.size("num_experts_per_tok", active.min(experts), experts)? })
}

/// What most families call the layers of an expert: gate, up and down.
pub(super) const NAMES: [&str; 3] = ["gate_proj", "up_proj", "down_proj"];

/// A mixture with tensors for every expert, called `experts.0` and so on after `name`, of this width, and their layers as
/// named.
pub(super) fn apart(
    model: &Standard<'_>,
    name: &str,
    count: &Count,
    (width, [gate, up, down]): (usize, [&str; 3]),
    normalised: bool,
) -> Experts {
    let hidden = model.hidden;
    let expert = |expert: usize| {
        let layer = |part, shape| linear(format!("{name}.experts.{expert}.{part}"), shape, false);
        let [gate, up] = [gate, up].map(|part| layer(part, [width, hidden]));
        model.gated(gate, up, layer(down, [hidden, width]))
    };
    Experts {
        normalised,
        ..of(linear(format!("{name}.gate"), [count.experts, hidden], false), count, expert)
    }
}

/// The layer of an expert, where those of all `count` experts are one tensor, `[experts, …]`.
pub(super) fn stacked(all: &Linear, count: usize, expert: usize) -> Linear {
    let mut layer = all.clone();
    layer.weight.shape.insert(0, count);
    if let Some(bias) = &mut layer.bias {
        bias.shape.insert(0, count);
    }
    Linear { matrix: Some(expert), ..layer }
}

/// A mixture whose experts are `expert`, and whose weights sum to one.
pub(super) fn of(
    router: Linear,
    Count { experts, active }: &Count,
    expert: impl Fn(usize) -> Mlp,
) -> Experts {
    Experts {
        router,
        active: *active,
        normalised: true,
        experts: (0..*experts).map(expert).collect(),
        shared: None,
    }
}

/// Which layers have a mixture: `mlp_only_layers` have none, and of the others every `decoder_sparse_step`th has one.
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
