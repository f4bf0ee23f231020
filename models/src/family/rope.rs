//! The rotary keys of a config.json, in both spellings.
//!
//! transformers 5 writes one object, `rope_parameters`, with `rope_type` and `rope_theta` in it. Older versions wrote
//! `rope_theta` beside `rope_scaling`, an object or null whose type key was first `type` and later `rope_type`. What
//! each means, and which wins where several are there, is `RotaryEmbeddingConfigMixin` of transformers'
//! `modeling_rope_utils.py`; a file whose two objects contradict each other is refused, though transformers would take
//! `rope_scaling`.

use serde_json::Value;

use crate::{Error, Rope, RopeScaling, family::json::Json};

/// The rope of heads `head_dim` wide; `theta` and `max_positions` are what keys that are absent stand for.
pub(crate) fn read(
    json: &Json<'_>,
    head_dim: usize,
    theta: f64,
    max_positions: usize,
) -> Result<Rope, Error> {
    whole_head(json)?;
    // Null is fine where `rope_parameters` has another.
    let outer = match json.value("rope_theta") {
        Some(_) => json.positive("rope_theta")?,
        None if json.has("rope_theta") => None,
        None => Some(theta),
    };
    let outer = || outer.ok_or_else(|| json.invalid("rope_theta", "a positive number"));
    let mut ropes = vec![];
    for key in ["rope_scaling", "rope_parameters"] {
        // An empty object is as good as none.
        if let Some(object) = json.object(key)?.filter(|object| !object.is_empty()) {
            let theta = object.positive("rope_theta")?.map_or_else(outer, Ok)?;
            ropes.push(Rope { theta, scaling: scaling(json, &object, max_positions)? });
        }
    }
    if ropes.len() == 2 && ropes[0] != ropes[1] {
        return Err(json
            .invalid("rope_parameters", "the same as `rope_scaling` with `rope_theta`")
            .with_hint("keep the one that the checkpoint was trained with"));
    }
    let rope = match ropes.pop() {
        Some(rope) => rope,
        None => Rope { theta: outer()?, scaling: RopeScaling::Default },
    };
    if !rope.inverse_frequencies(head_dim).iter().all(|frequency| frequency.is_finite()) {
        return Err(Error::Invalid {
            key: "rope_theta".into(),
            found: format!("{:?}", rope.theta),
            expected: "a number that gives finite f32 frequencies with its scaling".into(),
            hint: None,
        });
    }
    Ok(rope)
}

/// The scaling that `object` describes.
fn scaling(top: &Json<'_>, object: &Json<'_>, max_positions: usize) -> Result<RopeScaling, Error> {
    whole_head(object)?;
    if let Some(key) = object.first_object() {
        return Err(object.unsupported(key, "one rope for all layers"));
    }
    let key = if object.has("rope_type") { "rope_type" } else { "type" };
    let positive = |key| object.positive(key)?.ok_or_else(|| object.missing(key, "a positive number"));
    match object.text(key)?.unwrap_or("default") {
        "default" => Ok(RopeScaling::Default),
        "linear" => Ok(RopeScaling::Linear { factor: positive("factor")? }),
        "llama3" => {
            const ORIGINAL: &str = "original_max_position_embeddings";
            // The key beside the object goes before the one in it.
            let original = if top.has(ORIGINAL) { top } else { object }.positive(ORIGINAL)?;
            let (low, high) = (positive("low_freq_factor")?, positive("high_freq_factor")?);
            if high as f32 <= low as f32 {
                let expected = format!("more than low_freq_factor, which is {low:?}");
                return Err(object.invalid("high_freq_factor", expected));
            }
            Ok(RopeScaling::Llama3 {
                factor: positive("factor")?,
                low_freq_factor: low,
                high_freq_factor: high,
                original_max_positions: original.unwrap_or(max_positions as f64),
            })
        }
        _ => Err(object.unsupported(key, "default, linear or llama3")),
    }
}

/// Refuses to rotate only a part of each head.
fn whole_head(json: &Json<'_>) -> Result<(), Error> {
    json.only("partial_rotary_factor", "1.0", |value: &Value| value.as_f64() == Some(1.0))
}
