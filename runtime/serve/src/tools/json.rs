//! Calls as JSON objects, read piece by piece.

use super::parts::Delta;

/// The end of a JSON value within text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct JsonValue {
    /// Open brackets.
    depth: usize,
    kind: Kind,
    is_escaped: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing has come.
    #[default]
    Unknown,
    /// An object or an array, outside of its strings.
    Brackets,
    /// A string, within brackets or not.
    String,
    /// A number or a word.
    Scalar,
}

impl JsonValue {
    /// Reads more text. Returns the length of what belongs to the value, and whether the value is complete.
    pub(super) fn push(&mut self, text: &str) -> (usize, bool) {
        for (at, char) in text.char_indices() {
            let end = at + char.len_utf8();
            match self.kind {
                Kind::String if self.is_escaped => self.is_escaped = false,
                Kind::String if char == '\\' => self.is_escaped = true,
                Kind::String if char == '"' && self.depth == 0 => return (end, true),
                Kind::String if char == '"' => self.kind = Kind::Brackets,
                Kind::String => {}
                Kind::Scalar if matches!(char, ',' | '}' | ']' | ';') || char.is_whitespace() => {
                    return (at, true);
                }
                Kind::Scalar => {}
                Kind::Unknown | Kind::Brackets => match char {
                    '"' => self.kind = Kind::String,
                    '{' | '[' => {
                        self.depth += 1;
                        self.kind = Kind::Brackets;
                    }
                    '}' | ']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return (end, true);
                        }
                    }
                    _ if self.kind == Kind::Unknown => self.kind = Kind::Scalar,
                    _ => {}
                },
            }
        }
        (text.len(), false)
    }
}

/// What reading more of a call has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All text was read, and more is needed.
    More,
    /// The call ends after this many bytes of the text.
    Done(usize),
    /// It is no call.
    Failed,
}

/// A call such as `{"name": …, "arguments": {…}}`, as it comes.
#[derive(Debug, Default)]
pub(super) struct CallObject {
    place: Place,
    /// All text before the name was known.
    raw: String,
    has_name: bool,
    /// Arguments that came before the name.
    early: String,
}

/// Where in a call the text ends.
#[derive(Debug, Default)]
enum Place {
    #[default]
    Open,
    Key,
    InKey(JsonValue, String),
    Colon(Field),
    Value(Field),
    InValue(Field, JsonValue, String),
    AfterValue,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Arguments,
    NestedArguments,
    Other,
}

impl CallObject {
    /// Reads more text.
    pub(super) fn push(&mut self, text: &str, out: &mut Vec<Delta>) -> Progress {
        let mut rest = text;
        while let Some(char) = rest.chars().next() {
            let Some(used) = self.read(rest, char, out) else {
                self.raw.push_str(rest);
                return Progress::Failed;
            };
            if !self.has_name {
                self.raw.push_str(&rest[..used]);
            }
            rest = &rest[used..];
            if matches!(self.place, Place::End) {
                return Progress::Done(text.len() - rest.len());
            }
        }
        Progress::More
    }

    /// Reads text that begins with `char` as far as the place does not change. `None` if it is no call.
    fn read(&mut self, rest: &str, char: char, out: &mut Vec<Delta>) -> Option<usize> {
        Some(match &mut self.place {
            Place::InKey(value, key) => {
                let (used, is_complete) = value.push(rest);
                key.push_str(&rest[..used]);
                if is_complete {
                    self.place = Place::Colon(Field::of(&serde_json::from_str::<String>(key).ok()?));
                }
                used
            }
            Place::InValue(field, value, so_far) => {
                let field = *field;
                let (used, is_complete) = value.push(rest);
                so_far.push_str(&rest[..used]);
                self.value(field, is_complete, out)?;
                used
            }
            _ if char.is_whitespace() => char.len_utf8(),
            Place::Open if char == '{' => self.go(Place::Key),
            Place::Key if char == '"' => {
                self.place = Place::InKey(JsonValue::default(), String::new());
                0
            }
            Place::Colon(field) if char == ':' => {
                let field = *field;
                self.go(Place::Value(field))
            }
            Place::Value(field) => {
                // Some models write arguments as a string with JSON in it.
                let is_nested = *field == Field::Arguments && char == '"';
                let field = if is_nested { Field::NestedArguments } else { *field };
                self.place = Place::InValue(field, JsonValue::default(), String::new());
                0
            }
            Place::AfterValue if char == ',' => self.go(Place::Key),
            Place::AfterValue if char == '}' && self.has_name => self.go(Place::End),
            _ => return None,
        })
    }

