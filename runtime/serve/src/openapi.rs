//! The OpenAPI document of the server: every path, what it takes, and what it answers.
//!
//! Tests compare it with the routes, with the fields that requests are parsed for, and with their ranges.

mod answers;
mod operations;
mod requests;
mod schema;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

/// Returns the document of a server of models with these names. With `needs_key`, clients need one of its keys.
pub(crate) fn document(needs_key: bool, models: &[&str]) -> Value {
    let mut schemas = Map::new();
    for (name, schema) in requests::schemas(models).into_iter().chain(answers::schemas()) {
        schemas.insert(name.to_owned(), schema);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "mlxcel-serve",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Language models and encoders, in the wire format of OpenAI's API",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": operations::paths(needs_key),
        "components": {
            "schemas": schemas,
            "responses": operations::errors(),
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer" },
                "admin": { "type": "http", "scheme": "bearer" },
            },
        },
    })
}
