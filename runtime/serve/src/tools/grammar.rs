//! Grammars of answers with calls, in llguidance's form of Lark.
//!
//! A model can call nothing but the functions of the request, with arguments of their schemas, and says what it wants
//! besides, unless a call is required.

use std::fmt::Write as _;

use mlxcel_runtime::{Tokenizer, grammar::Constraint};
use serde_json::{Value, json};

use super::{
    Function,
    form::{
        ARGS, CHANNEL, CONSTRAIN, CallForm, END, MESSAGE, PYTHON_TAG, ReasoningMarkers, START, TOOL_CALL_END,
    },
    parts::Expected,
};

/// What a request says of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallRules {
    /// Whether the answer has to be a call.
    pub(crate) is_required: bool,
    /// Whether an answer can have several.
    pub(crate) is_parallel: bool,
}

/// Whose schemas are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enforced {
    All,
    /// Arguments of other functions are any JSON object.
    Strict,
}

/// Texts of any length, and those that do not begin as calls of Llama.
const TERMINALS: &str = r#"
TEXT: /(.|\n)*/
PLAIN: TEXT & ~/\s*\{\s*"(name|type)"\s*:(.|\n)*/
SPACE: /[ \n]{0,4}/
"#;

/// Words of a text's schema that are enforced between tags, or that say nothing of its value.
const TEXT_WORDS: [&str; 9] =
    ["type", "enum", "description", "title", "default", "examples", "deprecated", "$comment", "$id"];

/// A word of a schema that cannot be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnenforcedWord<'a> {
    pub(crate) function: &'a str,
    pub(crate) argument: &'a str,
    pub(crate) word: &'a str,
}

/// Returns what strict functions ask of texts that the form cannot enforce: between tags, a text is any text.
pub(crate) fn unenforced_word(expected: &Expected) -> Option<UnenforcedWord<'_>> {
    expected.form.calls.filter(|form| *form == CallForm::Coder)?;
    expected.functions.iter().filter(|function| function.is_strict).find_map(|function| {
        let properties = function.parameters.get("properties")?.as_object()?;
        let texts = properties.iter().filter(|(key, _)| function.parameter_is_text(key));
        let mut words = texts.flat_map(|(key, schema)| {
            schema.as_object().into_iter().flat_map(|schema| schema.keys()).map(move |word| (key, word))
        });
        let (argument, word) = words.find(|(_, word)| !TEXT_WORDS.contains(&word.as_str()))?;
        Some(UnenforcedWord { function: &function.name, argument, word })
    })
}

/// Returns the grammar of answers that can have calls. `None` if they cannot.
pub(crate) fn grammar(
    expected: &Expected,
    rules: CallRules,
    enforced: Enforced,
    tokenizer: &Tokenizer,
) -> Option<Constraint> {
    let form = expected.form.calls.filter(|_| !expected.functions.is_empty())?;
    let mut lark = Lark { text: TERMINALS.to_owned(), tokenizer, enforced };
    match form {
        CallForm::Harmony => lark.harmony(&expected.functions, rules),
        _ => lark.plain(expected, form, rules),
    }
    Some(Constraint::Lark(lark.text))
}

/// A grammar under construction.
struct Lark<'a> {
    text: String,
    tokenizer: &'a Tokenizer,
    enforced: Enforced,
}

