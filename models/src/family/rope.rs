//! The rotary keys of a config.json, in both spellings.
//!
//! transformers 5 writes one object, `rope_parameters`, with `rope_type` and `rope_theta` in it; where layers differ it
//! holds an object for each type of layer. Older versions wrote `rope_theta` beside `rope_scaling`, an object or null
//! whose type key was first `type` and later `rope_type`. What each means, and which wins where several are there, is
//! `RotaryEmbeddingConfigMixin` of transformers' `modeling_rope_utils.py`; a file whose two objects contradict each other
//! is refused, though transformers would take `rope_scaling`.

use std::f64::consts::PI;

use serde_json::{Map, Value};

use crate::{Error, Pairs, Rope, RopeScaling, family::json::Json};

const ORIGINAL: &str = "original_max_position_embeddings";

/// How a family spells its rope, and what absent keys stand for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    /// The key of theta outside of an object, where there is one.
    pub(super) theta_key: Option<&'static str>,
    pub(super) theta: f64,
    /// Whether `rope_scaling` is about this rope.
    pub(super) scaled: bool,
    /// The type of layer that it is for, whose name `rope_parameters` has an object under.
    pub(super) layer_type: Option<&'static str>,
    /// The part of each head that is rotated, where the family can rotate less than all of it.
    pub(super) partial: Option<f64>,
    /// The key of that part outside of an object.
    pub(super) partial_key: &'static str,
    pub(super) pairs: Pairs,
    /// The types that mean LongRoPE.
    pub(super) longrope: &'static [&'static str],
    /// The original context where no key has it; that of the model, if not given.
    pub(super) original: Option<usize>,
    /// The object that stands for `rope_parameters` where there is none, as JSON.
    pub(super) absent: Option<&'static str>,
}

/// As most families have it.
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

/// A rope, and up to where it holds.
#[derive(Debug, PartialEq)]
pub(super) struct Positions {
    pub(super) rope: Rope,
    /// The longest sequence that it is exact for.
    pub(super) max_positions: usize,
    /// Why that is less than the checkpoint offers.
    pub(super) note: Option<String>,
}

/// The rope of heads `head_dim` wide, for sequences of up to `max_positions`.
pub(super) fn read(
    json: &Json<'_>,
    defaults: &Defaults,
    head_dim: usize,
    max_positions: usize,
) -> Result<Positions, Error> {
    let reader = Reader { json, defaults, head_dim, max_positions };
    // Null is fine where an object has another.
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
    // An empty object is as good as none.
    if let Some(object) = json.object("rope_parameters")?.filter(|object| !object.is_empty()) {
        match defaults.layer_type {
            None => found.push(reader.rope(&object, &outer)?),
            Some(layer_type) => {
                object.each_object(&["full_attention", "sliding_attention"])?;
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
    /// The rope that `object` describes, with `outer` where it has no theta.
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
                // Up to the context of the model it changes nothing.
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
            "yarn" => self.yarn(object, theta, width)?,
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

    /// How many dimensions of a head are rotated.
    fn width(&self, object: &Json<'_>) -> Result<usize, Error> {
        let Self { json, defaults, head_dim, .. } = *self;
        let Some(default) = defaults.partial else {
            let whole =
                |json: &Json<'_>| json.only("partial_rotary_factor", "1.0", |v| v.as_f64() == Some(1.0));
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
            let expected = format!("a part of head_dim, which is {head_dim}, that is an even number");
            return Err(json.invalid(key, expected));
        }
        Ok(width)
    }

    /// The context that the checkpoint was first trained for: the key beside the object goes before the one in it.
    fn original(&self, object: &Json<'_>) -> Result<f64, Error> {
        let json = if self.json.has(ORIGINAL) { self.json } else { object };
        let default = self.defaults.original.unwrap_or(self.max_positions);
        Ok(json.positive(ORIGINAL)?.unwrap_or(default as f64))
    }

    fn yarn(&self, object: &Json<'_>, theta: f64, width: usize) -> Result<RopeScaling, Error> {
        let optional = |key: &str| object.positive_or_null(key, None);
        let original = self.original(object)?;
        let factor = optional("factor")?.unwrap_or(self.max_positions as f64 / original);
        let growth = |scale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 };
        let amplitude =
            match (optional("attention_factor")?, optional("mscale")?, optional("mscale_all_dim")?) {
                (Some(amplitude), ..) => amplitude,
                (None, Some(scale), Some(of_all)) => growth(scale) / growth(of_all),
                (None, ..) => growth(1.0),
            };
        // The pair that makes this many turns within the original context.
        let pair = |turns: f64| width as f64 * (original / (turns * 2.0 * PI)).ln() / (2.0 * theta.ln());
        let (mut first, mut last) =
            (pair(optional("beta_fast")?.unwrap_or(32.0)), pair(optional("beta_slow")?.unwrap_or(1.0)));
        // transformers looks for it beside the objects of types of layers, where it never is.
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
        Ok(RopeScaling::Yarn { factor, first, last, amplitude })
    }

    /// Exact up to the original context. Beyond it, other factors are for all positions, those before too.
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
