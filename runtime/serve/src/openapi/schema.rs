//! Words of JSON Schema.

use serde_json::{Value, json};

/// Returns the schema with this name.
pub(super) fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn boolean(default: bool) -> Value {
    json!({ "type": "boolean", "default": default })
}

/// Returns the schema of numbers in a range.
pub(super) fn number(least: f64, most: f64, default: f64) -> Value {
    json!({ "type": "number", "minimum": least, "maximum": most, "default": default })
}

/// Returns the schema of whole numbers in a range.
pub(super) fn integer(least: i64, most: i64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

/// Returns the schema of whole numbers from 0 on.
pub(super) fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// Returns the schema of token ids.
pub(super) fn token() -> Value {
    integer(0, i64::from(u32::MAX))
}

pub(super) fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

pub(super) fn one_of<const N: usize>(options: [Value; N]) -> Value {
    json!({ "anyOf": options.to_vec() })
}

pub(super) fn choice(options: &[&str]) -> Value {
    json!({ "type": "string", "enum": options })
}

/// Allows `null`.
pub(super) fn nullable(schema: Value) -> Value {
    one_of([schema, json!({ "type": "null" })])
}

/// Says what a schema is for.
pub(super) fn about(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

/// Returns the schema of objects with these properties and no others.
pub(super) fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

/// Returns the schema of a request's body. Fields that are not required may be `null`.
pub(super) fn body(required: &[&str], properties: Value) -> Value {
    let mut object = object(required, properties);
    for (name, schema) in object["properties"].as_object_mut().into_iter().flatten() {
        if !required.contains(&name.as_str()) {
            *schema = nullable(schema.take());
        }
    }
    object
}
