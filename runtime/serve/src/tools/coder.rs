//! Calls as Qwen 3 Coder writes them, whose arguments are texts between tags.

use std::sync::Arc;

use mlxcel_runtime::HeldText;
use serde_json::Value;

use super::{Function, parts::Delta};

/// Reads `<function=name><parameter=key>value</parameter>…</function>`.
#[derive(Debug)]
pub(super) struct CoderCall {
    functions: Arc<[Function]>,
    place: Place,
    /// The name of the function, and the key and the value of an argument, as far as they have come.
    name: String,
    key: String,
    value: String,
    has_arguments: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Name,
    Between,
    Key,
    Value,
}

const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";

impl CoderCall {
    pub(super) fn new(functions: Arc<[Function]>) -> Self {
        Self {
            functions,
            place: Place::Before,
            name: String::new(),
            key: String::new(),
            value: String::new(),
            has_arguments: false,
        }
    }

    /// Returns the text of what turned out to be no call.
    pub(super) fn into_raw(self) -> String {
        match self.place {
            Place::Before => self.value,
            Place::Name => self.value + FUNCTION + &self.name,
            Place::Between | Place::Key | Place::Value => String::new(),
        }
    }

    /// Reads what is held. True at the end of the call.
    pub(super) fn push(&mut self, held: &mut HeldText, out: &mut Vec<Delta>) -> bool {
        loop {
            let ends: &[&str] = match self.place {
                Place::Before => &[FUNCTION],
                Place::Name | Place::Key => &[">"],
                Place::Between => &[PARAMETER, FUNCTION_END],
                Place::Value => &[PARAMETER_END],
            };
            let (text, found) = held.take_until(ends);
            match self.place {
                Place::Before | Place::Value => self.value.push_str(&text),
                Place::Name => self.name.push_str(&text),
                Place::Key => self.key.push_str(&text),
                Place::Between => {}
            }
            let Some(found) = found else { return false };
            self.place = match self.place {
                Place::Before => Place::Name,
                Place::Name => {
                    out.push(Delta::Call { name: self.name.trim().to_owned() });
                    self.value.clear();
                    Place::Between
                }
                Place::Between if found == 0 => Place::Key,
                Place::Between => {
                    out.push(Delta::Arguments(if self.has_arguments { "}" } else { "{}" }.to_owned()));
                    return true;
                }
                Place::Key => Place::Value,
                Place::Value => {
                    out.push(Delta::Arguments(self.argument()));
                    Place::Between
                }
            };
        }
    }

    /// Takes an argument, as JSON.
    fn argument(&mut self) -> String {
        let (key, value) = (std::mem::take(&mut self.key), std::mem::take(&mut self.value));
        let key = key.trim();
        // One line break on each side belongs to the form.
        let text = value.strip_prefix('\n').unwrap_or(&value);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let function = self.functions.iter().find(|function| function.name == self.name.trim());
        let is_text = function.is_none_or(|function| function.parameter_is_text(key));
        let parsed = (!is_text).then(|| serde_json::from_str(text).ok()).flatten();
        let value = parsed.unwrap_or_else(|| Value::from(text));
        let start = if std::mem::replace(&mut self.has_arguments, true) { ", " } else { "{" };
        format!("{start}{}: {value}", Value::from(key))
    }
}
