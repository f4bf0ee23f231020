//! Keys and tensors of rotary embeddings.

use serde_json::{Map, Value, json};

use super::{file::TENSORS, keys::Keys};
use crate::error::Error;

/// Llama 3's divisors of frequencies.
pub(super) const FREQUENCIES: &str = "rope_freqs.weight";
/// LongRoPE's divisors for long texts and for others.
pub(super) const LONG: &str = "rope_factors_long.weight";
pub(super) const SHORT: &str = "rope_factors_short.weight";

/// The key of what LongRoPE multiplies rotated numbers by.
const ATTENTION_FACTOR: &str = "rope.scaling.attn_factor";

/// Whether ends of YaRN's interpolation are rounded, which no key says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Rounded,
    Exact,
}

/// Adds theta and scaling of a rope of whole heads.
pub(super) fn add(keys: &Keys<'_>, config: &mut Map<String, Value>) -> Result<(), Error> {
    let width = keys.head_dim()?;
    let supported = format!("{width}, the width of heads");
    keys.require("rope.dimension_count", &supported, |value| value.as_u64() == Some(width as u64))?;
    add_with(keys, config, Ends::Rounded)
}

/// Adds theta, scaling and the rotated part of heads by the name of its key.
pub(super) fn add_partial(keys: &Keys<'_>, config: &mut Map<String, Value>, name: &str) -> Result<(), Error> {
    let width = keys.head_dim()?;
    let rotated = keys.size("rope.dimension_count")?.unwrap_or(width);
    config.insert(name.into(), (rotated as f64 / width as f64).into());
    add_with(keys, config, Ends::Rounded)
}

/// Adds theta and scaling.
pub(super) fn add_with(keys: &Keys<'_>, config: &mut Map<String, Value>, ends: Ends) -> Result<(), Error> {
    config.insert("rope_theta".into(), theta(keys)?.into());
    if let Some(scaling) = scaling(keys, ends)? {
        config.insert("rope_scaling".into(), scaling);
    }
    Ok(())
}

pub(super) fn theta(keys: &Keys<'_>) -> Result<f64, Error> {
    Ok(keys.number("rope.freq_base")?.unwrap_or(10_000.0))
}

/// Returns the scaling in the form of `rope_scaling`.
pub(super) fn scaling(keys: &Keys<'_>, ends: Ends) -> Result<Option<Value>, Error> {
    let numbers = |name: &str| keys.file.numbers.get(name);
    let context = keys.needed("context_length")?;
    let original = keys.size("rope.scaling.original_context_length")?;
    let amplitude = keys.number(ATTENTION_FACTOR)?;
    let kind = keys.text("rope.scaling.type")?.unwrap_or("none");
    if let Some(factors) = numbers(FREQUENCIES) {
        keys.require(ATTENTION_FACTOR, "1.0 beside rope_freqs.weight", |value| value.as_f64() == Some(1.0))?;
        if kind != "none" {
            return Err(keys.unsupported("rope.scaling.type", "none beside rope_freqs.weight"));
        }
        // Divided by factors of their own, as in LongRoPE, at all positions.
        return Ok(Some(json!({
            "rope_type": "longrope", "short_factor": factors, "long_factor": factors, "factor": 1.0,
            "attention_factor": 1.0, "original_max_position_embeddings": context,
        })));
    }
    for (one, other) in [(SHORT, LONG), (LONG, SHORT)] {
        if numbers(one).is_some() && numbers(other).is_none() {
            return Err(Error::Missing {
                key: other.into(),
                file: TENSORS,
                expected: format!("it beside {one}"),
                hint: None,
            });
        }
    }
    if let (Some(short), Some(long)) = (numbers(SHORT), numbers(LONG)) {
        let original = original.unwrap_or(context);
        return Ok(Some(json!({
            "rope_type": "longrope", "short_factor": short, "long_factor": long,
            "factor": context as f64 / original as f64,
            "attention_factor": amplitude.unwrap_or(1.0), "original_max_position_embeddings": original,
        })));
    }
    // OLMo 3's key in files of 2025.
    let of_yarn = amplitude.filter(|_| kind == "yarn" && keys.file.architecture == "olmo2");
    if of_yarn.is_none() {
        let supported = "1.0 without factors of long texts";
        keys.require(ATTENTION_FACTOR, supported, |value| value.as_f64() == Some(1.0))?;
    }
    let factor = |keys: &Keys<'_>| {
        let found = keys.number("rope.scaling.factor")?;
        found.ok_or_else(|| keys.missing("rope.scaling.factor", "a positive number"))
    };
    let mut scaling = match kind {
        "none" => return Ok(None),
        "linear" => json!({ "rope_type": "linear", "factor": factor(keys)? }),
        "yarn" => json!({
            "rope_type": "yarn", "factor": factor(keys)?, "truncate": ends == Ends::Rounded,
            "original_max_position_embeddings": original.unwrap_or(context),
        }),
        _ => return Err(keys.unsupported("rope.scaling.type", "one of none, linear or yarn")),
    };
    if let ("yarn", Some(object)) = (kind, scaling.as_object_mut()) {
        keys.require("rope.scaling.yarn_ext_factor", "1.0", |value| value.as_f64() == Some(1.0))?;
        object.extend(of_yarn.map(|factor| ("attention_factor".to_owned(), factor.into())));
        for (key, name) in [
            ("rope.scaling.yarn_attn_factor", "attention_factor"),
            ("rope.scaling.yarn_beta_fast", "beta_fast"),
            ("rope.scaling.yarn_beta_slow", "beta_slow"),
        ] {
            keys.optional(object, key, name)?;
        }
    }
    Ok(Some(scaling))
}
