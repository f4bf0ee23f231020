//! The messages of a chat, as clients send them.

use mlxcel_runtime::Message;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{error::ApiError, object::Object};

/// Roles that a template knows. `developer` is OpenAI's newer name of `system`.
const ROLES: [(&str, &str); 5] = [
    ("system", "system"),
    ("developer", "system"),
    ("user", "user"),
    ("assistant", "assistant"),
    ("tool", "tool"),
];

/// A message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a message")]
pub(super) struct WireMessage {
    role: String,
    #[serde(default)]
    content: Option<Content>,
    /// The speaker among several of one role, or the function of a result.
    #[serde(default)]
    name: Option<String>,
    /// What the model refused to say, which clients send back.
    #[serde(default)]
    refusal: Option<String>,
    /// The model's reasoning, which clients may send back.
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Object<WireCall>>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

/// A text, or its parts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a string or a list of parts")]
enum Content {
    Text(String),
    Parts(Vec<Object<Part>>),
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

/// A call that the model has made.
#[derive(Deserialize)]
#[serde(expecting = "a call")]
struct WireCall {
    id: String,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    function: Object<CalledFunction>,
}

#[derive(Deserialize)]
#[serde(expecting = "a function")]
struct CalledFunction {
    name: String,
    arguments: String,
}

/// Makes messages for a template. A result of a call gets the name of its function.
pub(super) fn parse(messages: Vec<Object<WireMessage>>) -> Result<Vec<Message>, ApiError> {
    let mut called: Vec<(String, String)> = Vec::new();
    let mut parsed = Vec::with_capacity(messages.len());
    for (index, Object(mut message)) in messages.into_iter().enumerate() {
        for Object(call) in message.tool_calls.iter().flatten() {
            called.push((call.id.clone(), call.function.0.name.clone()));
        }
        if let (None, Some(id)) = (&message.name, &message.tool_call_id) {
            let call = called.iter().rev().find(|(known, _)| known == id);
            message.name = call.map(|(_, name)| name.clone());
        }
        parsed.push(message.parse(index)?);
    }
    Ok(parsed)
}

impl WireMessage {
    fn parse(self, index: usize) -> Result<Message, ApiError> {
        let at = |field: &str| format!("messages[{index}].{field}");
        let Some((_, role)) = ROLES.iter().find(|(name, _)| *name == self.role) else {
            let known = ROLES.map(|(name, _)| name).join(", ");
            let message = format!("the role is `{}`, expected one of {known}", self.role);
            return Err(ApiError::invalid_field(at("role"), message));
        };
        let refuse_unless = |is_given: bool, expected: &str, field: &str| {
            let message = || format!("{field} is given by role `{}`, expected it by `{expected}`", self.role);
            if is_given && *role != expected {
                Err(ApiError::invalid_field(at(field), message()))
            } else {
                Ok(())
            }
        };
        refuse_unless(self.tool_calls.is_some(), "assistant", "tool_calls")?;
        refuse_unless(self.refusal.is_some(), "assistant", "refusal")?;
        refuse_unless(self.reasoning_content.is_some(), "assistant", "reasoning_content")?;
        refuse_unless(self.tool_call_id.is_some(), "tool", "tool_call_id")?;
        let content = match self.content {
            Some(Content::Text(text)) => Some(text),
            Some(Content::Parts(parts)) => Some(join(parts, &at("content"))?),
            None => self.refusal,
        };
        if content.is_none() && *role != "assistant" {
            let message = format!("found no content, which role `{}` must have", self.role);
            return Err(ApiError::invalid_field(at("content"), message));
        }
        let calls = self.tool_calls.filter(|calls| !calls.is_empty());
        let mut fields = Map::new();
        if *role == "tool" {
            let Some(id) = self.tool_call_id else {
                let message = "found no tool_call_id, expected that of the call";
                return Err(ApiError::invalid_field(at("tool_call_id"), message));
            };
            fields.insert("tool_call_id".into(), id.into());
            if let Some(name) = self.name {
                fields.insert("name".into(), name.into());
            }
        }
        if let Some(reasoning) = self.reasoning_content {
            fields.insert("reasoning_content".into(), reasoning.into());
        }
        let content = if calls.is_some() { content } else { Some(content.unwrap_or_default()) };
        if let Some(calls) = calls {
            let calls = calls.into_iter().enumerate();
            let calls = calls.map(|(call, Object(wire))| wire.parse(&at(&format!("tool_calls[{call}]"))));
            fields.insert("tool_calls".into(), calls.collect::<Result<Vec<_>, _>>()?.into());
        }
        Ok(Message { role: (*role).to_owned(), content, fields })
    }
}

impl WireCall {
    fn parse(self, at: &str) -> Result<Value, ApiError> {
        if let Some(kind) = self.kind.filter(|kind| kind != "function") {
            let message = format!("the type is `{kind}`, but only `function` is supported");
            return Err(ApiError::invalid_field(format!("{at}.type"), message));
        }
        let Object(CalledFunction { name, arguments }) = self.function;
        let parsed =
            if arguments.trim().is_empty() { Ok(Map::new()) } else { serde_json::from_str(&arguments) };
        let arguments = parsed.map_err(|error| {
            let message = format!("the arguments are no JSON object: {error}");
            ApiError::invalid_field(format!("{at}.function.arguments"), message)
        })?;
        let function = json!({ "name": name, "arguments": arguments });
        Ok(json!({ "id": self.id, "type": "function", "function": function }))
    }
}

/// Joins the parts of a text.
fn join(parts: Vec<Object<Part>>, at: &str) -> Result<String, ApiError> {
    let mut joined = String::new();
    for (index, Object(Part { kind, text })) in parts.into_iter().enumerate() {
        let Some(text) = text.filter(|_| kind == "text") else {
            let message = format!("a part is of type `{kind}`, but only `text` with its text is supported");
            return Err(ApiError::invalid_field(format!("{at}[{index}]"), message));
        };
        joined.push_str(&text);
    }
    Ok(joined)
}
