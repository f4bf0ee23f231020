//! The fields of a request's JSON object.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::{Map, Value, error::Category};

use super::error::ApiError;

#[cfg(test)]
thread_local! {
    /// The names of fields that were asked for on this thread.
    static ASKED: std::cell::RefCell<std::collections::BTreeSet<String>> = Default::default();
}

/// Returns the names of fields that were asked for on this thread since the last call.
#[cfg(test)]
pub(crate) fn asked() -> std::collections::BTreeSet<String> {
    ASKED.take()
}

/// The least likeness of two names that one may be a slip of the other, by Jaro and Winkler's measure.
const ALIKE: f64 = 0.88;

/// The fields of a request. `null` is as good as absent.
#[derive(Debug)]
pub(crate) struct Fields {
    /// Fields that were not taken yet.
    rest: Map<String, Value>,
    /// The names that were asked for.
    known: Vec<String>,
}

impl Fields {
    /// Parses a body.
    ///
    /// # Errors
    /// It is no JSON, or no object.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let Object { mut fields, twice } =
            serde_json::from_slice(body).map_err(|error| match error.classify() {
                Category::Data => ApiError::invalid("the body is no JSON object, expected one"),
                _ => ApiError::invalid(format!("the body is no JSON: {error}")),
            })?;
        // Whoever checks requests on the way may have read the other value.
        if let Some(name) = twice {
            return Err(ApiError::invalid_field(&name, format!("{name} is given twice, expected it once")));
        }
        fields.retain(|_, value| !value.is_null());
        Ok(Self { rest: fields, known: vec![] })
    }

    /// Takes a field; `None` if it is absent.
    ///
    /// # Errors
    /// It has another type. The error names the part that has.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(value) = self.remove(name) else { return Ok(None) };
        let parsed: Result<T, _> = serde_path_to_error::deserialize(value);
        parsed.map(Some).map_err(|error| {
            let path = match error.path().to_string() {
                path if path == "." => name.to_owned(),
                path if path.starts_with('[') => format!("{name}{path}"),
                path => format!("{name}.{path}"),
            };
            ApiError::invalid_field(&path, format!("{path}: {}", error.inner()))
        })
    }

    /// Takes a field that must be there.
    ///
    /// # Errors
    /// It is absent, or has another type.
    pub(crate) fn require<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ApiError> {
        let missing = || ApiError::invalid_field(name, format!("found no {name}, expected it"));
        self.take(name)?.ok_or_else(missing)
    }

    /// Drops members that are `null` of the objects in a list: there, too, they are as good as absent.
    pub(crate) fn drop_nulls(&mut self, name: &str) {
        let items = self.rest.get_mut(name).and_then(Value::as_array_mut);
        for object in items.into_iter().flatten().filter_map(Value::as_object_mut) {
            object.retain(|_, value| !value.is_null());
        }
    }

    /// Takes a field that changes no answer of this server.
    pub(crate) fn ignore(&mut self, name: &str) {
        self.remove(name);
    }

    /// Takes a field whose only value is `expected`.
    ///
    /// # Errors
    /// It has another value, which is not supported.
    pub(crate) fn only(&mut self, name: &str, expected: &Value) -> Result<(), ApiError> {
        match self.remove(name) {
            Some(found) if found != *expected => {
                let message = format!("{name} is {found}, but only {expected} is supported");
                Err(ApiError::invalid_field(name, message))
            }
            _ => Ok(()),
        }
    }

    fn remove(&mut self, name: &str) -> Option<Value> {
        #[cfg(test)]
        ASKED.with_borrow_mut(|asked| asked.insert(name.to_owned()));
        self.known.push(name.to_owned());
        self.rest.remove(name)
    }

    /// Refuses fields that were not taken.
    ///
    /// # Errors
    /// There is one.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        let Some(name) = self.rest.keys().next() else { return Ok(()) };
        let likeness = |known: &String| strsim::jaro_winkler(known, name);
        let nearest = self.known.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
        let hint = nearest.filter(|known| likeness(known) >= ALIKE);
        let hint = hint.map(|known| format!(", is {known} meant?")).unwrap_or_default();
        Err(ApiError::invalid_field(name, format!("{name} is not supported{hint}")))
    }
}

/// A JSON object.
struct Object {
    fields: Map<String, Value>,
    /// A field that it has more than once.
    twice: Option<String>,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Object, A::Error> {
                let mut object = Object { fields: Map::new(), twice: None };
                while let Some((name, value)) = access.next_entry::<String, Value>()? {
                    if object.fields.contains_key(&name) {
                        object.twice.get_or_insert_with(|| name.clone());
                    }
                    object.fields.insert(name, value);
                }
                Ok(object)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(error: ApiError) -> String {
        let error = error.to_json();
        format!("{}: {}", error["error"]["param"], error["error"]["message"])
    }

    #[test]
    fn fields_are_taken_by_type() {
        let mut fields = Fields::parse(br#"{"a": 1, "b": null, "c": [1, "x"], "d": true}"#).unwrap();
        assert_eq!(fields.take::<u32>("a"), Ok(Some(1)));
        assert_eq!(fields.take::<u32>("b"), Ok(None));
        let wrong = fields.take::<Vec<u32>>("c").unwrap_err();
        assert_eq!(message(wrong), r#""c[1]": "c[1]: invalid type: string \"x\", expected u32""#);
        assert_eq!(message(fields.require::<u32>("e").unwrap_err()), r#""e": "found no e, expected it""#);
        let only = fields.only("d", &false.into()).unwrap_err();
        assert_eq!(message(only), r#""d": "d is true, but only false is supported""#);
        fields.finish().unwrap();
        let rest = Fields::parse(br#"{"z": 1}"#).unwrap().finish().unwrap_err();
        assert_eq!(message(rest), r#""z": "z is not supported""#);
    }

    #[test]
    fn nulls_are_dropped_in_the_objects_of_a_list() {
        let mut fields =
            Fields::parse(br#"{"a": [{"b": null, "c": {"d": null}}, null, 1], "e": 1}"#).unwrap();
        ["a", "e", "f"].into_iter().for_each(|name| fields.drop_nulls(name));
        let expected = serde_json::json!([{ "c": { "d": null } }, null, 1]);
        assert_eq!(fields.take::<Value>("a"), Ok(Some(expected)));
        assert_eq!(fields.take::<u32>("e"), Ok(Some(1)));
    }

    #[test]
    fn slips_of_known_names_are_pointed_out() {
        let refused = |body: &[u8]| {
            let mut fields = Fields::parse(body).unwrap();
            for name in ["max_tokens", "max_completion_tokens", "temperature", "n"] {
                fields.ignore(name);
            }
            message(fields.finish().unwrap_err())
        };
        let expected = r#""max_token": "max_token is not supported, is max_tokens meant?""#;
        assert_eq!(refused(br#"{"max_token": 1}"#), expected);
        let expected = r#""temprature": "temprature is not supported, is temperature meant?""#;
        assert_eq!(refused(br#"{"temprature": 1}"#), expected);
        assert_eq!(refused(br#"{"nothing": 1}"#), r#""nothing": "nothing is not supported""#);
    }

    #[test]
    fn a_body_is_an_object() {
        let refused = |body: &[u8]| message(Fields::parse(body).unwrap_err());
        assert_eq!(refused(b"[]"), r#"null: "the body is no JSON object, expected one""#);
        assert_eq!(
            refused(b"{\"a\": "),
            r#"null: "the body is no JSON: EOF while parsing a value at line 1 column 6""#
        );
        assert!(refused(b"\xff").contains("the body is no JSON"));
    }
}
