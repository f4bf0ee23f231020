//! Reads keys of a config.json; every error names the key, the value found and what is expected.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::{Error, error::shown};

/// Numbers that stay what they are, up to rounding, as an f32, which is what models compute in.
const POSITIVE: RangeInclusive<f64> = f32::MIN_POSITIVE as f64..=f32::MAX as f64;

/// An object of a config.json, and where it lies.
#[derive(Debug)]
pub(crate) struct Json<'a> {
    path: String,
    object: &'a Map<String, Value>,
}

impl<'a> Json<'a> {
    /// The whole file.
    pub(crate) fn top(object: &'a Map<String, Value>) -> Self {
        Self { path: String::new(), object }
    }

    /// The value at `key`, where there is one and it is not null.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    /// Whether `key` is there, be it as null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.object.contains_key(key)
    }

    /// Whether no key is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.object.is_empty()
    }

    /// The first key that holds an object.
    pub(crate) fn first_object(&self) -> Option<&'a str> {
        self.object.iter().find(|(_, value)| value.is_object()).map(|(key, _)| key.as_str())
    }

    /// The object at `key`; `None` where it is absent or null.
    pub(crate) fn object(&self, key: &str) -> Result<Option<Self>, Error> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(Self { path: self.named(key), object })),
            Some(_) => Err(self.invalid(key, "an object or null")),
        }
    }

    /// Refuses anything but objects or nulls, and those under other keys than these.
    pub(crate) fn each_object(&self, keys: &[&str]) -> Result<(), Error> {
        let expected = || format!("an object for each of {}", keys.join(" and "));
        match self.object.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            Some((key, _)) => Err(self.unsupported(key, expected())),
            None => keys.iter().try_for_each(|key| self.object(key).map(|_| ())),
        }
    }

    /// The string at `key`; `None` where it is absent.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, Error> {
        match self.object.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(key, "a string")),
        }
    }

    /// The boolean at `key`, `default` where it is absent.
    pub(crate) fn flag(&self, key: &str, default: bool) -> Result<bool, Error> {
        match self.object.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.invalid(key, "true or false")),
        }
    }

    /// The size at `key`, from 1 to `largest`, `default` where it is absent.
    pub(crate) fn size(&self, key: &str, default: usize, largest: usize) -> Result<usize, Error> {
        match self.object.get(key) {
            None => Ok(default),
            Some(value) => size(value, largest)
                .ok_or_else(|| self.invalid(key, format!("an integer from 1 to {largest}"))),
        }
    }

    /// The size at `key`, from 1 to `largest`, `default` where it is absent; `None` is null.
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

    /// The positive number at `key`; `None` where it is absent.
    pub(crate) fn positive(&self, key: &str) -> Result<Option<f64>, Error> {
        let Some(value) = self.object.get(key) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if POSITIVE.contains(&number) => Ok(Some(number)),
            _ => Err(self.invalid(key, "a positive number that an f32 can hold")),
        }
    }

    /// The positive number at `key`, `default` where it is absent; `None` is null.
    pub(crate) fn positive_or_null(&self, key: &str, default: Option<f64>) -> Result<Option<f64>, Error> {
        match self.object.get(key) {
            None => Ok(default),
            Some(Value::Null) => Ok(None),
            Some(_) => self.positive(key),
        }
    }

    /// The `count` positive numbers at `key`.
    pub(crate) fn positives(&self, key: &str, count: usize) -> Result<Vec<f64>, Error> {
        let positive = |value: &Value| value.as_f64().filter(|number| POSITIVE.contains(number));
        self.list(key, count, "positive numbers", positive)
    }

    /// The list of `count` values at `key`, each of which `read` takes.
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

    /// The number at `key`, zero or positive, `default` where it is absent.
    pub(crate) fn not_negative(&self, key: &str, default: f64) -> Result<f64, Error> {
        let Some(value) = self.object.get(key) else { return Ok(default) };
        match value.as_f64() {
            Some(number) if (0.0..=*POSITIVE.end()).contains(&number) => Ok(number),
            _ => Err(self.invalid(key, "0 or a positive number that an f32 can hold")),
        }
    }

    /// The token id at `key`, `default` where it is absent; `None` is null.
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

    /// The token ids at `key`, where one may stand without a list, `default` where it is absent; none is null.
    pub(crate) fn tokens(&self, key: &str, default: &[u32]) -> Result<Vec<u32>, Error> {
        let ids = match self.object.get(key) {
            None => Some(default.to_vec()),
            Some(Value::Null) => Some(vec![]),
            Some(Value::Array(values)) => values.iter().map(token).collect(),
            Some(value) => token(value).map(|id| vec![id]),
        };
        ids.ok_or_else(|| self.invalid(key, "a token id, a list of them or null"))
    }

    /// Refuses any value of `key` but null for which `fine` does not hold.
    pub(crate) fn only(
        &self,
        key: &str,
        supported: &str,
        fine: impl FnOnce(&Value) -> bool,
    ) -> Result<(), Error> {
        match self.value(key) {
            Some(value) if !fine(value) => Err(self.unsupported(key, supported)),
            _ => Ok(()),
        }
    }

    /// `key` is absent and must not be.
    pub(crate) fn missing(&self, key: &str, expected: impl Into<String>) -> Error {
        Error::Missing { key: self.named(key), expected: expected.into(), hint: None }
    }

    /// The value at `key` means nothing.
    pub(crate) fn invalid(&self, key: &str, expected: impl Into<String>) -> Error {
        Error::Invalid { key: self.named(key), found: self.found(key), expected: expected.into(), hint: None }
    }

    /// The value at `key` means something that is not supported.
    pub(crate) fn unsupported(&self, key: &str, supported: impl Into<String>) -> Error {
        Error::Unsupported {
            key: self.named(key),
            found: self.found(key),
            supported: supported.into(),
            hint: None,
        }
    }

    fn named(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    fn found(&self, key: &str) -> String {
        self.object.get(key).map_or_else(|| "absent".into(), shown)
    }
}

fn size(value: &Value, largest: usize) -> Option<usize> {
    let size = usize::try_from(value.as_u64()?).ok()?;
    (1..=largest).contains(&size).then_some(size)
}

fn token(value: &Value) -> Option<u32> {
    // Ids are i32 in a module.
    value.as_u64().and_then(|id| i32::try_from(id).ok()).and_then(|id| u32::try_from(id).ok())
}
