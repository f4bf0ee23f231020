//! What an answer must be: `response_format`, `regex` and `grammar`.

use mlxcel_runtime::grammar::Constraint;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{error::ApiError, fields::Fields, object::Object};

/// `response_format`, by its `type`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum ResponseFormat {
    Text {},
    JsonObject {},
    JsonSchema { json_schema: Object<NamedSchema> },
}

/// A schema with its name, as OpenAI has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a schema with a name")]
struct NamedSchema {
    name: Option<String>,
    /// For the model, which is not told of the schema.
    #[serde(default, rename = "description")]
    _description: Option<String>,
    /// Every schema is enforced, so that false changes nothing.
    #[serde(default, rename = "strict")]
    _strict: Option<bool>,
    #[serde(default)]
    schema: Option<Map<String, Value>>,
}

/// Takes what the answer must be. `None` if it may be any text.
///
/// # Errors
/// A field has another form, or there are several.
pub(super) fn take(fields: &mut Fields) -> Result<Option<Constraint>, ApiError> {
    let of_format = match fields.take("response_format")? {
        None | Some(Object(ResponseFormat::Text {})) => None,
        Some(Object(ResponseFormat::JsonObject {})) => Some(Constraint::json_object()),
        Some(Object(ResponseFormat::JsonSchema { json_schema })) => Some(json_schema.0.constraint()?),
    };
    let found = [
        ("response_format", of_format),
        ("regex", fields.take("regex")?.map(Constraint::Regex)),
        ("grammar", fields.take("grammar")?.map(lark).transpose()?),
    ];
    let mut found = found.into_iter().filter_map(|(name, constraint)| Some((name, constraint?)));
    let first = found.next();
    if let (Some((first, _)), Some((second, _))) = (&first, found.next()) {
        let message = format!("{first} and {second} are given, expected one of them");
        return Err(ApiError::invalid_field(second, message));
    }
    Ok(first.map(|(_, constraint)| constraint))
}

/// Returns the constraint of a grammar. llama.cpp's have another form.
fn lark(grammar: String) -> Result<Constraint, ApiError> {
    if grammar.contains("::=") {
        let message = "the grammar has `::=`, expected Lark, whose rules have `:`";
        return Err(ApiError::invalid_field("grammar", message));
    }
    Ok(Constraint::Lark(grammar))
}

impl NamedSchema {
    fn constraint(self) -> Result<Constraint, ApiError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = self.name.unwrap_or_default();
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
            let message = format!("the name is `{name:.80}`, expected 1 to 64 of a-z, A-Z, 0-9, _ and -");
            return Err(ApiError::invalid_field("response_format.json_schema.name", message));
        }
        Ok(self
            .schema
            .map_or_else(Constraint::json_object, |schema| Constraint::JsonSchema(Value::Object(schema))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(body: &Value) -> Result<Option<Constraint>, String> {
        let mut fields = Fields::parse(body.to_string().as_bytes()).unwrap();
        let found = take(&mut fields).map_err(|error| error.to_json()["error"]["message"].to_string());
        found.inspect(|_| fields.finish().unwrap())
    }

    #[test]
    fn formats() {
        assert_eq!(parse(&json!({})), Ok(None));
        assert_eq!(parse(&json!({ "response_format": { "type": "text" } })), Ok(None));
        let object = Constraint::json_object();
        assert_eq!(parse(&json!({ "response_format": { "type": "json_object" } })), Ok(Some(object.clone())));
        let of =
            |schema: Value| json!({ "response_format": { "type": "json_schema", "json_schema": schema } });
        let schema = json!({ "type": "object" });
        let named = json!({ "name": "n", "strict": true, "description": "d", "schema": schema });
        assert_eq!(parse(&of(named)), Ok(Some(Constraint::JsonSchema(schema))));
        assert_eq!(parse(&of(json!({ "name": "n" }))), Ok(Some(object)));
        assert_eq!(parse(&json!({ "regex": "a" })), Ok(Some(Constraint::Regex("a".into()))));
        assert_eq!(parse(&json!({ "grammar": "a" })), Ok(Some(Constraint::Lark("a".into()))));
    }

    #[test]
    fn formats_that_are_refused() {
        let format = |format: Value| parse(&json!({ "response_format": format })).unwrap_err();
        let schema = |schema: Value| format(json!({ "type": "json_schema", "json_schema": schema }));
        insta::assert_snapshot!([
            format(json!({ "type": "xml" })),
            format(json!({ "type": "json_object", "schema": {} })),
            format(json!({ "type": "json_schema" })),
            schema(json!({ "name": "a b" })),
            schema(json!({ "name": "a", "schema": 3 })),
            parse(&json!({ "regex": "a", "grammar": "b" })).unwrap_err(),
            parse(&json!({ "grammar": "root ::= \"a\"" })).unwrap_err(),
        ].join("\n"), @r#"
        "response_format.type: unknown variant `xml`, expected one of `text`, `json_object`, `json_schema`"
        "response_format: unknown field `schema`, there are no fields"
        "response_format: missing field `json_schema`"
        "the name is `a b`, expected 1 to 64 of a-z, A-Z, 0-9, _ and -"
        "response_format: invalid type: integer `3`, expected a map"
        "regex and grammar are given, expected one of them"
        "the grammar has `::=`, expected Lark, whose rules have `:`"
        "#);
    }
}
