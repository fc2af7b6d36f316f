//! Thrift's compact protocol, as far as it takes to pass over what is written in it: the library makes room for as many
//! elements as a file says that it has, and reads a field as what it should hold, whatever the file says that it holds.

use super::format::{Fields, Kind};

/// Structs and lists inside of each other; those of Parquet are a handful deep.
const DEEPEST: usize = 32;

pub type Result<T> = std::result::Result<T, String>;

/// What a value is; `Binary` and numbers with what they hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Number(i64),
    Binary(&'a [u8]),
    /// Begins here: its end has to be read next.
    Struct,
    List {
        kind: u8,
        size: usize,
    },
    Other,
}

pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn broken() -> String {
    "it cannot be read: it is damaged".to_owned()
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// Bytes that were read.
    pub fn at(&self) -> usize {
        self.at
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(bytes).ok_or_else(broken)?;
        let taken = self.bytes.get(self.at..end).ok_or_else(broken)?;
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(broken())
    }

    fn number(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// The next field of a struct, after the one of number `before`: its number and kind; `None` at its end.
    pub fn field(&mut self, before: i64) -> Result<Option<(i64, u8)>> {
        let byte = self.byte()?;
        let kind = byte & 0x0f;
        if kind == 0 {
            return Ok(None);
        }
        let number = match i64::from(byte >> 4) {
            0 => self.number()?,
            more => before.wrapping_add(more),
        };
        Ok(Some((number, kind)))
    }

    /// Passes over a struct whose fields hold what they should, in the order of their numbers: what the library, which
    /// does not look, then reads as this does.
    pub fn check(&mut self, fields: Fields) -> Result<()> {
        let mut before = 0;
        while let Some((number, kind)) = self.field(before)? {
            if number <= before || i16::try_from(number).is_err() {
                return Err(broken());
            }
            before = number;
            let known = fields.iter().find(|(known, _)| i64::from(*known) == number);
            match known {
                // The value of a truth is its kind.
                Some((_, Kind::Bool)) if matches!(kind, 1 | 2) => {}
                Some((_, expected)) if kind == code(expected) => self.check_value(expected)?,
                Some(_) => return Err(broken()),
                None => {
                    let value = self.value(kind)?;
                    self.pass(value, 0)?;
                }
            }
        }
        Ok(())
    }

    fn check_value(&mut self, expected: &Kind) -> Result<()> {
        let code = code(expected);
        match (expected, self.value(code)?) {
            (Kind::Struct(fields), _) => self.check(fields),
            // Some write an empty list without the kind of its elements.
            (Kind::List(_), Value::List { size: 0, .. }) => Ok(()),
            (Kind::List(element), Value::List { kind, size }) if kind == self::code(element) => {
                (0..size).try_for_each(|_| self.check_value(element))
            }
            (Kind::List(_), _) => Err(broken()),
            (Kind::I16, Value::Number(n)) if i16::try_from(n).is_err() => Err(broken()),
            (Kind::I32, Value::Number(n)) if i32::try_from(n).is_err() => Err(broken()),
            _ => Ok(()),
        }
    }

    /// A value, or its beginning.
    pub fn value(&mut self, kind: u8) -> Result<Value<'a>> {
        Ok(match kind {
            1 | 2 => Value::Other,
            3 => Value::Number(i64::from(self.byte()?.cast_signed())),
            4..=6 => Value::Number(self.number()?),
            7 => self.take(8).map(|_| Value::Other)?,
            8 => {
                let length = usize::try_from(self.varint()?).map_err(|_| broken())?;
                Value::Binary(self.take(length)?)
            }
            9 | 10 => {
                let byte = self.byte()?;
                let size = match byte >> 4 {
                    15 => usize::try_from(self.varint()?).map_err(|_| broken())?,
                    size => usize::from(size),
                };
                // Each takes a byte at least.
                if size > self.bytes.len() - self.at {
                    return Err(broken());
                }
                let kind = byte & 0x0f;
                Value::List { kind, size }
            }
            12 => Value::Struct,
            13 => self.take(16).map(|_| Value::Other)?,
            // Parquet has no maps.
            _ => return Err(broken()),
        })
    }

    /// Passes over the rest of a value that has begun.
    pub fn pass(&mut self, value: Value<'a>, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            return Err(broken());
        }
        match value {
            Value::Struct => {
                let mut number = 0;
                while let Some((next, kind)) = self.field(number)? {
                    number = next;
                    let value = self.value(kind)?;
                    self.pass(value, depth + 1)?;
                }
            }
            // Each truth in a list takes a byte, which the library does not pass over.
            Value::List { kind: 1 | 2, size } if size > 0 => return Err(broken()),
            Value::List { kind, size } => {
                for _ in 0..size {
                    let value = self.value(kind)?;
                    self.pass(value, depth + 1)?;
                }
            }
            Value::Number(_) | Value::Binary(_) | Value::Other => {}
        }
        Ok(())
    }
}

/// How a kind is written.
fn code(kind: &Kind) -> u8 {
    match kind {
        Kind::Bool => 1,
        Kind::Byte => 3,
        Kind::I16 => 4,
        Kind::I32 => 5,
        Kind::I64 => 6,
        Kind::Double => 7,
        Kind::Binary => 8,
        Kind::List(_) => 9,
        Kind::Struct(_) => 12,
    }
}
