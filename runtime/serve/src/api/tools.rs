//! The functions of a request: `tools`, `tool_choice` and `parallel_tool_calls`.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{error::ApiError, fields::Fields, object::Object};
use crate::tools::{CallRules, Function};

/// The most functions of a request, as OpenAI has it.
pub(crate) const MAX_FUNCTIONS: usize = 128;

/// The functions of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tools {
    /// Functions that may be called.
    pub(crate) functions: Vec<Function>,
    pub(crate) rules: CallRules,
    /// The functions as templates take them.
    pub(crate) definitions: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a tool")]
struct WireTool {
    #[serde(rename = "type")]
    kind: String,
    function: Object<WireFunction>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a function")]
struct WireFunction {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Map<String, Value>>,
    #[serde(default)]
    strict: Option<bool>,
}

/// `tool_choice`: a mode, or a function.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a mode, or a function by its name")]
enum WireChoice {
    Mode(String),
    Function(Object<NamedChoice>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedChoice {
    #[serde(rename = "type")]
    kind: String,
    function: Object<NamedFunction>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedFunction {
    name: String,
}

impl Tools {
    /// Takes the fields of a request.
    ///
    /// # Errors
    /// A field has another form, two functions have one name, or a choice is not supported.
    pub(super) fn take(fields: &mut Fields) -> Result<Self, ApiError> {
        let tools: Vec<Object<WireTool>> = fields.take("tools")?.unwrap_or_default();
        if tools.len() > MAX_FUNCTIONS {
            let message = format!("found {} tools, expected at most {MAX_FUNCTIONS}", tools.len());
            return Err(ApiError::invalid_field("tools", message));
        }
        if tools.is_empty() {
            let choice = fields.take::<Value>("tool_choice")?.is_some_and(|choice| choice != "none");
            let is_parallel = fields.take::<bool>("parallel_tool_calls")?.is_some();
            for (name, is_given) in [("tool_choice", choice), ("parallel_tool_calls", is_parallel)] {
                if is_given {
                    let message = format!("{name} is given without tools, expected both");
                    return Err(ApiError::invalid_field(name, message));
                }
            }
            return Ok(Self::none());
        }
        let mut found = Self::none();
        for (index, Object(tool)) in tools.into_iter().enumerate() {
            found.add(tool, &format!("tools[{index}]"))?;
        }
        found.rules.is_parallel = fields.take("parallel_tool_calls")?.unwrap_or(true);
        match fields.take("tool_choice")? {
            None => {}
            Some(WireChoice::Mode(mode)) if mode == "auto" => {}
            Some(WireChoice::Mode(mode)) if mode == "none" => return Ok(Self::none()),
            Some(WireChoice::Mode(mode)) if mode == "required" => found.rules.is_required = true,
            Some(WireChoice::Mode(mode)) => {
                let message =
                    format!("tool_choice is `{mode:.80}`, expected auto, none, required or a function");
                return Err(ApiError::invalid_field("tool_choice", message));
            }
            Some(WireChoice::Function(Object(choice))) => found.choose(&choice)?,
        }
        Ok(found)
    }

    fn none() -> Self {
        let rules = CallRules { is_required: false, is_parallel: true };
        Self { functions: vec![], rules, definitions: vec![] }
    }

    /// Leaves one function, which has to be called once. The template has the others, too.
    fn choose(&mut self, choice: &NamedChoice) -> Result<(), ApiError> {
        let NamedChoice { kind, function: Object(NamedFunction { name }) } = choice;
        if kind != "function" {
            let message = format!("the type is `{kind:.80}`, but only `function` is supported");
            return Err(ApiError::invalid_field("tool_choice.type", message));
        }
        self.functions.retain(|function| function.name == *name);
        if self.functions.is_empty() {
            let message = format!("no function is named `{name:.80}`, expected one of the tools");
            return Err(ApiError::invalid_field("tool_choice.function.0.name", message));
        }
        self.rules = CallRules { is_required: true, is_parallel: false };
        Ok(())
    }

    fn add(&mut self, tool: WireTool, at: &str) -> Result<(), ApiError> {
        let WireTool { kind, function } = tool;
        let Object(WireFunction { name, description, parameters, strict }) = function;
        if kind != "function" {
            let message = format!("the type is `{kind}`, but only `function` is supported");
            return Err(ApiError::invalid_field(format!("{at}.type"), message));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
            let message = format!("the name is `{name:.80}`, expected 1 to 64 of a-z, A-Z, 0-9, _, - and .");
            return Err(ApiError::invalid_field(format!("{at}.function.name"), message));
        }
        if self.functions.iter().any(|known| known.name == name) {
            let message = format!("two functions are named `{name}`, expected different names");
            return Err(ApiError::invalid_field(format!("{at}.function.name"), message));
        }
        let none = || Map::from_iter([("type".into(), json!("object")), ("properties".into(), json!({}))]);
        let parameters = parameters.unwrap_or_else(none);
        // Templates of some checkpoints fail without a description.
        let description = description.unwrap_or_default();
        let function = json!({ "name": name, "description": description, "parameters": parameters });
        self.definitions.push(json!({ "type": "function", "function": function }));
        self.functions.push(Function { name, parameters, is_strict: strict == Some(true) });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(body: &Value) -> Result<Tools, String> {
        let mut fields = Fields::parse(body.to_string().as_bytes()).unwrap();
        let found = Tools::take(&mut fields).map_err(|error| {
            let error = error.to_json();
            format!(
                "{}: {}",
                error["error"]["param"].as_str().unwrap(),
                error["error"]["message"].as_str().unwrap()
            )
        });
        found.inspect(|_| fields.finish().unwrap())
    }

    #[test]
    fn functions_have_a_description_and_parameters() {
        let tool = json!({ "type": "function", "function": { "name": "f" } });
        let found =
            take(&json!({ "tools": [tool], "tool_choice": "auto", "parallel_tool_calls": true })).unwrap();
        insta::assert_snapshot!(found.definitions[0], @r#"{"type":"function","function":{"name":"f","description":"","parameters":{"type":"object","properties":{}}}}"#);
        assert_eq!(found.functions[0].name, "f");
        assert_eq!(take(&json!({ "tools": [tool], "tool_choice": "none" })).unwrap(), Tools::none());
        assert_eq!(take(&json!({})).unwrap(), Tools::none());
    }

    #[test]
    fn tools_that_are_refused() {
        let tool = |function: Value| json!({ "type": "function", "function": function });
        let tools = |tools: Value| take(&json!({ "tools": tools })).unwrap_err();
        let f = tool(json!({ "name": "f" }));
        insta::assert_snapshot!([
            tools(json!([{ "type": "web_search", "function": { "name": "f" } }])),
            tools(json!([f, f])),
            tools(json!([tool(json!({ "name": "a b" }))])),
            tools(json!([tool(json!({ "name": "a", "parameters": [] }))])),
            tools(json!([3])),
            tools(json!(vec![f.clone(); 129])),
            take(&json!({ "tools": [f], "tool_choice": "always" })).unwrap_err(),
            take(&json!({ "tools": [f], "tool_choice": 3 })).unwrap_err(),
            take(&json!({ "tools": [f], "tool_choice": { "type": "custom", "function": { "name": "f" } } }))
                .unwrap_err(),
            take(&json!({ "tools": [f], "tool_choice": { "type": "function", "function": { "name": "g" } } }))
                .unwrap_err(),
            take(&json!({ "tool_choice": "auto" })).unwrap_err(),
        ].join("\n"), @r#"
        tools[0].type: the type is `web_search`, but only `function` is supported
        tools[1].function.name: two functions are named `f`, expected different names
        tools[0].function.name: the name is `a b`, expected 1 to 64 of a-z, A-Z, 0-9, _, - and .
        tools[0].function.parameters: tools[0].function.parameters: invalid type: sequence, expected a map
        tools[0]: tools[0]: invalid type: integer `3`, expected a tool
        tools: found 129 tools, expected at most 128
        tool_choice: tool_choice is `always`, expected auto, none, required or a function
        tool_choice: tool_choice: a mode, or a function by its name
        tool_choice.type: the type is `custom`, but only `function` is supported
        tool_choice.function.0.name: no function is named `g`, expected one of the tools
        tool_choice: tool_choice is given without tools, expected both
        "#);
    }
}
