//! What a model is, in words for people: `mlxcel-compile --explain`.
//!
//! A line is a name and what is so. Where layers differ there is a line of that name for each kind of layer, with the
//! layers of it. A table of the weights follows.

mod weights;

use std::fmt;

use mlxcel_artifacts::Cancel;
use mlxcel_artifacts::{CacheType, Float, Quant};
use mlxcel_emitter::{Isa, Plan, Products};
use mlxcel_models::{
    Activation, Attention, Block, Branch, Embedding, Experts, FeedForward, Head, Linear, Logits, Mlp,
    ModelConfig, Norm, NormKind, Pairs, Pooling, PoolingKind, Rope, RopeScaling, Shared,
};

use crate::{
    DEFAULT_CONTEXT, Error, ModelSource,
    checkpoint::{Checkpoint, INDEX},
    source::Model,
    target::float_name,
};

/// Says what the model of `source` is: its sizes and parts, what a cache takes for each token in bytes, and the weights
/// of each part in parameters and MiB. Where the folder has weights, their headers are read, and what they are is said.
///
/// # Errors
/// There is no such model, it is not supported, or its folder's tensors are not its own; `cancel` ended it.
pub fn explain(source: &ModelSource, cancel: &Cancel) -> Result<String, Error> {
    let Model { name, config, folder, longest, said: said_of_folder, json: _ } = source.load()?;
    let found = folder.as_deref().map(Checkpoint::in_folder).transpose()?.flatten();
    let (config, said) = match &found {
        Some(checkpoint) => checkpoint.fit(config, &name, cancel)?,
        None => (config, vec![]),
    };
    let mut lines = Lines::default();
    lines.add("model", name);
    lines.sizes(&config);
    lines.stored(&config, found.as_ref());
    if let Some(longest) = longest.filter(|&longest| longest < config.max_positions) {
        lines.add("texts", format!("cut after {longest} tokens, unless --ctx asks for more"));
    }
    said_of_folder.into_iter().chain(said).for_each(|text| lines.add("note", text));
    lines.parts(&config);
    lines.memory(&config);
    let dtype_of = |name: &str| found.as_ref().and_then(|found| found.dtype(name)).unwrap_or(config.dtype);
    Ok(format!("{lines}\n{}", weights::table(&config, &dtype_of)))
}

/// Why the plan that `change` makes does not fit the model.
fn misfit(config: &ModelConfig, change: impl FnOnce(&mut Plan)) -> Option<String> {
    let mut plan = Plan::new(config, Float::F32, DEFAULT_CONTEXT);
    // Some target has kernels.
    plan.numerics.products = Products::Kernels(Isa::X86_64V3);
    change(&mut plan);
    let problem = plan.validate(config).err()?.to_string();
    problem.lines().next().map(str::to_owned)
}

/// Names, and what is so.
#[derive(Default)]
struct Lines(Vec<(&'static str, String)>);

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        self.0.iter().try_for_each(|(name, text)| writeln!(f, "{name:width$}  {text}"))
    }
}

impl Lines {
    fn add(&mut self, name: &'static str, text: impl Into<String>) {
        self.0.push((name, text.into()));
    }

    /// What `fact` says of the layers.
    fn of_layers(&mut self, name: &'static str, config: &ModelConfig, fact: impl Fn(&Block) -> String) {
        let mut kinds: Vec<(String, Vec<usize>)> = vec![];
        for (layer, block) in config.blocks.iter().enumerate() {
            let text = fact(block);
            match kinds.iter_mut().find(|(known, _)| *known == text) {
                Some((_, layers)) => layers.push(layer),
                None => kinds.push((text, vec![layer])),
            }
        }
        let all = config.blocks.len();
        for (text, layers) in kinds {
            if layers.len() == all {
                self.add(name, text);
            } else {
                self.add(name, format!("{text}; {} of {all} layers: {}", layers.len(), runs(&layers)));
            }
        }
    }

    fn sizes(&mut self, config: &ModelConfig) {
        let parameters = config.parameters();
        self.add("family", &*config.family);
        let millions = format!("{parameters}, {:.1} million", parameters as f64 / 1e6);
        self.add("parameters", if parameters < 1_000_000 { parameters.to_string() } else { millions });
        self.add("layers", config.blocks.len().to_string());
        self.add("hidden", config.hidden.to_string());
        self.add("vocabulary", config.vocab.to_string());
        self.add("context", format!("{} positions", config.max_positions));
        for note in &config.notes {
            self.add("left out", &**note);
        }
        if let Head::Pooling(_) = config.head {
            return;
        }
        let ids = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let begins = config.bos.map_or("begins with none".into(), |id| format!("begins with {id}"));
        let ends = if config.eos.is_empty() { "none".into() } else { ids(&config.eos) };
        self.add("tokens", format!("a text {begins} and ends with {ends}"));
    }

    /// The element types of the weights.
    fn stored(&mut self, config: &ModelConfig, found: Option<&Checkpoint>) {
        let Some(checkpoint) = found else {
            self.add("weights", format!("none here; {} by config.json", float_name(config.dtype)));
            return;
        };
        let types = checkpoint.elements_by_dtype();
        let types = types.iter().map(|(&dtype, count)| format!("{count} elements in {}", float_name(dtype)));
        let files = match checkpoint.files().filter(|(name, _)| *name != INDEX).count() {
            1 => "1 file".into(),
            files => format!("{files} files"),
        };
        self.add("weights", format!("{}; {files}", types.collect::<Vec<_>>().join(", ")));
    }

