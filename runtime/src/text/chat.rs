//! Chat templates: the checkpoint's own, rendered as transformers renders it.

use std::collections::BTreeMap;

use minijinja::{Environment, ErrorKind, Value, syntax::SyntaxConfig, value::Serde};
use serde::Deserialize;

use super::{
    json::to_json,
    message::{Chat, Spelling},
};
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

/// The chat template of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTemplate {
    source: String,
    /// The template for chats with tools, if there is another one for them.
    with_tools: Option<String>,
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
        let (source, with_tools) = match (source, config.chat_template) {
            (Some(source), _) => (source, None),
            (None, Some(templates)) => match templates.select() {
                Some(selected) => selected,
                None => return Ok(None),
            },
            (None, None) => return Ok(None),
        };
        let special = config.rest.into_iter().filter(|(name, _)| name.ends_with("_token"));
        let special = special.filter_map(|(name, value)| Some((name, token_text(value)?))).collect();
        let with_tools = with_tools.map(|source| without_generation_tags(&source));
        Ok(Some(Self { source: without_generation_tags(&source), with_tools, special }))
    }

    /// Returns the Jinja text that renders chats with tools, or those without.
    #[must_use]
    pub fn source(&self, has_tools: bool) -> &str {
        self.with_tools.as_ref().filter(|_| has_tools).unwrap_or(&self.source)
    }

    /// Renders a chat as text, up to the start of the assistant's next answer.
    ///
    /// Encode the text without special tokens, because the template writes them.
    ///
    /// # Errors
    /// The template cannot be parsed, or refuses the chat.
    pub fn render(&self, chat: &Chat) -> Result<String, Error> {
        let mut refused = None;
        for spelling in Spelling::all(chat) {
            match self.render_as(chat, spelling) {
                Ok(text) => return Ok(text),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(Error::ChatTemplate(refused.map_or_else(String::new, |error| error.to_string())))
    }

    fn render_as(&self, chat: &Chat, spelling: Spelling) -> Result<String, minijinja::Error> {
        let Chat { messages, tools, variables } = chat;
        let environment = environment()?;
        let template =
            environment.template_from_named_str("chat_template", self.source(!tools.is_empty()))?;
        let messages: Vec<_> = messages.iter().map(|message| spelling.message(message)).collect();
        let given: [(&str, Value); 4] = [
            ("messages", Serde(messages).into()),
            ("add_generation_prompt", true.into()),
            ("tools", if tools.is_empty() { ().into() } else { Serde(tools).into() }),
            ("documents", ().into()),
        ];
        let special = self.special.iter().map(|(name, text)| (name.as_str(), text.as_str().into()));
        let variables = variables.iter().map(|(name, value)| (name.as_str(), Serde(value).into()));
        template.render(Value::from_pairs(special.chain(variables).chain(given)))
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
    /// Returns the template for plain chats, and that for chats with tools if it is another one.
    fn select(self) -> Option<(String, Option<String>)> {
        match self {
            Self::One(template) => Some((template, None)),
            Self::Named(mut all) => {
                let mut take = |name: &str| {
                    let at = all.iter().position(|named| named.name == name)?;
                    Some(all.swap_remove(at).template)
                };
                Some((take("default")?, take("tool_use")))
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
    use super::{super::message::Message, *};
    use serde_json::json;

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
        template(source).render(&messages.into()).map_err(|error| error.to_string())
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
        check("{{ {'b': [1, 2], 'a': 'ü'} | tojson(separators=(',', ':')) }}", r#"{"b":[1,2],"a":"ü"}"#);
        check("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, ensure_ascii=false) }}", r#"{"a": 2, "b": 1}"#);
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

    /// Returns a chat with one tool, and one call of it by a message without text.
    fn chat_with_call() -> Chat {
        let call =
            json!([{ "type": "function", "function": { "name": "f", "arguments": { "b": 1, "a": "x" } } }]);
        let message = Message { content: None, ..Message::new("assistant", "").with("tool_calls", call) };
        Chat {
            messages: vec![message],
            tools: vec![json!({ "type": "function", "function": { "name": "f" } })],
            variables: json!({ "thinks": false, "messages": [] }).as_object().unwrap().clone(),
        }
    }

    #[test]
    fn calls_are_spelled_as_the_template_takes_them() {
        let check = |source: &str, expected: &str| {
            assert_eq!(template(source).render(&chat_with_call()).unwrap(), expected, "{source}");
        };
        let call = "{% set call = messages[0].tool_calls[0].function %}";
        check(&format!("{call}{{{{ call.arguments | tojson }}}}"), r#"{"b": 1, "a": "x"}"#);
        check(&format!("{call}{{{{ '[' + call.arguments + ']' }}}}"), r#"[{"b":1,"a":"x"}]"#);
        check("{{ messages[0].content is none }}", "True");
        check("{{ 'x' in messages[0].content }}", "False");
        check(&format!("{call}{{{{ messages[0].content + call.arguments }}}}"), r#"{"b":1,"a":"x"}"#);
        check("{{ tools[0].function.name }}{{ thinks }}{{ messages | length }}", "fFalse1");
        let refused = template("{{ raise_exception('no tools') }}").render(&chat_with_call()).unwrap_err();
        assert!(refused.to_string().contains("no tools"));
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
        let named = r#"{"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}"#;
        let found = ChatTemplate::new(None, named).unwrap().unwrap();
        assert_eq!((found.source(false), found.source(true)), ("d", "t"));
        let mut chat = Chat::default();
        assert_eq!(found.render(&chat).unwrap(), "d");
        chat.tools.push(json!({}));
        assert_eq!(found.render(&chat).unwrap(), "t");
        let error = ChatTemplate::new(None, r#"{"chat_template": 3}"#).unwrap_err();
        assert!(mlxcel_artifacts::report(&error).starts_with(
            "error: cannot understand tokenizer_config.json: chat_template: expected a template or a list of named ones"
        ));
    }
}
