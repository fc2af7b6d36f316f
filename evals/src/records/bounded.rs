//! Counts JSON values while parsing. A value takes much more memory than its text, so counting after parsing would be
//! too late.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{RECORD_VALUES, VALUES};

/// Number of values that may still be read.
pub(super) struct ValueBudget {
    file: usize,
    record: usize,
}

impl ValueBudget {
    pub(super) fn new() -> ValueBudget {
        ValueBudget {
            file: VALUES,
            record: 0,
        }
    }

    /// Parses a text that consists of one value.
    pub(super) fn read(&mut self, text: &str) -> Result<Value, serde_json::Error> {
        self.record = RECORD_VALUES;
        let mut text = serde_json::Deserializer::from_str(text);
        let value = CountingSeed(self).deserialize(&mut text)?;
        text.end()?;
        Ok(value)
    }

    /// Returns which limit has been reached, if any.
    pub(super) fn lack(&self) -> Option<String> {
        if self.file == 0 {
            return Some(format!("the file contains more than {VALUES} values"));
        }
        (self.record == 0).then(|| format!("the record contains more than {RECORD_VALUES} values"))
    }

    pub(super) fn file_is_full(&self) -> bool {
        self.file == 0
    }

    fn take<E: Error>(&mut self) -> Result<(), E> {
        self.file = self.file.saturating_sub(1);
        self.record = self.record.saturating_sub(1);
        match self.lack() {
            Some(lack) => Err(E::custom(lack)),
            None => Ok(()),
        }
    }
}

struct CountingSeed<'a>(&'a mut ValueBudget);

impl<'de> DeserializeSeed<'de> for CountingSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.0.take()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CountingSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(CountingSeed(self.0))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = entries.next_key()? {
            fields.insert(key, entries.next_value_seed(CountingSeed(self.0))?);
        }
        Ok(Value::Object(fields))
    }
}

/// Returns whether a text is a single object without this key. The values are not stored.
pub(super) fn is_object_without(text: &str, key: &str) -> bool {
    struct Keys<'a>(&'a str);
    impl<'de> Visitor<'de> for Keys<'_> {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let mut without = true;
            while let Some(key) = map.next_key::<String>()? {
                without &= key != self.0;
                map.next_value::<serde::de::IgnoredAny>()?;
            }
            Ok(without)
        }
    }
    let mut text = serde_json::Deserializer::from_str(text);
    let without = text.deserialize_map(Keys(key));
    without.is_ok_and(|without| without && text.end().is_ok())
}

/// Parses the value at the start of a text, and returns it with its length, including leading space. Returns `None` for
/// an empty text.
pub(super) fn length<'de, T: Deserialize<'de>>(
    text: &'de str,
) -> Option<Result<(T, usize), serde_json::Error>> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<T>();
    let value = stream.next()?;
    Some(value.map(|value| (value, stream.byte_offset())))
}
