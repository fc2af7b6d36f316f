//! Thrift's compact protocol, as far as it takes to pass over what is written in it: the library makes room for as many
//! elements as a file says that it has.

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

    /// A value, or its begin.
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
            Value::List { kind, size } => {
                for _ in 0..size {
                    let value = self.element(kind)?;
                    self.pass(value, depth + 1)?;
                }
            }
            Value::Number(_) | Value::Binary(_) | Value::Other => {}
        }
        Ok(())
    }

    /// In a list, truth values take a byte.
    pub fn element(&mut self, kind: u8) -> Result<Value<'a>> {
        match kind {
            1 | 2 => self.byte().map(|_| Value::Other),
            _ => self.value(kind),
        }
    }
}
