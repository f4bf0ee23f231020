//! JSON as Python writes it.

use minijinja::{ErrorKind, Value, value::Kwargs};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// Writes JSON as Python's `json.dumps(value, ensure_ascii=False)` does. Jinja's own filter escapes HTML.
pub(super) fn to_json(value: &Value, arguments: Kwargs) -> Result<String, minijinja::Error> {
    let fail = |problem: String| minijinja::Error::new(ErrorKind::InvalidOperation, problem);
    let indent: Option<usize> = arguments.get("indent")?;
    let separators: Option<Vec<String>> = arguments.get("separators")?;
    let is_sorted: Option<bool> = arguments.get("sort_keys")?;
    if arguments.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false) {
        return Err(fail("found tojson(ensure_ascii=true), expected false".into()));
    }
    arguments.assert_all_used()?;
    let cannot = |error: serde_json::Error| fail(format!("cannot write json: {error}"));
    let mut json = serde_json::to_value(value).map_err(cannot)?;
    if is_sorted == Some(true) {
        json.sort_all_objects();
    }
    let mut bytes = Vec::new();
    if let Some(indent) = indent {
        let indent = " ".repeat(indent.min(16));
        let pretty = PrettyFormatter::with_indent(indent.as_bytes());
        json.serialize(&mut Serializer::with_formatter(&mut bytes, pretty)).map_err(cannot)?;
    } else {
        let separated = match separators.as_deref() {
            None => Separated { item: ", ", key: ": " },
            Some([item, key]) => Separated { item, key },
            Some(other) => return Err(fail(format!("found {} separators, expected 2", other.len()))),
        };
        json.serialize(&mut Serializer::with_formatter(&mut bytes, separated)).map_err(cannot)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// JSON in one line.
struct Separated<'a> {
    /// Stands between the items of a list or an object.
    item: &'a str,
    /// Stands between a key and its value.
    key: &'a str,
}

impl Formatter for Separated<'_> {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { to.write_all(self.item.as_bytes()) }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { to.write_all(self.item.as_bytes()) }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, to: &mut W) -> std::io::Result<()> {
        to.write_all(self.key.as_bytes())
    }
}
