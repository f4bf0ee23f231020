//! Explains a model to people, for `mlxcel-compile explain`.
//!
//! A line is a name and a fact. If layers differ, there is a line of that name for each kind of layer, with the numbers
//! of its layers. A table of the weights follows.

mod misfit;
mod phrases;
mod weights;

use std::{collections::BTreeSet, fmt};

use mlxcel_artifacts::{CacheType, Cancel, Float, INDEX_FILE, Quant};
use mlxcel_emitter::Plan;
use mlxcel_models::{Attention, Block, Head, ModelConfig, Scheme, Storage, Weight};

use crate::{
    error::Error,
    model::{
        checkpoint::Checkpoint,
        source::{Model, ModelSource},
    },
    stored::{StoredWeights, in_words},
    target::float_name,
};
use misfit::{misfit, plan_with_kernels};
use phrases::{
    biases, block_order, embedding, feed_forward, head, head_norm, heads, norm, norms, ranges, rope, scores,
};

/// Explains the model of `source`: its parts and sizes, the bytes of cache per token, and the weights of each part.
///
/// If the folder has weights, reads their headers and describes them too.
///
/// # Errors
/// The model does not exist or is not supported, its folder's tensors do not fit it, or `cancel` was triggered.
pub fn explain(source: &ModelSource, cancel: &Cancel) -> Result<String, Error> {
    let Model { name, config, folder, gguf, max_seq_length, warning, snapshot, texts: _, json: _ } =
        source.load()?;
    let mut found = match &gguf {
        Some(path) => Some(Checkpoint::open_gguf(path)?),
        None => folder.as_deref().map(Checkpoint::open).transpose()?.flatten(),
    };
    let (config, warnings) = match &mut found {
        Some(checkpoint) => checkpoint.fit(config, &name, cancel)?,
        None => (config, vec![]),
    };
    let mut facts = Facts::default();
    facts.add("model", name);
    snapshot.iter().for_each(|found| facts.add("hub", format!("{} at {}", found.name, found.commit)));
    facts.add_sizes(&config);
    facts.add_stored_types(&config, found.as_ref());
    if let Some(length) = max_seq_length.filter(|&length| length < config.max_positions) {
        facts.add("texts", format!("cut after {length} tokens, unless --ctx-size asks for more"));
    }
    warning.into_iter().chain(warnings).for_each(|text| facts.add("note", text));
    facts.add_parts(&config);
    facts.add_memory(&config);
    let dtype_of = |name: &str| {
        let storage = found.as_ref().and_then(|found| found.storage(name));
        storage.map_or(config.dtype, Storage::dtype)
    };
    Ok(format!("{facts}\n{}", weights::table(&config, &dtype_of)))
}

/// Lines of a name and a text.
#[derive(Default)]
struct Facts(Vec<(&'static str, String)>);

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        self.0.iter().try_for_each(|(name, text)| writeln!(f, "{name:width$}  {text}"))
    }
}

impl Facts {
    fn add(&mut self, name: &'static str, text: impl Into<String>) {
        self.0.push((name, text.into()));
    }

