//! The part of JSON Schema that the document uses. A crate for all of it would build `serde_json` with other features, and
//! so everything a second time.

use mlxcel_artifacts::Digest;
use serde_json::{Map, Value};

/// Returns whether a schema of a document allows a value.
///
/// # Panics
/// The schema has a word that is not known here.
pub(super) fn allows(document: &Value, schema: &Value, value: &Value) -> bool {
    let all = |schema: &Value, value: &Value| allows(document, schema, value);
    let number = |limit: &Value| (value.as_f64().unwrap_or_default(), limit.as_f64().unwrap());
    let length = |limit: &Value| {
        let found = value.as_array().map(Vec::len).or(value.as_str().map(|text| text.chars().count()));
        (found.unwrap_or_default(), limit.as_u64().unwrap() as usize)
    };
    let schema = schema.as_object().unwrap();
    schema.iter().all(|(word, limit)| match word.as_str() {
        "$ref" => all(document.pointer(limit.as_str().unwrap().trim_start_matches('#')).unwrap(), value),
        "description" | "default" => true,
        "type" => is_of(limit.as_str().unwrap(), value),
        "const" => value == limit,
        "enum" => limit.as_array().unwrap().contains(value),
        "anyOf" => limit.as_array().unwrap().iter().any(|option| all(option, value)),
        "minimum" => !value.is_number() || number(limit).0 >= number(limit).1,
        "maximum" => !value.is_number() || number(limit).0 <= number(limit).1,
        "minItems" => !value.is_array() || length(limit).0 >= length(limit).1,
        "maxItems" => !value.is_array() || length(limit).0 <= length(limit).1,
        "minLength" => !value.is_string() || length(limit).0 >= length(limit).1,
        "pattern" => value.as_str().is_none_or(|text| matches_pattern(limit.as_str().unwrap(), text)),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| all(limit, item))),
        "required" => value.as_object().is_none_or(|fields| {
            limit.as_array().unwrap().iter().all(|name| fields.contains_key(name.as_str().unwrap()))
        }),
        "properties" => value.as_object().is_none_or(|fields| {
            fields.iter().all(|(name, value)| limit.get(name).is_none_or(|schema| all(schema, value)))
        }),
        "propertyNames" => value
            .as_object()
            .is_none_or(|fields| fields.keys().all(|name| all(limit, &Value::from(name.as_str())))),
        "additionalProperties" => {
            let known = |name: &String| {
                schema.get("properties").and_then(|properties| properties.get(name)).is_some()
            };
            let empty = Map::new();
            let fields = value.as_object().unwrap_or(&empty).iter().filter(|(name, _)| !known(name));
            fields.map(|(_, value)| value).all(|value| *limit != false && all(limit, value))
        }
        _ => panic!("the word {word} is not known"),
    })
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("the type {kind} is not known"),
    }
}

/// Matches the pattern of digests, and `^[CLASS]{MIN,MAX}$`, where a class is letters, digits and some signs, or digits
/// alone.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    if pattern == "^blake3:[0-9a-f]{64}$" {
        return text.parse::<Digest>().is_ok();
    }
    let parts = pattern.strip_prefix("^[").and_then(|rest| rest.strip_suffix("}$"));
    let (class, count) = parts.and_then(|parts| parts.split_once("]{")).unwrap();
    let (least, most) = count.split_once(',').unwrap();
    let signs = class.strip_prefix("a-zA-Z0-9");
    let is_in = |c: char| match signs {
        Some(signs) => c.is_ascii_alphanumeric() || signs.contains(c),
        None => c.is_ascii_digit() && class == "0-9",
    };
    (least.parse().unwrap()..=most.parse::<usize>().unwrap()).contains(&text.len()) && text.chars().all(is_in)
}
