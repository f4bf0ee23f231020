//! Keys of rotary embeddings in a config.json, in both spellings.
//!
//! - transformers 5 writes one object, `rope_parameters`, with `rope_type` and `rope_theta`. If layers differ, it has an
//!   object for each type of layer.
//! - Older versions wrote `rope_theta` and `rope_scaling`, an object or null with the key `type`, later `rope_type`.
//!
//! Meaning and precedence of the keys follow `RotaryEmbeddingConfigMixin` in transformers' `modeling_rope_utils.py`. If the
//! two objects contradict each other, transformers prefers `rope_scaling`; here such a file is refused.

use std::f64::consts::PI;

use serde_json::{Map, Value};

use crate::{
    error::Error,
    json::Json,
    rope::{Pairs, Rope, RopeScaling},
};

const ORIGINAL: &str = "original_max_position_embeddings";

/// The most positions that a factor gives, as many as `max_position_embeddings` may say.
const MAX_SCALED: usize = 1 << 24;

/// The names of a family's rope keys, and the values of keys that are absent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    /// Key of theta outside of an object, if there is one.
    pub(super) theta_key: Option<&'static str>,
    pub(super) theta: f64,
    /// Whether `rope_scaling` applies to this rope.
    pub(super) scaled: bool,
    /// Type of the layers with this rope, which is a key in `rope_parameters`.
    pub(super) layer_type: Option<&'static str>,
    /// Default for the rotated fraction of each head, if the family can rotate less than all of it.
    pub(super) partial: Option<f64>,
    /// Key of that fraction outside of an object.
    pub(super) partial_key: &'static str,
    pub(super) pairs: Pairs,
    /// Names of LongRoPE.
    pub(super) longrope: &'static [&'static str],
    /// Default for the original context length; `None` for that of the model.
    pub(super) original: Option<usize>,
    /// Default for `rope_parameters`, as JSON.
    pub(super) absent: Option<&'static str>,
}

/// Defaults of most families.
pub(super) const ROPE: Defaults = Defaults {
    theta_key: Some("rope_theta"),
    theta: 10_000.0,
    scaled: true,
    layer_type: None,
    partial: None,
    partial_key: "partial_rotary_factor",
    pairs: Pairs::Halves,
    longrope: &["longrope"],
    original: None,
    absent: None,
};

/// A rope, and the positions that it is exact for.
#[derive(Debug, PartialEq)]
pub(super) struct Positions {
    pub(super) rope: Rope,
    /// Length of the longest sequence that the rope is exact for.
    pub(super) max_positions: usize,
    /// Note on longer sequences that the checkpoint supports.
    pub(super) note: Option<String>,
}

/// Returns the rope for heads of width `head_dim` and sequences of up to `max_positions`.
pub(super) fn read(
    json: &Json<'_>,
    defaults: &Defaults,
    head_dim: usize,
    max_positions: usize,
) -> Result<Positions, Error> {
    let reader = Reader { json, defaults, head_dim, max_positions };
    // Null is accepted if an object has a theta.
    let outer = match defaults.theta_key {
        Some(key) if json.has(key) => json.value(key).map(|_| json.positive(key)).transpose()?.flatten(),
        _ => Some(defaults.theta),
    };
    let key = defaults.theta_key.unwrap_or("rope_theta");
    let outer = || outer.ok_or_else(|| json.invalid(key, "a positive number"));
    let mut found = vec![];
    if defaults.scaled
        && let Some(object) = json.object("rope_scaling")?.filter(|object| !object.is_empty())
    {
        found.push(reader.rope(&object, &outer)?);
    }
    // An empty object counts as absent.
    if let Some(object) = json.object("rope_parameters")?.filter(|object| !object.is_empty()) {
        match defaults.layer_type {
            None => found.push(reader.rope(&object, &outer)?),
            Some(layer_type) => {
                object.require_objects(&["full_attention", "sliding_attention"])?;
                if let Some(object) = object.object(layer_type)? {
                    found.push(reader.rope(&object, &outer)?);
                }
            }
        }
    }
    if let (true, Some(text)) = (found.is_empty(), defaults.absent) {
        let object: Map<String, Value> =
            serde_json::from_str(text).map_err(|source| Error::Syntax { file: "config.json", source })?;
        found.push(reader.rope(&Json::top(&object), &outer)?);
    }
    if found.len() == 2 && found[0] != found[1] {
        return Err(json
            .invalid("rope_parameters", "the same as `rope_scaling` with `rope_theta`")
            .with_hint("keep the one that the checkpoint was trained with"));
    }
    let positions = match found.pop() {
        Some(positions) => positions,
        None => reader.whole(outer()?, reader.width(json)?, RopeScaling::Default),
    };
    let Rope { theta, .. } = positions.rope;
    let amplitude = positions.rope.amplitude() as f32;
    let mut numbers = positions.rope.inverse_frequencies().into_iter().chain([amplitude]);
    if !numbers.all(f32::is_finite) {
        return Err(Error::Invalid {
            key: key.into(),
            found: format!("{theta:?}"),
            expected: "a number that gives finite f32 frequencies with its scaling".into(),
            hint: None,
        });
    }
    Ok(positions)
}