    fn parts(&mut self, config: &ModelConfig) {
        self.add("embedding", embedding(&config.embedding));
        self.of_layers("attention", config, |block| heads(&block.attention.layer));
        self.of_layers("scores", config, |block| scores(&block.attention.layer));
        self.of_layers("window", config, |block| match block.attention.layer.window {
            None => "none, every position is seen".into(),
            Some(window) => format!("{window} positions"),
        });
        self.of_layers("rope", config, |block| rope(&block.attention.layer));
        self.of_layers("q norm", config, |block| {
            let Attention { query_norm, heads, head_dim, .. } = &block.attention.layer;
            norm_of_heads(query_norm.as_ref(), *heads, *head_dim)
        });
        self.of_layers("k norm", config, |block| {
            let Attention { key_norm, kv_heads, head_dim, .. } = &block.attention.layer;
            norm_of_heads(key_norm.as_ref(), *kv_heads, *head_dim)
        });
        self.of_layers("mlp", config, |block| feed_forward(&block.mlp.layer));
        self.of_layers("biases", config, biases);
        self.of_layers("block", config, order);
        self.of_layers("norms", config, norms);
        self.add("final norm", config.final_norm.as_ref().map_or("none".into(), norm));
        self.add("head", head(config));
    }

    /// What cache and quantised weights take.
    fn memory(&mut self, config: &ModelConfig) {
        let misfit_in_q8 = misfit(config, |plan| plan.kv = CacheType::Q8);
        for (window, elements) in config.cache_elements_per_token() {
            let bytes = |kv: CacheType| kv.bytes(elements);
            let [f32, bf16] = [Float::F32, Float::Bf16].map(|float| bytes(CacheType::Float(float)));
            let q8 = match &misfit_in_q8 {
                None => format!("{} in q8", bytes(CacheType::Q8)),
                Some(problem) => format!("not in q8, for {problem}"),
            };
            let which =
                window.map_or("a token".into(), |window| format!("of each of the last {window} tokens"));
            self.add("cache", format!("bytes {which}: {f32} in f32, {bf16} in bf16 or f16, {q8}"));
        }
        for quant in [Quant::Q8, Quant::Q4] {
            if let Some(problem) = misfit(config, |plan| plan.quant = quant) {
                self.add("quant", format!("not {quant}, for {problem}"));
            }
        }
    }
}

/// Numbers in rising order, with `a-b` for those that follow each other, and no more of these than fit a line.
fn runs(numbers: &[usize]) -> String {
    const SHOWN: usize = 8;
    let runs: Vec<&[usize]> = numbers.chunk_by(|a, b| a + 1 == *b).collect();
    let text = |run: &&[usize]| match *run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    let shown: Vec<String> = runs.iter().take(SHOWN).map(text).collect();
    let dots = if runs.len() > SHOWN { ", …" } else { "" };
    format!("{}{dots}", shown.join(", "))
}

fn embedding(Embedding { weight: _, scale, positions, token_types, norm: of_sum }: &Embedding) -> String {
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

fn heads(layer: &Attention) -> String {
    let seen = if layer.causal { "" } else { "; every token sees the whole text" };
    format!("{}{seen}", groups(layer))
}

fn groups(Attention { heads, kv_heads, head_dim, .. }: &Attention) -> String {
    match (heads / kv_heads, kv_heads) {
        (1, _) => format!("{heads} heads, {head_dim} wide, each with its own keys and values"),
        (_, 1) => format!("{heads} query heads, {head_dim} wide, which share one key/value head"),
        (group, _) => {
            format!("{heads} query heads, {head_dim} wide, in groups of {group} that share a key/value head")
        }
    }
}

fn scores(Attention { head_dim, scale, soft_cap, sinks, clip, .. }: &Attention) -> String {
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

fn rope(Attention { rope, head_dim, .. }: &Attention) -> String {
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
        Pairs::Neighbours => "interleaved",
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

fn norm_of_heads(found: Option<&Norm>, heads: usize, head_dim: usize) -> String {
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

fn norm(Norm { kind, epsilon, offset, weights, bias }: &Norm) -> String {
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

fn feed_forward(layer: &FeedForward) -> String {
    let experts = match layer {
        FeedForward::Mlp(layer) => return mlp(layer),
        FeedForward::Experts(experts) => experts,
    };
    let Experts { router: _, active, normalised, experts, shared } = &**experts;
    let each = experts.first().map(mlp).unwrap_or_default();
    let of = if *normalised { "of those" } else { "of all" };
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

fn biases(Block { attention, mlp, .. }: &Block) -> String {
    let Attention { query, key, value, output, .. } = &attention.layer;
    // Experts are alike.
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

fn order(Block { attention, mlp, parallel }: &Block) -> String {
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

fn norms(Block { attention, mlp, .. }: &Block) -> String {
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

fn head(config: &ModelConfig) -> String {
    let layer = match &config.head {
        Head::Logits(layer) => layer,
        Head::Pooling(Pooling { kind, normalised }) => {
            let of = match kind {
                PoolingKind::Mean => "the mean of all tokens",
                PoolingKind::Cls => "the first token",
            };
            let length = if *normalised { ", normalised" } else { "" };
            return format!("an embedding of {} numbers: {of}{length}", config.hidden);
        }
    };
    let Logits { linear, tied, scale, soft_cap } = &**layer;
    let weight = if *tied { "tied to the embedding" } else { "a weight of its own" };
    let bias = linear.bias.as_ref().map(|_| ", bias").unwrap_or_default();
    let scaled = if *scale == 1.0 { String::new() } else { format!(", multiplied by {scale}") };
    format!("{weight}{bias}{scaled}{}", capped(*soft_cap))
}

#[cfg(test)]
mod tests;
