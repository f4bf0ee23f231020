//! Conversations, as chat templates read them.

use serde_json::{Map, Value, json};

/// One turn of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The speaker: `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The text; `None` if the message has only tool calls.
    pub content: Option<String>,
    /// Other fields, such as `tool_calls` or `tool_call_id`. The arguments of a call are an object.
    pub fields: Map<String, Value>,
}

impl Message {
    /// Makes a message of `role`.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: Some(content.into()), fields: Map::new() }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }
}

/// A conversation, and what else a template takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chat {
    /// The turns.
    pub messages: Vec<Message>,
    /// Functions that the model may call, each `{"type": "function", "function": {…}}`.
    pub tools: Vec<Value>,
    /// Variables of this checkpoint's template, such as `enable_thinking`.
    pub variables: Map<String, Value>,
}

impl From<Vec<Message>> for Chat {
    /// Makes a chat without tools.
    fn from(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }
}

/// How messages with tool calls are given to a template.
///
/// transformers passes what it gets, so that templates differ in what they can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// The arguments of a call are a text, in place of an object.
    text_arguments: bool,
    /// A message without text has an empty one, in place of none.
    empty_content: bool,
}

impl Spelling {
    /// Returns all spellings of a chat, the usual one first.
    pub(super) fn all(chat: &Chat) -> impl Iterator<Item = Self> {
        let is_plain = |message: &Message| message.content.is_some() && message.fields.is_empty();
        let count = if chat.messages.iter().all(is_plain) { 1 } else { 4 };
        let all = [(false, false), (false, true), (true, false), (true, true)];
        let spelling = |(text_arguments, empty_content)| Self { text_arguments, empty_content };
        all.into_iter().take(count).map(spelling)
    }

    /// Returns a message as JSON.
    pub(super) fn message(self, message: &Message) -> Value {
        let Message { role, content, fields } = message;
        let content = match content {
            None if self.empty_content => Some(""),
            content => content.as_deref(),
        };
        let mut object = json!({ "role": role, "content": content });
        for (name, value) in fields {
            object[name] = value.clone();
        }
        if self.text_arguments {
            for call in object.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(arguments) =
                    call.pointer_mut("/function/arguments").filter(|value| value.is_object())
                {
                    *arguments = arguments.to_string().into();
                }
            }
        }
        object
    }
}