struct Reader<'a, 'j> {
    json: &'a Json<'j>,
    defaults: &'a Defaults,
    head_dim: usize,
    max_positions: usize,
}

impl Reader<'_, '_> {
    /// Returns the rope that `object` describes. `outer` returns theta if the object has none.
    fn rope(&self, object: &Json<'_>, outer: &dyn Fn() -> Result<f64, Error>) -> Result<Positions, Error> {
        let width = self.width(object)?;
        if let Some(key) = object.first_object() {
            return Err(object.unsupported(key, "one rope for all layers"));
        }
        let theta = object.positive("rope_theta")?.map_or_else(outer, Ok)?;
        let key = if object.has("rope_type") { "rope_type" } else { "type" };
        let positive =
            |key: &str| object.positive(key)?.ok_or_else(|| object.missing(key, "a positive number"));
        let scaling = match object.text(key)?.unwrap_or("default") {
            name if self.defaults.longrope.contains(&name) => return self.longrope(object, theta, width),
            "default" => RopeScaling::Default,
            "linear" => RopeScaling::Linear { factor: positive("factor")? },
            "dynamic" => {
                // Dynamic scaling has no effect up to the context of the model.
                positive("factor")?;
                let note = format!("rope `dynamic` for sequences beyond {} positions", self.max_positions);
                let whole = self.whole(theta, width, RopeScaling::Default);
                return Ok(Positions { note: Some(note), ..whole });
            }
            "llama3" => {
                let (low, high) = (positive("low_freq_factor")?, positive("high_freq_factor")?);
                if high as f32 <= low as f32 {
                    let expected = format!("more than low_freq_factor, which is {low:?}");
                    return Err(object.invalid("high_freq_factor", expected));
                }
                RopeScaling::Llama3 {
                    factor: positive("factor")?,
                    low_freq_factor: low,
                    high_freq_factor: high,
                    original_max_positions: self.original(object)?,
                }
            }
            "yarn" => return self.yarn(object, theta, width),
            _ => {
                return Err(
                    object.unsupported(key, "one of default, linear, dynamic, llama3, yarn or longrope")
                );
            }
        };
        Ok(self.whole(theta, width, scaling))
    }

    fn whole(&self, theta: f64, width: usize, scaling: RopeScaling) -> Positions {
        let rope = Rope { theta, width, pairs: self.defaults.pairs, scaling };
        Positions { rope, max_positions: self.max_positions, note: None }
    }

    /// Returns the number of rotated dimensions per head.
    fn width(&self, object: &Json<'_>) -> Result<usize, Error> {
        let Self { json, defaults, head_dim, .. } = *self;
        let Some(default) = defaults.partial else {
            let whole =
                |json: &Json<'_>| json.require("partial_rotary_factor", "1.0", |v| v.as_f64() == Some(1.0));
            whole(json)?;
            whole(object)?;
            return Ok(head_dim);
        };
        let key = defaults.partial_key;
        let (json, key) =
            if object.has("partial_rotary_factor") { (object, "partial_rotary_factor") } else { (json, key) };
        let part = json.positive(key)?.unwrap_or(default);
        let width = (head_dim as f64 * part) as usize;
        if part > 1.0 || width == 0 || !width.is_multiple_of(2) {
            let expected = format!("a fraction of head_dim, which is {head_dim}, that gives an even number");
            return Err(json.invalid(key, expected));
        }
        Ok(width)
    }

    /// Returns the original context length. The outer key takes precedence over the one in the object, and counts alone in
    /// families that have it. In those with types of layers only the object's counts.
    fn original(&self, object: &Json<'_>) -> Result<f64, Error> {
        let is_outer = self.defaults.original.is_some() || self.json.has(ORIGINAL);
        let json = if is_outer && self.defaults.layer_type.is_none() { self.json } else { object };
        let default = self.defaults.original.unwrap_or(self.max_positions);
        Ok(json.positive(ORIGINAL)?.unwrap_or(default as f64))
    }