    /// Returns the text of what turned out to be no call; empty if its name was returned.
    pub(super) fn into_raw(self) -> String {
        if self.has_name { String::new() } else { self.raw }
    }

    fn go(&mut self, place: Place) -> usize {
        self.place = place;
        1
    }

    /// Gives out what a value has so far. `None` if it cannot be that of a call.
    fn value(&mut self, field: Field, is_complete: bool, out: &mut Vec<Delta>) -> Option<()> {
        let Place::InValue(_, _, so_far) = &mut self.place else { return None };
        match field {
            Field::Name if is_complete => {
                let name = serde_json::from_str(so_far).ok()?;
                self.has_name = true;
                out.push(Delta::Call { name });
            }
            Field::Arguments => {
                self.early.push_str(so_far);
                so_far.clear();
            }
            Field::NestedArguments if is_complete => {
                self.early.push_str(&serde_json::from_str::<String>(so_far).ok()?);
            }
            _ => {}
        }
        if self.has_name && !self.early.is_empty() {
            out.push(Delta::Arguments(std::mem::take(&mut self.early)));
        }
        if is_complete {
            self.place = Place::AfterValue;
        }
        Some(())
    }
}

impl Field {
    fn of(key: &str) -> Self {
        match key {
            "name" => Self::Name,
            "arguments" | "parameters" => Self::Arguments,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a call byte by byte. Returns its name and arguments, and what is behind it.
    fn read(text: &str) -> Result<(String, String, &str), String> {
        let (mut call, mut out) = (CallObject::default(), vec![]);
        for (at, char) in text.char_indices() {
            match call.push(&text[at..at + char.len_utf8()], &mut out) {
                Progress::More => {}
                Progress::Done(used) => {
                    let (mut name, mut arguments) = (String::new(), String::new());
                    for delta in out {
                        match delta {
                            Delta::Call { name: found } => name = found,
                            Delta::Arguments(more) => arguments += &more,
                            other => panic!("{other:?}"),
                        }
                    }
                    return Ok((name, arguments, &text[at + used..]));
                }
                Progress::Failed => return Err(call.into_raw()),
            }
        }
        Err(call.into_raw())
    }

    #[test]
    fn calls_are_read_in_any_order() {
        let found = |text: &str| {
            let (name, arguments, rest) = read(text).unwrap();
            (name, arguments, rest.to_owned())
        };
        let arguments = r#"{"a": "}\"]", "b": [1, {"c": null}]}"#;
        let expected = ("f".to_owned(), arguments.to_owned(), " x".to_owned());
        assert_eq!(found(&format!(r#"{{"name": "f", "arguments": {arguments}}} x"#)).0, expected.0);
        assert_eq!(found(&format!(r#" {{ "parameters" :{arguments} , "name":"f" }} x"#)).1, expected.1);
        let text = format!(r#"{{"type": "function", "id": 3, "name": "f", "arguments": {arguments}}} x"#);
        assert_eq!(found(&text), expected);
        assert_eq!(found(r#"{"name": "é\n", "arguments": "{\"a\": 1}"}"#).1, r#"{"a": 1}"#);
        assert_eq!(found(r#"{"name": "é\n"}"#), ("é\n".into(), String::new(), String::new()));
    }

    #[test]
    fn what_is_no_call_keeps_its_text() {
        assert_eq!(read(r#"{"a": 1}"#).unwrap_err(), r#"{"a": 1}"#);
        assert_eq!(read("{1").unwrap_err(), "{1");
        assert_eq!(read(r#"{"name": 3, "#).unwrap_err(), r#"{"name": 3,"#);
        assert_eq!(read(r#"{"na"#).unwrap_err(), r#"{"na"#);
        assert_eq!(read("hello").unwrap_err(), "h");
    }
}
