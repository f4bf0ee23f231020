//! Chat templates: the checkpoint's own, rendered as transformers renders it.

use std::collections::BTreeMap;

use minijinja::{Environment, ErrorKind, Value, syntax::SyntaxConfig, value::Kwargs};
use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::{
    checkpoint::{CheckpointFile, CheckpointFiles},
    error::Error,
};

/// The file of a template by itself.
const TEMPLATE: &str = "chat_template.jinja";
/// The file of the special tokens, which has the template in older checkpoints.
const CONFIG: &str = "tokenizer_config.json";
/// The largest number of instructions of a template. It ends endless ones; no real chat comes near it.
const FUEL: u64 = 50_000_000;

/// One turn of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The speaker: `system`, `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// Makes a message of `role`.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }
}

/// The chat template of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTemplate {
    source: String,
    /// The texts of `bos_token`, `eos_token` and other special tokens, which templates use by name.
    special: BTreeMap<String, String>,
}

impl ChatTemplate {
    /// Reads the template of a checkpoint.
    ///
    /// # Errors
    /// The checkpoint has none, or tokenizer_config.json cannot be parsed.
    pub fn from_checkpoint(files: &CheckpointFiles<'_>) -> Result<Self, Error> {
        // Both files come from one place, because a template goes with the special tokens beside it.
        for source in files.sources() {
            let template = source.read(TEMPLATE)?.map(CheckpointFile::into_text).transpose()?;
            let found = match source.read(CONFIG)? {
                Some(CheckpointFile { display_name, bytes }) => Self::parse(template, &bytes, &display_name)?,
                None => Self::parse(template, b"{}", CONFIG)?,
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(Error::NoChatTemplate(files.locations()))
    }

    /// Makes a template of `source`, or else of the text of a tokenizer_config.json; `None` if neither has one.
    ///
    /// # Errors
    /// The tokenizer_config.json cannot be parsed.
    pub fn new(source: Option<String>, tokenizer_config: &str) -> Result<Option<Self>, Error> {
        Self::parse(source, tokenizer_config.as_bytes(), CONFIG)
    }

    fn parse(source: Option<String>, config: &[u8], file: &str) -> Result<Option<Self>, Error> {
        let config: Config =
            serde_json::from_slice(config).map_err(|source| Error::Json { file: file.into(), source })?;
        let Some(source) = source.or(config.chat_template.and_then(Templates::for_chats)) else {
            return Ok(None);
        };
        let special = config.rest.into_iter().filter(|(name, _)| name.ends_with("_token"));
        let special = special.filter_map(|(name, value)| Some((name, token_text(value)?))).collect();
        Ok(Some(Self { source: without_generation_tags(&source), special }))
    }

    /// Renders a chat as text, up to the start of the assistant's next answer.
    ///
    /// Encode the text without special tokens, because the template writes them.
    ///
    /// # Errors
    /// The template cannot be parsed, or refuses the chat.
    pub fn render(&self, messages: &[Message]) -> Result<String, Error> {
        let render = || {
            let environment = environment()?;
            let template = environment.template_from_named_str("chat_template", &self.source)?;
            let values = messages.iter().map(|Message { role, content }| {
                Value::from_pairs([("role", role.as_str()), ("content", content.as_str())])
            });
            let given: [(&str, Value); 4] = [
                ("messages", values.collect()),
                ("add_generation_prompt", true.into()),
                ("tools", ().into()),
                ("documents", ().into()),
            ];
            let special = self.special.iter().map(|(name, text)| (name.as_str(), text.as_str().into()));
            template.render(Value::from_pairs(special.chain(given)))
        };
        render().map_err(|error: minijinja::Error| Error::ChatTemplate(error.to_string()))
    }
}

/// The parts of tokenizer_config.json that a template needs.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    chat_template: Option<Templates>,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

/// One template, or several with names.
#[derive(Deserialize)]
#[serde(untagged, expecting = "chat_template: expected a template or a list of named ones")]
enum Templates {
    One(String),
    Named(Vec<Named>),
}

/// A template with a name.
#[derive(Deserialize)]
struct Named {
    name: String,
    template: String,
}

impl Templates {
    /// Returns the template for plain chats. Others are for tools and documents.
    fn for_chats(self) -> Option<String> {
        match self {
            Self::One(template) => Some(template),
            Self::Named(all) => {
                let found = all.into_iter().find(|named| named.name == "default");
                found.map(|named| named.template)
            }
        }
    }
}

/// Returns the text of a special token, which is a string or an object with one.
fn token_text(value: serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Object(mut object) => object.remove("content").and_then(token_text),
        _ => None,
    }
}

/// Sets Jinja up as transformers does.
fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| {
        Err::<Value, _>(minijinja::Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("tojson", to_json);
    Ok(environment)
}

/// Formats the current time.
fn strftime_now(format: &str) -> Result<String, minijinja::Error> {
    jiff::fmt::strtime::format(format, &jiff::Zoned::now())
        .map_err(|error| minijinja::Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

/// Writes JSON as Python's `json.dumps(value, ensure_ascii=False)` does. Jinja's own filter escapes HTML.
fn to_json(value: &Value, arguments: Kwargs) -> Result<String, minijinja::Error> {
    let indent: Option<usize> = arguments.get("indent")?;
    let fail = |error: serde_json::Error| {
        minijinja::Error::new(ErrorKind::InvalidOperation, format!("cannot write json: {error}"))
    };
    let mut bytes = Vec::new();
    match indent {
        Some(indent) => {
            let indent = " ".repeat(indent.min(16));
            let pretty = PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, pretty)).map_err(fail)?;
        }
        None => {
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Spaced)).map_err(fail)?;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// JSON in one line with a space after commas and colons, as Python writes it.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, to: &mut W) -> std::io::Result<()> {
        to.write_all(b": ")
    }
}

/// Replaces `{% generation %}` by `{% if true %}`, with the same control of white space.
///
/// In transformers the tag marks the assistant's text for training.
fn without_generation_tags(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(end) = rest[start..].find("%}").map(|end| start + end) else { break };
        let inside = &rest[start + 2..end];
        let word = inside.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim();
        let replaced = match word {
            "generation" => inside.replace("generation", " if true "),
            "endgeneration" => inside.replace("endgeneration", " endif "),
            _ => inside.to_string(),
        };
        text.push_str(&rest[..start + 2]);
        text.push_str(&replaced);
        text.push_str("%}");
        rest = &rest[end + 2..];
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHATML: &str = "{% for message in messages %}\
        {% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nBe brief<|im_end|>\n' }}{% endif %}\
        {{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}\
        {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

    const HEADERS: &str = r#"{{- bos_token }}
{%- if strftime_now is defined %}
    {%- set year = strftime_now("%Y") %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\n" }}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool') %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"#;

    fn template(source: &str) -> ChatTemplate {
        let config =
            r#"{"bos_token": "<s>", "eos_token": {"content": "</s>", "special": true}, "pad_token": null}"#;
        ChatTemplate::new(Some(source.into()), config).unwrap().unwrap()
    }

    fn render(source: &str, messages: &[(&str, &str)]) -> Result<String, String> {
        let messages: Vec<Message> = messages.iter().map(|&(role, text)| Message::new(role, text)).collect();
        template(source).render(&messages).map_err(|error| error.to_string())
    }

    #[test]
    fn chat_ml() {
        let found = render(CHATML, &[("user", "Hi"), ("assistant", "Hello"), ("user", "A ü?")]).unwrap();
        assert_eq!(
            found,
            "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n\
             <|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nA ü?<|im_end|>\n<|im_start|>assistant\n"
        );
    }

    #[test]
    fn header_ids() {
        let found = render(HEADERS, &[("system", " Be kind "), ("user", " Hi\n")]).unwrap();
        assert_eq!(
            found,
            "<s><|start_header_id|>system<|end_header_id|>\n\nBe kind<|eot_id|>\
             <|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>\
             <|start_header_id|>assistant<|end_header_id|>\n\n"
        );
    }

    #[test]
    fn templates_can_use_methods_of_python() {
        let user = [("user", " Hi<x> ")];
        let check = |source: &str, expected: &str| assert_eq!(render(source, &user).unwrap(), expected);
        check("{{ messages[0]['content'].strip().upper() }}", "HI<X>");
        check("{{ messages[0].get('name', 'none') }}{{ bos_token + eos_token }}", "none<s></s>");
        check(
            "{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}",
            "role=user;content= Hi<x> ;",
        );
        check("{{ messages | tojson }}", r#"[{"role": "user", "content": " Hi<x> "}]"#);
        check("{{ {'a': [1, none, true], 'b': {}} | tojson }}", r#"{"a": [1, null, true], "b": {}}"#);
        check("{{ {'a': ['ü']} | tojson(indent=2) }}", "{\n  \"a\": [\n    \"ü\"\n  ]\n}");
        check(
            "{% set n = namespace(x=1) %}{% for i in range(3) %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}",
            "4",
        );
        check("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01");
        check("{{ strftime_now('%d %b %Y') | length }}", "11");
        check("{{ pad_token is defined }}{{ unk_token is defined }}", "FalseFalse");
        // A line with a block alone leaves no empty line.
        check("  {% if true %}\nx\n  {% endif %}\ny\n", "x\ny");
    }

    #[test]
    fn generation_tags_are_ignored() {
        let source = "a {%- generation -%} b {% endgeneration %}\n{%- if '{% x %}' %}c{% endif %}";
        assert_eq!(render(source, &[]).unwrap(), "ab c");
    }

    #[test]
    fn templates_that_fail_are_refused() {
        assert_eq!(
            render("{{ raise_exception('Conversation roles must alternate') }}", &[]).unwrap_err(),
            "the chat template failed: invalid operation: Conversation roles must alternate (in chat_template:1)\n\
             hint: leave out --chat and --system to continue the text of -p as it is"
        );
        assert!(render("{% if %}", &[]).unwrap_err().starts_with("the chat template failed: syntax error:"));
        assert!(
            render("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", &[])
                .unwrap_err()
                .contains("fuel")
        );
    }

    #[test]
    fn a_file_of_its_own_takes_precedence() {
        let find = |source: Option<&str>, config: &str| {
            ChatTemplate::new(source.map(Into::into), config).unwrap().map(|template| template.source)
        };
        assert_eq!(find(None, "{}"), None);
        assert_eq!(find(None, r#"{"chat_template": null}"#), None);
        assert_eq!(find(None, r#"{"chat_template": "a"}"#).unwrap(), "a");
        assert_eq!(find(Some("b"), r#"{"chat_template": "a"}"#).unwrap(), "b");
        let named =
            r#"{"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]}"#;
        assert_eq!(find(None, named).unwrap(), "d");
        let error = ChatTemplate::new(None, r#"{"chat_template": 3}"#).unwrap_err();
        assert!(mlxcel_artifacts::report(&error).starts_with(
            "error: cannot understand tokenizer_config.json: chat_template: expected a template or a list of named ones"
        ));
    }
}