impl Lark<'_> {
    fn rule(&mut self, name: &str, body: &str) {
        _ = writeln!(self.text, "{name}: {body}");
    }

    /// Returns a marker, which is a special token in some tokenizers.
    fn marker(&self, marker: &str) -> String {
        self.tokenizer.special_token(marker).map_or_else(|| quoted(marker), |id| format!("<[{id}]>"))
    }

    /// Adds a rule for `text` up to a marker and with it.
    fn until(&mut self, name: &str, text: &str, marker: &str) {
        let found = self.marker(marker);
        // A special token ends a text by itself.
        let name = if found.starts_with('<') { name.to_owned() } else { format!("{name}[lazy]") };
        self.rule(&name, &format!("{text} {found}"));
    }

    /// Returns the JSON of a function's arguments.
    fn arguments(&self, function: &Function) -> String {
        if self.is_enforced(function) {
            Constraint::embedded_schema(&Value::Object(function.parameters.clone()))
        } else {
            Constraint::embedded_schema(&json!({ "type": "object" }))
        }
    }

    fn is_enforced(&self, function: &Function) -> bool {
        self.enforced == Enforced::All || function.is_strict
    }

    /// Adds one rule for each function, and `call` for any of them.
    fn calls(&mut self, functions: &[Function], mut body: impl FnMut(&mut Self, usize, &Function) -> String) {
        let mut names = Vec::new();
        for (index, function) in functions.iter().enumerate() {
            let body = body(self, index, function);
            names.push(format!("call_{index}"));
            self.rule(&names[index], &body);
        }
        self.rule("call", &names.join(" | "));
    }

    /// Adds calls that are JSON objects.
    fn objects(&mut self, functions: &[Function], key: &str) {
        self.calls(functions, |lark, _, function| {
            let begin = quoted(&format!("{{\"name\": {}, \"{key}\": ", Value::from(&*function.name)));
            format!("{begin} {} \"}}\"", lark.arguments(function))
        });
    }

    /// Adds the rules of a text with reasoning before it and calls within.
    fn plain(&mut self, expected: &Expected, form: CallForm, rules: CallRules) {
        let free = self.reasoning(expected, form);
        let functions = &expected.functions;
        let marker = form.marker().map(|marker| self.marker(marker));
        let marker = marker.unwrap_or_default();
        // What calls have in common: what is around one, and whether one marker stands before all.
        let (before, after, is_list) = match form {
            CallForm::Hermes | CallForm::Coder => {
                if form == CallForm::Coder {
                    self.calls(functions, Self::coder);
                } else {
                    self.objects(functions, "arguments");
                }
                ("SPACE".to_owned(), format!("SPACE {}", self.marker(TOOL_CALL_END)), false)
            }
            CallForm::MistralArguments => {
                let arguments = self.marker(ARGS);
                self.calls(functions, |lark, _, function| {
                    format!("{} {arguments} {}", quoted(&function.name), lark.arguments(function))
                });
                (String::new(), String::new(), false)
            }
            CallForm::MistralList => {
                self.objects(functions, "arguments");
                ("(\" \")? \"[\"".to_owned(), "\"]\"".to_owned(), true)
            }
            CallForm::Llama | CallForm::Harmony => {
                self.objects(functions, "parameters");
                let tag = self.tokenizer.special_token(PYTHON_TAG);
                (tag.map(|id| format!("(<[{id}]>)?")).unwrap_or_default(), String::new(), true)
            }
        };
        let separator = if form == CallForm::Llama { "\"; \"" } else { "\", \"" };
        let several = if is_list { format!("call ({separator} call)*") } else { "call".to_owned() };
        let one = if rules.is_parallel { several.as_str() } else { "call" };
        self.rule("body", &format!("{before} {one} {after}"));
        let more = match (rules.is_parallel && !is_list, rules.is_required) {
            (false, _) => String::new(),
            (true, true) => format!("(SPACE {marker} body)*"),
            (true, false) => "(more body)* TEXT".to_owned(),
        };
        if rules.is_required {
            self.rule("answer", &format!("SPACE {marker} body {more}"));
        } else if let Some(marker) = form.marker() {
            self.until("first", free, marker);
            self.until("more", "TEXT", marker);
            self.rule("answer", &format!("first body {more} | {free}"));
        } else {
            self.rule("answer", &format!("SPACE body | {free}"));
        }
    }

    /// Adds `start` and the reasoning. Returns the terminal of texts that are neither reasoning nor a call.
    fn reasoning(&mut self, expected: &Expected, form: CallForm) -> &'static str {
        let free = if form == CallForm::Llama { "PLAIN" } else { "TEXT" };
        let Some(ReasoningMarkers { begin, end }) = expected.form.reasoning else {
            self.rule("start", "answer");
            return free;
        };
        if expected.is_reasoning {
            self.until("reasoning", "TEXT", end);
            self.rule("start", "reasoning answer");
            return free;
        }
        let found = self.marker(begin);
        self.until("reasoning", &format!("{found} TEXT"), end);
        self.rule("start", "SPACE reasoning answer | answer");
        if found.starts_with('<') {
            // A special token cannot be the begin of a text.
            return free;
        }
        let escaped: String = begin.chars().map(escape).collect();
        self.rule("UNREASONED", &format!("{free} & ~/\\s*{escaped}(.|\\n)*/"));
        "UNREASONED"
    }

    /// Returns a call whose arguments are between tags, in the order of the function's parameters.
    fn coder(&mut self, index: usize, function: &Function) -> String {
        let mut body = quoted(&format!("<function={}>\n", function.name));
        let empty = serde_json::Map::new();
        let properties = function.parameters.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required = function.parameters.get("required").and_then(Value::as_array);
        for (at, (key, property)) in properties.iter().enumerate() {
            let name = format!("value_{index}_{at}");
            let end = quoted("\n</parameter>\n");
            let texts = property["enum"].as_array().filter(|_| function.parameter_is_text(key));
            if let Some(texts) = texts {
                let texts: Vec<_> = texts.iter().filter_map(Value::as_str).map(quoted).collect();
                self.rule(&name, &format!("({}) {end}", texts.join(" | ")));
            } else if function.parameter_is_text(key) {
                self.rule(&format!("{name}[lazy]"), &format!("TEXT {end}"));
            } else {
                let any = json!({});
                let schema = if self.is_enforced(function) { property } else { &any };
                self.rule(&name, &format!("{} {end}", Constraint::embedded_schema(schema)));
            }
            let begin = quoted(&format!("<parameter={key}>\n"));
            let is_required = required.is_some_and(|names| names.iter().any(|name| name == key));
            _ = write!(body, " ({begin} {name}){}", if is_required { "" } else { "?" });
        }
        body + " " + &quoted("</function>")
    }

    /// Adds the rules of messages on channels. Tokens that end a call and the last message end the answer.
    fn harmony(&mut self, functions: &[Function], rules: CallRules) {
        let [channel, constrain, message, start, end] =
            [CHANNEL, CONSTRAIN, MESSAGE, START, END].map(|marker| self.marker(marker));
        self.calls(functions, |lark, _, function| {
            let to = quoted(&format!(" to=functions.{}", function.name));
            let kind = format!("(\" \")? ({constrain})? (\"json\")?");
            let after = format!("{channel} (\"commentary\" | \"analysis\") {to} {kind}");
            let before = format!("{to} {channel} (\"commentary\" | \"analysis\") {kind}");
            format!("({after} | {before}) {message} {}", lark.arguments(function))
        });
        let again = format!("{end} {start} \"assistant\"");
        self.rule("reasoning", &format!("{channel} \"analysis\" {message} TEXT {again}"));
        self.rule("preamble", &format!("{channel} \"commentary\" {message} TEXT {again}"));
        self.rule("final", &format!("{channel} \"final\" {message} TEXT"));
        let last = if rules.is_required { "call" } else { "(call | final)" };
        self.rule("start", &format!("(reasoning | preamble)* {last}"));
    }
}

/// Returns a character of a regular expression that stands for itself.
fn escape(char: char) -> String {
    if char.is_ascii_punctuation() && !matches!(char, '<' | '>') {
        format!("\\{char}")
    } else {
        char.to_string()
    }
}

/// Returns a text as Lark has it, which is as JSON has it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
