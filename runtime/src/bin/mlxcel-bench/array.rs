//! An array of JSON that is written value by value, so that none is lost when a later one fails.

use serde_json::Value;

/// An array that was begun, and the number of its values.
#[derive(Debug, Default)]
pub(crate) struct Array {
    count: usize,
}

impl Array {
    /// Renders the beginning.
    pub(crate) fn begin(&self) -> String {
        "[".to_owned()
    }

    /// Renders the next value.
    pub(crate) fn value(&mut self, value: &Value) -> String {
        let before = if self.count == 0 { "\n" } else { ",\n" };
        self.count += 1;
        // Lines of a text are escaped, so that only lines of the form are indented.
        let text = format!("{value:#}").replace('\n', "\n  ");
        format!("{before}  {text}")
    }

    /// Renders the end.
    pub(crate) fn end(&self) -> String {
        if self.count == 0 { "]\n".to_owned() } else { "\n]\n".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_parts_are_what_the_whole_is() {
        for values in
            [vec![], vec![json!({"a": [1, 2], "b": "c\nd"})], vec![json!(1), json!({}), json!([[]])]]
        {
            let mut array = Array::default();
            let begin = array.begin();
            let middle: String = values.iter().map(|value| array.value(value)).collect();
            assert_eq!(begin + &middle + &array.end(), format!("{:#}\n", Value::Array(values)));
        }
    }
}
