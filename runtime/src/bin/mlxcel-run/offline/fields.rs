//! The fields of a request, which is a JSON object in a line.

use std::fmt;

use mlxcel_runtime::{Drawing, GREEDY, Message};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::{Map, Value};

/// What a line asks for. Whatever is `None` is as the command line says.
#[derive(Debug, PartialEq)]
pub(super) struct Fields {
    pub(super) prompt: Prompt,
    pub(super) max_tokens: Option<usize>,
    pub(super) drawing: Drawing,
    pub(super) stop: Option<Vec<String>>,
    pub(super) logprobs: Option<usize>,
    pub(super) ignore_eos: Option<bool>,
}

/// The prompt of a line.
#[derive(Debug, PartialEq)]
pub(super) enum Prompt {
    Text(String),
    Messages(Vec<Message>),
    Tokens(Vec<u32>),
}

/// Each field with its values and a hint.
const FIELDS: [(&str, &str, &str); 13] = [
    ("id", "a text or a whole number", "leave it out: every answer has the number of its line"),
    ("prompt", "a text", "give token ids as tokens, and each of several prompts its own line"),
    (
        "messages",
        "a list of objects with role and content, both texts",
        "the last message is usually {\"role\": \"user\", \"content\": \"Hello\"}",
    ),
    ("tokens", "a list of at least one token id", "give ids of the model's own tokenizer, as in [1, 2, 3]"),
    (
        "max_tokens",
        "a whole number, 0 or more",
        "a large number goes on until the text ends or the context is full",
    ),
    ("temperature", "a number, 0 or more", GREEDY),
    ("top_k", "a whole number, 0 or more", "0 draws from all tokens"),
    ("top_p", "a number, above 0 and at most 1", "1 draws from all tokens"),
    ("min_p", "a number, 0 to 1", "0 draws from all tokens"),
    (
        "seed",
        "a whole number from 0 to 18446744073709551615",
        "without it, the line has the seed of the command line plus its number",
    ),
    ("stop", "a text of at least one character, or a list of such", "[] stops at no text"),
    ("logprobs", "a whole number, 0 or more", "0 records none"),
    ("ignore_eos", "true or false", "leave it out to end at the model's end of text"),
];

/// An object none of whose fields is given twice.
struct Object(Map<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Object, A::Error> {
                let mut found = Map::new();
                while let Some((name, value)) = access.next_entry::<String, Value>()? {
                    if found.insert(name.clone(), value).is_some() {
                        return Err(A::Error::custom(format!("{} is given twice", quoted(&name))));
                    }
                }
                Ok(Object(found))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Parses a line. Returns its id if it can be told, also with an error.
pub(super) fn parse(text: &[u8]) -> (Option<Value>, Result<Fields, String>) {
    let object = str::from_utf8(text)
        .map_err(|error| {
            let offset = error.valid_up_to();
            format!(
                "the line is not UTF-8 at offset {offset}, expected a JSON object\n\
                 hint: convert the file with iconv -t UTF-8"
            )
        })
        .and_then(|text| serde_json::from_str::<Object>(text).map_err(|error| not_an_object(&error)));
    let mut object = match object {
        Ok(Object(object)) => object,
        Err(error) => return (None, Err(error)),
    };
    let id = take(&mut object, "id", |value| {
        let is_id = value.is_string() || value.is_u64() || value.is_i64();
        is_id.then_some(value)
    });
    match id {
        Ok(id) => (id, fields(object)),
        Err(error) => (None, Err(error)),
    }
}

fn not_an_object(error: &serde_json::Error) -> String {
    // There is one line, and its number is said elsewhere.
    let reason = error.to_string().replace(" at line 1 column ", " at column ");
    format!(
        "the line is no request: {reason}, expected an object such as {{\"prompt\": \"Hello\"}}\n\
         hint: write each request in one line, as jq -c does"
    )
}

/// Reads all fields but the id.
fn fields(mut object: Map<String, Value>) -> Result<Fields, String> {
    if let Some(name) = object.keys().find(|name| FIELDS.iter().all(|(known, ..)| known != name)) {
        let known: Vec<&str> = FIELDS.iter().map(|(name, ..)| *name).collect();
        return Err(format!(
            "found the unknown field {}, expected some of {}\nhint: correct its name, or remove it",
            quoted(name),
            known.join(", ")
        ));
    }
    let object = &mut object;
    let prompt = prompt(object)?;
    let whole = |value: Value| value.as_u64();
    let size = |value: Value| value.as_u64().and_then(|value| usize::try_from(value).ok());
    #[expect(
        clippy::cast_possible_truncation,
        reason = "settings have 32 bits; what is too large is infinite"
    )]
    let number = |value: Value| value.as_f64().map(|value| value as f32);
    Ok(Fields {
        prompt,
        max_tokens: take(object, "max_tokens", size)?,
        drawing: Drawing {
            temperature: take(object, "temperature", number)?,
            top_k: take(object, "top_k", size)?,
            top_p: take(object, "top_p", number)?,
            min_p: take(object, "min_p", number)?,
            seed: take(object, "seed", whole)?,
        },
        stop: take(object, "stop", stops)?,
        logprobs: take(object, "logprobs", size)?,
        ignore_eos: take(object, "ignore_eos", |value| value.as_bool())?,
    })
}

