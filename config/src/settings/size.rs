//! Sizes in bytes, as people write them: `4 GiB`, `512M`, `1073741824`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(u64);

const UNITS: [(&str, u32); 5] = [("", 0), ("k", 10), ("m", 20), ("g", 30), ("t", 40)];

impl Size {
    /// Creates a size from a number of bytes.
    pub fn new(bytes: u64) -> Self {
        Size(bytes)
    }

    /// Returns the number of bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// Parses a size. Units are powers of 1024, with or without `i` and `B`.
    fn parse(text: &str) -> Option<Size> {
        let text = text.trim();
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let number: f64 = text[..end].parse().ok()?;
        let unit = text[end..].trim().to_ascii_lowercase();
        let unit = unit.strip_suffix('b').unwrap_or(&unit);
        let unit = unit.strip_suffix('i').unwrap_or(unit);
        let (_, shift) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let bytes = number * (1_u64 << shift) as f64;
        (bytes < u64::MAX as f64).then_some(Size(bytes as u64))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, shift) in UNITS.iter().rev().filter(|(_, shift)| *shift > 0) {
            if self.0 >= 1 << shift {
                let number = self.0 as f64 / (1_u64 << shift) as f64;
                let number = format!("{number:.1}");
                let number = number.strip_suffix(".0").unwrap_or(&number);
                let name = name.to_ascii_uppercase();
                return write!(f, "{number} {name}iB");
            }
        }
        write!(f, "{} B", self.0)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        Size::parse(text).ok_or_else(|| "it is not a size such as \"4 GiB\"".to_owned())
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a size such as \"4 GiB\", or bytes")
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
                Ok(Size(bytes))
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
                u64::try_from(bytes)
                    .map(Size)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(bytes), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                Size::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_and_format() {
        for (text, bytes, expected) in [
            ("4 GiB", Some(4 << 30), "4 GiB"),
            ("512M", Some(512 << 20), "512 MiB"),
            ("1.5gb", Some(3 << 29), "1.5 GiB"),
            ("100", Some(100), "100 B"),
            ("2048", Some(2048), "2 KiB"),
            ("", None, ""),
            ("GiB", None, ""),
            ("-1", None, ""),
            ("4 bananas", None, ""),
            ("1e9", None, ""),
            ("99999999999999999999", None, ""),
        ] {
            let size = Size::parse(text);
            assert_eq!(size.map(Size::bytes), bytes, "{text}");
            if let Some(size) = size {
                assert_eq!(size.to_string(), expected);
            }
        }
    }
}
