//! Descriptions of a model's parts in a few words.

use mlxcel_models::{
    Activation, Attention, Block, Branch, Embedding, Experts, FeedForward, Head, Linear, Logits, Mlp,
    ModelConfig, Norm, NormKind, Pairs, Pooling, PoolingKind, Rope, RopeScaling, Shared,
};

/// Formats rising numbers as ranges such as `0-2, 5`, as many as fit on a line.
pub(super) fn ranges(numbers: &[usize]) -> String {
    const SHOWN: usize = 8;
    let ranges: Vec<&[usize]> = numbers.chunk_by(|a, b| a + 1 == *b).collect();
    let text = |run: &&[usize]| match *run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    let shown: Vec<String> = ranges.iter().take(SHOWN).map(text).collect();
    let dots = if ranges.len() > SHOWN { ", …" } else { "" };
    format!("{}{dots}", shown.join(", "))
}

pub(super) fn embedding(
    Embedding { weight: _, scale, positions, token_types, norm: of_sum }: &Embedding,
) -> String {
    let scaled = if *scale == 1.0 { "not scaled".into() } else { format!("multiplied by {scale}") };
    let learned = positions.as_ref().map(|_| "; a learned row is added for each position");
    let types = token_types.as_ref().map(|_| "; the row of the first token type is added");
    let norm = of_sum.as_ref().map(|layer| format!("; the sum has a norm: {}", norm(layer)));
    format!(
        "{scaled}{}{}{}",
        learned.unwrap_or_default(),
        types.unwrap_or_default(),
        norm.unwrap_or_default()
    )
}

pub(super) fn heads(layer: &Attention) -> String {
    let seen = if layer.causal { "" } else { "; every token sees the whole text" };
    format!("{}{seen}", head_groups(layer))
}

fn head_groups(Attention { heads, kv_heads, head_dim, .. }: &Attention) -> String {
    match (heads / kv_heads, kv_heads) {
        (1, _) => format!("{heads} heads, {head_dim} wide, each with its own keys and values"),
        (_, 1) => format!("{heads} query heads, {head_dim} wide, which share one key/value head"),
        (group, _) => {
            format!("{heads} query heads, {head_dim} wide, in groups of {group} that share a key/value head")
        }
    }
}

pub(super) fn scores(Attention { head_dim, scale, soft_cap, sinks, clip, .. }: &Attention) -> String {
    let scaled = if *scale == (*head_dim as f64).powf(-0.5) {
        format!("divided by the square root of {head_dim}")
    } else if *scale == 1.0 {
        "not scaled".into()
    } else {
        format!("multiplied by {scale}")
    };
    let clip = clip.map(|limit| format!(", of queries and keys of at most {limit}")).unwrap_or_default();
    let sinks = sinks.as_ref().map(|_| ", and one for a sink without a value").unwrap_or_default();
    format!("{scaled}{clip}{}{sinks}", capped(*soft_cap))
}

fn capped(soft_cap: Option<f64>) -> String {
    soft_cap.map(|cap| format!(", soft cap {cap}")).unwrap_or_default()
}

pub(super) fn rope(Attention { rope, head_dim, .. }: &Attention) -> String {
    let Some(Rope { theta, width, pairs, scaling }) = rope else {
        return "none".into();
    };
    let part = if width == head_dim {
        format!("all {width} dimensions of a head")
    } else {
        format!("{width} of {head_dim} dimensions of a head")
    };
    let pairs = match pairs {
        Pairs::Halves => "in halves",
        Pairs::Interleaved => "interleaved",
    };
    let scaling = match scaling {
        RopeScaling::Default => "not scaled".into(),
        RopeScaling::Linear { factor } => format!("linear scaling by {factor}"),
        RopeScaling::Llama3 { factor, original_max_positions, .. } => {
            format!("llama3 scaling by {factor} from {original_max_positions} positions")
        }
        RopeScaling::Yarn { factor, .. } => format!("yarn scaling by {factor}"),
        RopeScaling::PerPair { .. } => "longrope, a factor for each pair".into(),
    };
    let amplitude = rope.as_ref().map_or(1.0, Rope::amplitude);
    let amplitude = if amplitude == 1.0 { String::new() } else { format!(", amplitude {amplitude:.4}") };
    format!("{part} {pairs}, theta {theta}, {scaling}{amplitude}")
}

pub(super) fn head_norm(found: Option<&Norm>, heads: usize, head_dim: usize) -> String {
    let Some(found) = found else { return "none".into() };
    let of = if found.shape() == [head_dim] {
        "each head, one weight for all"
    } else if found.shape() == [heads, head_dim] {
        "each head, a weight for each"
    } else {
        "all heads as one vector"
    };
    format!("{of}: {}", norm(found))
}

pub(super) fn norm(Norm { kind, epsilon, offset, weights, bias }: &Norm) -> String {
    let kind = match kind {
        NormKind::Rms => "rms",
        NormKind::Layer => "layer",
    };
    let weight = match (weights.is_empty(), *offset == 0.0) {
        (true, _) => ", no weight".into(),
        (false, true) => String::new(),
        (false, false) => format!(", weight + {offset}"),
    };
    let bias = bias.as_ref().map(|_| ", bias").unwrap_or_default();
    format!("{kind}, epsilon {epsilon:?}{weight}{bias}")
}