/// Reads the one prompt.
fn prompt(object: &mut Map<String, Value>) -> Result<Prompt, String> {
    let text = take(object, "prompt", |value| Some(value.as_str()?.to_owned()))?.map(Prompt::Text);
    let messages = take(object, "messages", messages)?.map(Prompt::Messages);
    let tokens = take(object, "tokens", tokens)?.map(Prompt::Tokens);
    let names = [("prompt", text.is_some()), ("messages", messages.is_some()), ("tokens", tokens.is_some())];
    let given: Vec<&str> = names.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    match (text.or(messages).or(tokens), given.len()) {
        (Some(prompt), 1) => Ok(prompt),
        (_, count) => Err(format!(
            "found {}, expected one of prompt, messages and tokens\n\
             hint: prompt is a text to continue, messages is a chat",
            if count == 0 { "no prompt".to_owned() } else { given.join(" and ") }
        )),
    }
}

/// Takes a field out of the object; `None` if it is not there or null.
fn take<T>(
    object: &mut Map<String, Value>,
    name: &str,
    read: impl FnOnce(Value) -> Option<T>,
) -> Result<Option<T>, String> {
    let Some(value) = object.get_mut(name).map(Value::take).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let found = shown(&value);
    read(value).map(Some).ok_or_else(|| {
        let field = FIELDS.iter().find(|(known, ..)| *known == name);
        let (_, expected, hint) = field.copied().unwrap_or((name, "another value", "leave it out"));
        format!("{name} is {found}, expected {expected}\nhint: {hint}")
    })
}

fn messages(value: Value) -> Option<Vec<Message>> {
    let message = |value: &Value| {
        let object = value.as_object().filter(|object| object.len() == 2)?;
        let text = |name: &str| object.get(name)?.as_str();
        Some(Message::new(text("role")?, text("content")?))
    };
    let found: Option<Vec<Message>> = value.as_array()?.iter().map(message).collect();
    found.filter(|messages| !messages.is_empty())
}

fn tokens(value: Value) -> Option<Vec<u32>> {
    let id = |value: &Value| u32::try_from(value.as_u64()?).ok();
    let found: Option<Vec<u32>> = value.as_array()?.iter().map(id).collect();
    found.filter(|tokens| !tokens.is_empty())
}

fn stops(value: Value) -> Option<Vec<String>> {
    let list = match value {
        Value::Array(list) => list,
        text => vec![text],
    };
    let text = |value: Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    list.into_iter().map(text).collect()
}

/// Renders the start of a value.
fn shown(value: &Value) -> String {
    shortened(value.to_string())
}

fn quoted(name: &str) -> String {
    shortened(format!("`{}`", name.escape_debug()))
}

fn shortened(mut text: String) -> String {
    const MOST: usize = 60;
    if let Some((end, _)) = text.char_indices().nth(MOST) {
        text.truncate(end);
        text.push('…');
    }
    text
}
