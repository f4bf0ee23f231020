//! Reading of keys in a config.json. Every error names the key, the value found and the values expected.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::error::{Error, displayed};

/// Positive numbers in the range of f32, which models compute in.
const POSITIVE: RangeInclusive<f64> = f32::MIN_POSITIVE as f64..=f32::MAX as f64;

/// An object in a config.json or another file, with its path.
#[derive(Debug)]
pub(crate) struct Json<'a> {
    file: &'static str,
    path: String,
    object: &'a Map<String, Value>,
}

impl<'a> Json<'a> {
    /// Wraps the object of the whole file.
    pub(crate) fn top(object: &'a Map<String, Value>) -> Self {
        Self::of_file("config.json", object)
    }

    /// Wraps the object of another file.
    pub(crate) fn of_file(file: &'static str, object: &'a Map<String, Value>) -> Self {
        Self { file, path: String::new(), object }
    }

    /// Returns the value at `key`; `None` if it is absent or null.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    /// Returns whether `key` is present, even if its value is null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.object.contains_key(key)
    }

    /// Returns whether the object has no keys.
    pub(crate) fn is_empty(&self) -> bool {
        self.object.is_empty()
    }

    /// Returns the first key whose value is an object.
    pub(crate) fn first_object(&self) -> Option<&'a str> {
        self.object.iter().find(|(_, value)| value.is_object()).map(|(key, _)| key.as_str())
    }

    /// Returns the object at `key`; `None` if it is absent or null.
    pub(crate) fn object(&self, key: &str) -> Result<Option<Self>, Error> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(object)) => {
                Ok(Some(Self { file: self.file, path: self.path_of(key), object }))
            }
            Some(_) => Err(self.invalid(key, "an object or null")),
        }
    }

    /// Refuses other keys than these, and values that are neither an object nor null.
    pub(crate) fn require_objects(&self, keys: &[&str]) -> Result<(), Error> {
        let expected = || format!("an object for each of {}", keys.join(" and "));
        match self.object.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            Some((key, _)) => Err(self.unsupported(key, expected())),
            None => keys.iter().try_for_each(|key| self.object(key).map(|_| ())),
        }
    }

    /// Returns the string at `key`; `None` if it is absent.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, Error> {
        match self.object.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(key, "a string")),
        }
    }

    /// Returns the string at `key`; `None` if it is absent or null.
    pub(crate) fn text_or_null(&self, key: &str) -> Result<Option<&'a str>, Error> {
        self.value(key).map_or(Ok(None), |_| self.text(key))
    }

    /// Returns all keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.object.keys().map(String::as_str)
    }

    /// Returns the boolean at `key`; `default` if it is absent.
    pub(crate) fn flag(&self, key: &str, default: bool) -> Result<bool, Error> {
        match self.object.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.invalid(key, "true or false")),
        }
    }

    /// Returns the size at `key`, from 1 to `largest`; `default` if it is absent.
    pub(crate) fn size(&self, key: &str, default: usize, largest: usize) -> Result<usize, Error> {
        match self.object.get(key) {
            None => Ok(default),
            Some(value) => size(value, largest)
                .ok_or_else(|| self.invalid(key, format!("an integer from 1 to {largest}"))),
        }
    }

    /// Returns the size at `key`, from 1 to `largest`, which must be there.
    pub(crate) fn required_size(&self, key: &str, largest: usize) -> Result<usize, Error> {
        match self.has(key) {
            true => self.size(key, 1, largest),
            false => Err(self.missing(key, format!("an integer from 1 to {largest}"))),
        }
    }

    /// Returns the size of groups at `key`; `None` if it is absent, null or -1, which stands for a whole row.
    pub(crate) fn group_size(&self, key: &str) -> Result<Option<usize>, Error> {
        match self.value(key) {
            Some(value) if value.as_i64() != Some(-1) => {
                let found = size(value, 1 << 20);
                found.map(Some).ok_or_else(|| self.invalid(key, "an integer from 1 to 1048576, or -1"))
            }
            _ => Ok(None),
        }
    }

    /// Returns the two sizes at `key`, from 1 to 65536.
    pub(crate) fn sizes(&self, key: &str) -> Result<[usize; 2], Error> {
        let sizes = self.value(key).and_then(Value::as_array).map(Vec::as_slice);
        match sizes {
            Some([one, other]) => size(one, 1 << 16).zip(size(other, 1 << 16)).map(Into::into),
            _ => None,
        }
        .ok_or_else(|| self.invalid(key, "two integers from 1 to 65536"))
    }

    /// Returns the size at `key`, from 1 to `largest`; `default` if it is absent, `None` if it is null.
    pub(crate) fn size_or_null(
        &self,
        key: &str,
        default: Option<usize>,
        largest: usize,
    ) -> Result<Option<usize>, Error> {
        match self.object.get(key) {
            None => Ok(default),
            Some(Value::Null) => Ok(None),
            Some(value) => size(value, largest)
                .map(Some)
                .ok_or_else(|| self.invalid(key, format!("null or an integer from 1 to {largest}"))),
        }
    }

    /// Returns the positive number at `key`; `None` if it is absent.
    pub(crate) fn positive(&self, key: &str) -> Result<Option<f64>, Error> {
        let Some(value) = self.object.get(key) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if POSITIVE.contains(&number) => Ok(Some(number)),
            _ => Err(self.invalid(key, "a positive number that an f32 can hold")),
        }
    }

    /// Returns the positive number at `key`; `default` if it is absent, `None` if it is null.
    pub(crate) fn positive_or_null(&self, key: &str, default: Option<f64>) -> Result<Option<f64>, Error> {
        match self.object.get(key) {
            None => Ok(default),
            Some(Value::Null) => Ok(None),
            Some(_) => self.positive(key),
        }
    }

    /// Returns the `count` positive numbers at `key`.
    pub(crate) fn positives(&self, key: &str, count: usize) -> Result<Vec<f64>, Error> {
        let positive = |value: &Value| value.as_f64().filter(|number| POSITIVE.contains(number));
        self.list(key, count, "positive numbers", positive)
    }

    /// Returns the `count` values at `key`, each converted by `read`. `what` describes them in errors.
    pub(crate) fn list<T>(
        &self,
        key: &str,
        count: usize,
        what: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let expected = || format!("a list of {count} {what}");
        let Some(value) = self.value(key) else { return Err(self.missing(key, expected())) };
        let values = value.as_array().filter(|values| values.len() == count);
        let values = values.and_then(|values| values.iter().map(read).collect());
        values.ok_or_else(|| self.invalid(key, expected()))
    }

    /// Returns the number at `key`, which is zero or positive; `default` if it is absent.
    pub(crate) fn not_negative(&self, key: &str, default: f64) -> Result<f64, Error> {
        let Some(value) = self.object.get(key) else { return Ok(default) };
        match value.as_f64() {
            Some(number) if (0.0..=*POSITIVE.end()).contains(&number) => Ok(number),
            _ => Err(self.invalid(key, "0 or a positive number that an f32 can hold")),
        }
    }

    /// Returns the token id at `key`; `default` if it is absent, `None` if it is null.
    pub(crate) fn token(&self, key: &str, default: Option<u32>) -> Result<Option<u32>, Error> {
        match self.object.get(key) {
            None => Ok(default),
            Some(Value::Null) => Ok(None),
            Some(value) => match token(value) {
                Some(id) => Ok(Some(id)),
                None => Err(self.invalid(key, "a token id or null")),
            },
        }
    }

    /// Returns the token ids at `key`, a list or a single one; `default` if it is absent, none if it is null.
    pub(crate) fn tokens(&self, key: &str, default: &[u32]) -> Result<Vec<u32>, Error> {
        let ids = match self.object.get(key) {
            None => Some(default.to_vec()),
            Some(Value::Null) => Some(vec![]),
            Some(Value::Array(values)) => values.iter().map(token).collect(),
            Some(value) => token(value).map(|id| vec![id]),
        };
        ids.ok_or_else(|| self.invalid(key, "a token id, a list of them or null"))
    }

    /// Refuses values of `key` that are not null and not `accepted`.
    pub(crate) fn require(
        &self,
        key: &str,
        supported: &str,
        accepted: impl FnOnce(&Value) -> bool,
    ) -> Result<(), Error> {
        match self.value(key) {
            Some(value) if !accepted(value) => Err(self.unsupported(key, supported)),
            _ => Ok(()),
        }
    }

    /// Returns the error for a required key that is absent.
    pub(crate) fn missing(&self, key: &str, expected: impl Into<String>) -> Error {
        Error::Missing { key: self.path_of(key), file: self.file, expected: expected.into(), hint: None }
    }

    /// Returns the error for a value that no checkpoint can mean.
    pub(crate) fn invalid(&self, key: &str, expected: impl Into<String>) -> Error {
        Error::Invalid {
            key: self.path_of(key),
            found: self.displayed(key),
            expected: expected.into(),
            hint: None,
        }
    }

    /// Returns the error for a value whose meaning is not supported.
    pub(crate) fn unsupported(&self, key: &str, supported: impl Into<String>) -> Error {
        Error::Unsupported {
            key: self.path_of(key),
            found: self.displayed(key),
            supported: supported.into(),
            hint: None,
        }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    fn displayed(&self, key: &str) -> String {
        self.object.get(key).map_or_else(|| "absent".into(), displayed)
    }
}

fn size(value: &Value, largest: usize) -> Option<usize> {
    let size = usize::try_from(value.as_u64()?).ok()?;
    (1..=largest).contains(&size).then_some(size)
}

fn token(value: &Value) -> Option<u32> {
    // Modules take ids as i32.
    value.as_u64().and_then(|id| i32::try_from(id).ok()).and_then(|id| u32::try_from(id).ok())
}