pub(super) fn feed_forward(layer: &FeedForward) -> String {
    let experts = match layer {
        FeedForward::Mlp(layer) => return mlp(layer),
        FeedForward::Experts(experts) => experts,
    };
    let Experts { router: _, active, normalized, experts, shared } = &**experts;
    let each = experts.first().map(mlp).unwrap_or_default();
    let of = if *normalized { "of those" } else { "of all" };
    let shared = shared.as_ref().map(|Shared { mlp: layer, gate }| {
        let gated = if gate.is_some() { ", gated" } else { "" };
        format!("; one for every token, {}{gated}", mlp(layer))
    });
    let count = experts.len();
    format!("{count} experts, {active} a token by a softmax {of}, each {each}{}", shared.unwrap_or_default())
}

fn mlp(Mlp { activation, limit, up_offset, gate, up, down: _ }: &Mlp) -> String {
    let gated = if gate.is_some() { "gated" } else { "no gate" };
    let activation = match activation {
        Activation::Silu => "silu".into(),
        Activation::Swish { beta } => format!("swish of {beta}"),
        Activation::Gelu => "gelu".into(),
        Activation::GeluTanh => "gelu by tanh".into(),
    };
    let limit = limit.map(|limit| format!(", at most {limit}")).unwrap_or_default();
    let offset = if *up_offset == 0.0 { String::new() } else { format!(", up + {up_offset}") };
    format!("{} wide, {gated}, {activation}{limit}{offset}", up.outputs())
}

pub(super) fn biases(Block { attention, mlp, .. }: &Block) -> String {
    let Attention { query, key, value, output, .. } = &attention.layer;
    // All experts have the same biases.
    let (router, layer) = match &mlp.layer {
        FeedForward::Mlp(layer) => (None, Some(&**layer)),
        FeedForward::Experts(experts) => (Some(&experts.router), experts.experts.first()),
    };
    let named: [(&str, Option<&Linear>); 8] = [
        ("query", Some(query)),
        ("key", Some(key)),
        ("value", Some(value)),
        ("output", Some(output)),
        ("router", router),
        ("gate", layer.and_then(|layer| layer.gate.as_ref())),
        ("up", layer.map(|layer| &layer.up)),
        ("down", layer.map(|layer| &layer.down)),
    ];
    let biased = named.into_iter().filter(|(_, linear)| linear.is_some_and(|linear| linear.bias.is_some()));
    let names: Vec<_> = biased.map(|(name, _)| name).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

pub(super) fn block_order(Block { attention, mlp, parallel }: &Block) -> String {
    let scaled = |name: &str, scale: f64| match scale {
        1.0 => name.to_owned(),
        _ => format!("{name} times {scale}"),
    };
    let [attention, mlp] = [scaled("attention", attention.scale), scaled("mlp", mlp.scale)];
    match parallel {
        true => format!("{attention} and {mlp} of the same input"),
        false => format!("{attention}, then {mlp}"),
    }
}

pub(super) fn norms(Block { attention, mlp, .. }: &Block) -> String {
    fn of<T>(branch: &Branch<T>) -> [Option<&Norm>; 3] {
        [branch.before.as_ref(), branch.after.as_ref(), branch.after_sum.as_ref()]
    }
    let shared = attention.before.is_some() && attention.before == mlp.before;
    let ([before, after, after_sum], [before_mlp, after_mlp, after_mlp_sum]) = (of(attention), of(mlp));
    let places = [
        (if shared { "before both as one" } else { "before attention" }, before),
        ("after attention", after),
        ("before mlp", before_mlp.filter(|_| !shared)),
        ("after mlp", after_mlp),
        ("of the sum after attention", after_sum),
        ("of the sum after mlp", after_mlp_sum),
    ];
    let mut kinds: Vec<(String, Vec<&str>)> = vec![];
    for (place, found) in places {
        let Some(kind) = found.map(norm) else { continue };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, places)) => places.push(place),
            None => kinds.push((kind, vec![place])),
        }
    }
    let texts: Vec<_> = kinds.iter().map(|(kind, places)| format!("{kind}: {}", places.join(", "))).collect();
    if texts.is_empty() { "none".into() } else { texts.join("; ") }
}

pub(super) fn head(config: &ModelConfig) -> String {
    let layer = match &config.head {
        Head::Logits(layer) => layer,
        Head::Pooling(Pooling { kind, normalized }) => {
            let of = match kind {
                PoolingKind::Mean => "the mean of all tokens",
                PoolingKind::Cls => "the first token",
            };
            let length = if *normalized { ", normalized" } else { "" };
            return format!("an embedding of {} numbers: {of}{length}", config.hidden);
        }
    };
    let Logits { linear, tied, scale, soft_cap } = &**layer;
    let weight = if *tied { "tied to the embedding" } else { "a weight of its own" };
    let bias = linear.bias.as_ref().map(|_| ", bias").unwrap_or_default();
    let scaled = if *scale == 1.0 { String::new() } else { format!(", multiplied by {scale}") };
    format!("{weight}{bias}{scaled}{}", capped(*soft_cap))
}
