//! Objects inside of requests.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IntoDeserializer as _, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// An object. Without this, a list of its fields' values would do as well.
pub(super) struct Object<T>(pub(super) T);

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
    }

    // What is no object either is refused in the object's own words.

    fn visit_bool<E: Error>(self, value: bool) -> Result<Object<T>, E> {
        T::deserialize(value.into_deserializer()).map(Object)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Object<T>, E> {
        T::deserialize(value.into_deserializer()).map(Object)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Object<T>, E> {
        T::deserialize(value.into_deserializer()).map(Object)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Object<T>, E> {
        T::deserialize(value.into_deserializer()).map(Object)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Object<T>, E> {
        T::deserialize(value.into_deserializer()).map(Object)
    }

    fn visit_unit<E: Error>(self) -> Result<Object<T>, E> {
        T::deserialize(().into_deserializer()).map(Object)
    }
}