    /// Adds a line for each group of layers for which `fact` returns the same text.
    fn add_layers(&mut self, name: &'static str, config: &ModelConfig, fact: impl Fn(&Block) -> String) {
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
                self.add(name, format!("{text}; {} of {all} layers: {}", layers.len(), ranges(&layers)));
            }
        }
    }

    fn add_sizes(&mut self, config: &ModelConfig) {
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

    /// Adds the element types of the weights.
    fn add_stored_types(&mut self, config: &ModelConfig, found: Option<&Checkpoint>) {
        let Some(checkpoint) = found else {
            self.add("weights", format!("none here; {} by config.json", float_name(config.dtype)));
            return;
        };
        let types = checkpoint.elements_by_dtype();
        if let Some(scheme) = &config.scheme {
            self.add_quantized(config, scheme, checkpoint);
        }
        let types = types.iter().map(|(&dtype, count)| format!("{count} elements in {}", float_name(dtype)));
        let files = match checkpoint.files().filter(|(name, _)| *name != INDEX_FILE).count() {
            1 => "1 file".into(),
            files => format!("{files} files"),
        };
        self.add("weights", format!("{}; {files}", types.collect::<Vec<_>>().join(", ")));
    }

    /// Adds how the weights of a quantized checkpoint are stored, and what becomes of them by default.
    fn add_quantized(&mut self, config: &ModelConfig, scheme: &Scheme, checkpoint: &Checkpoint) {
        let storage_of = |weight: &Weight| checkpoint.storage_or_plain(weight, config);
        let plan = Plan { quant: Quant::Auto, ..plan_with_kernels(config) };
        let stored = StoredWeights::of(config, &plan, &storage_of);
        let names: BTreeSet<_> = config.weights().into_iter().map(|weight| &weight.name).collect();
        let count = stored.iter().map(|weights| weights.names.len()).sum::<usize>();
        self.add("quantized", format!("by {}: {count} of {} weights", scheme.name(), names.len()));
        for weights in stored {
            let becomes = match weights.form {
                Some(form) => {
                    let bits = (form.bits_per_weight() * 1e4).round() / 1e4;
                    format!("read as {}, {bits} bits", form.name())
                }
                None => format!("decoded: {}", in_words(&weights.names)),
            };
            let StoredWeights { coding, names, .. } = &weights;
            self.add("stored", format!("{} in {coding}: {becomes}", names.len()));
        }
        let is_wide =
            |weight: &&Weight| storage_of(weight).coding.is_none_or(|coding| !coding.is_quantized());
        let matrices = config.linears().map(|linear| &linear.weight).chain([&config.embedding.weight]);
        let wide: BTreeSet<_> = matrices.filter(is_wide).map(|weight| weight.name.clone()).collect();
        if !wide.is_empty() {
            let wide = in_words(&wide.into_iter().collect::<Vec<_>>());
            self.add("stay wide", format!("{wide}, besides norms and biases"));
        }
    }

    fn add_parts(&mut self, config: &ModelConfig) {
        self.add("embedding", embedding(&config.embedding));
        self.add_layers("attention", config, |block| heads(&block.attention.layer));
        self.add_layers("scores", config, |block| scores(&block.attention.layer));
        self.add_layers("window", config, |block| match block.attention.layer.window {
            None => "none, every position is seen".into(),
            Some(window) => format!("{window} positions"),
        });
        self.add_layers("rope", config, |block| rope(&block.attention.layer));
        self.add_layers("q norm", config, |block| {
            let Attention { query_norm, heads, head_dim, .. } = &block.attention.layer;
            head_norm(query_norm.as_ref(), *heads, *head_dim)
        });
        self.add_layers("k norm", config, |block| {
            let Attention { key_norm, kv_heads, head_dim, .. } = &block.attention.layer;
            head_norm(key_norm.as_ref(), *kv_heads, *head_dim)
        });
        self.add_layers("mlp", config, |block| feed_forward(&block.mlp.layer));
        self.add_layers("biases", config, biases);
        self.add_layers("block", config, block_order);
        self.add_layers("norms", config, norms);
        self.add("final norm", config.final_norm.as_ref().map_or("none".into(), norm));
        self.add("head", head(config));
    }

    /// Adds the bytes of the cache, and which forms of quantization are not possible.
    fn add_memory(&mut self, config: &ModelConfig) {
        let misfit_in_q8 = misfit(config, |plan| plan.cache_type = CacheType::Q8);
        for (window, elements) in config.cache_elements_per_token() {
            let bytes = |cache_type: CacheType| cache_type.bytes(elements);
            let [f32, bf16] = [Float::F32, Float::Bf16].map(|float| bytes(CacheType::Float(float)));
            let q8 = match &misfit_in_q8 {
                None => format!("{} in q8", bytes(CacheType::Q8)),
                Some(problem) => format!("not in q8: {problem}"),
            };
            let which =
                window.map_or("a token".into(), |window| format!("of each of the last {window} tokens"));
            self.add("cache", format!("bytes {which}: {f32} in f32, {bf16} in bf16 or f16, {q8}"));
        }
        for quant in [Quant::Q8, Quant::Q4, Quant::Q4K] {
            if let Some(problem) = misfit(config, |plan| plan.quant = quant) {
                self.add("quant", format!("not {quant}: {problem}"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