    /// Returns YaRN, which is exact for the original context times the factor. A checkpoint whose scaling was added by hand, as
    /// Qwen's cards have it, keeps the context from before in `max_position_embeddings`.
    fn yarn(&self, object: &Json<'_>, theta: f64, width: usize) -> Result<Positions, Error> {
        let optional = |key: &str| object.positive_or_null(key, None);
        let original = self.original(object)?;
        let factor = optional("factor")?.unwrap_or(self.max_positions as f64 / original);
        let growth = |scale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 };
        let amplitude =
            match (optional("attention_factor")?, optional("mscale")?, optional("mscale_all_dim")?) {
                (Some(amplitude), ..) => amplitude,
                (None, Some(scale), Some(all_dim)) => growth(scale) / growth(all_dim),
                (None, ..) => growth(1.0),
            };
        // The pair that makes this many turns within the original context.
        let pair = |turns: f64| width as f64 * (original / (turns * 2.0 * PI)).ln() / (2.0 * theta.ln());
        let (mut first, mut last) =
            (pair(optional("beta_fast")?.unwrap_or(32.0)), pair(optional("beta_slow")?.unwrap_or(1.0)));
        // With types of layers, transformers looks up `truncate` outside of their objects, where it never is.
        if object.flag("truncate", true)? || self.defaults.layer_type.is_some() {
            (first, last) = (first.floor(), last.ceil());
        }
        (first, last) = (first.max(0.0), last.min(width as f64 - 1.0));
        if first == last {
            last += 0.001;
        }
        if !(first.is_finite() && last.is_finite() && first < last) {
            return Err(object.invalid("beta_fast", "turns that blend some pairs of this rope_theta"));
        }
        let whole = self.whole(theta, width, RopeScaling::Yarn { factor, first, last, amplitude });
        let scaled = ((original * factor) as usize).min(MAX_SCALED);
        Ok(Positions { max_positions: self.max_positions.max(scaled), ..whole })
    }

    /// Returns LongRoPE, which is limited to the original context.
    ///
    /// Longer sequences use other factors for all positions, earlier ones included.
    fn longrope(&self, object: &Json<'_>, theta: f64, width: usize) -> Result<Positions, Error> {
        let original = self.original(object)?;
        let factor = object.positive_or_null("factor", None)?.unwrap_or(self.max_positions as f64 / original);
        let amplitude = match object.positive_or_null("attention_factor", None)? {
            Some(amplitude) => amplitude,
            None if factor <= 1.0 => 1.0,
            None => (1.0 + factor.ln() / original.ln()).sqrt(),
        };
        let factors = object.positives("short_factor", width / 2)?;
        object.positives("long_factor", width / 2)?;
        let whole = self.whole(theta, width, RopeScaling::PerPair { factors, amplitude });
        let limit = original as usize;
        if limit >= self.max_positions {
            return Ok(whole);
        }
        let note = format!(
            "sequences of {} to {} positions, for which longrope uses its `long_factor`",
            limit + 1,
            self.max_positions
        );
        Ok(Positions { max_positions: limit.max(1), note: Some(note), ..whole })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::ModelConfig;

    #[test]
    fn yarn_reaches_as_far_as_its_factor() {
        let positions = |rest: &str| {
            let text = format!(r#"{{"model_type": "qwen2", "max_position_embeddings": 32768{rest}}}"#);
            ModelConfig::from_json(&text).unwrap().max_positions
        };
        let yarn = |factor: f64, original: usize| {
            positions(&format!(
                r#", "rope_scaling": {{"type": "yarn", "factor": {factor}, "original_max_position_embeddings": {original}}}"#
            ))
        };
        // Added by hand, of a checkpoint that was extended, and of one with room to spare.
        assert_eq!((yarn(4.0, 32_768), yarn(4.0, 8192), yarn(2.0, 4096)), (131_072, 32_768, 32_768));
        assert_eq!(positions(r#", "rope_scaling": {"type": "linear", "factor": 4.0}"#), 32_768);
    }

    #[test]
    fn the_original_context_is_where_transformers_looks_for_it() {
        let positions = |text: &str| ModelConfig::from_json(text).unwrap().max_positions;
        let factors = [1.0; 48];
        let phi3 = |outer: &str| {
            positions(&format!(
                r#"{{"model_type": "phi3", "max_position_embeddings": 131072{outer}, "rope_scaling": {{"type": "longrope",
                    "short_factor": {factors:?}, "long_factor": {factors:?}, "original_max_position_embeddings": 8192}}}}"#
            ))
        };
        assert_eq!(phi3(""), 4096);
        assert_eq!(phi3(r#", "original_max_position_embeddings": 8192"#), 8192);
        let olmo3 = r#"{"model_type": "olmo3", "max_position_embeddings": 4096, "original_max_position_embeddings": 4096,
            "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192}}"#;
        assert_eq!(positions(olmo3), 65_536);
    }
}
