//! Rows of a Parquet file as JSON objects: texts, numbers, truth values, lists and structs as they are; points in time as
//! RFC 3339 texts.

mod format;
mod limits;
mod thrift;

use std::sync::Arc;

use jiff::Timestamp;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use serde_json::{Map, Number, Value};

const MAGIC: &[u8] = b"PAR1";

pub(super) fn is_parquet(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Records with their rows, from 1; or what is wrong with the file, fit to follow "it is Parquet, and …".
pub(super) fn rows(bytes: Vec<u8>) -> Result<Vec<(usize, Value)>, String> {
    if !bytes.ends_with(MAGIC) || bytes.len() < 12 {
        return Err("its end is missing: it was not fetched or written to the end".to_owned());
    }
    // On some damaged files the library panics.
    std::panic::catch_unwind(|| read(bytes))
        .unwrap_or_else(|_| Err("it cannot be read: it is damaged".to_owned()))
}

fn read(bytes: Vec<u8>) -> Result<Vec<(usize, Value)>, String> {
    let wrong = |e: parquet::errors::ParquetError| {
        let message = e.to_string();
        let line = message.lines().next().unwrap_or_default();
        format!("it cannot be read: {line}")
    };
    let bytes = bytes::Bytes::from(bytes);
    limits::footer(&bytes)?;
    let reader = SerializedFileReader::new(bytes.clone()).map_err(wrong)?;
    limits::pages(&bytes, reader.metadata())?;
    limits::texts(&reader, limits::BYTES)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let units: Vec<Option<TimeUnit>> = schema.root_schema().get_fields().iter().map(unit).collect();
    let mut rows = Vec::new();
    for (number, row) in (1..).zip(reader.get_row_iter(None).map_err(wrong)?) {
        rows.push((number, object(&row.map_err(wrong)?, &units)));
    }
    Ok(rows)
}

/// Of a column of points in time.
fn unit(column: &Arc<Type>) -> Option<TimeUnit> {
    match column.get_basic_info().logical_type_ref() {
        Some(LogicalType::Timestamp(timestamp)) => Some(timestamp.unit),
        _ => None,
    }
}

fn object(row: &Row, units: &[Option<TimeUnit>]) -> Value {
    let columns = row.get_column_iter().enumerate();
    let fields = columns.map(|(at, (name, field))| {
        let unit = units.get(at).copied().flatten();
        let value = match (unit, field) {
            (Some(unit), Field::Long(count)) => time(*count, unit),
            _ => value(field),
        };
        (name.clone(), value)
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => Value::Bool(*value),
        Field::Byte(n) => Value::from(*n),
        Field::Short(n) => Value::from(*n),
        Field::Int(n) => Value::from(*n),
        Field::Long(n) => Value::from(*n),
        Field::UByte(n) => Value::from(*n),
        Field::UShort(n) => Value::from(*n),
        Field::UInt(n) => Value::from(*n),
        Field::ULong(n) => Value::from(*n),
        Field::Float(n) => number(f64::from(*n)),
        Field::Double(n) => number(*n),
        Field::Str(text) => Value::String(text.clone()),
        // Text, where the writer did not say so.
        Field::Bytes(bytes) => Value::String(String::from_utf8_lossy(bytes.data()).into_owned()),
        Field::TimestampMillis(count) => time(*count, TimeUnit::MILLIS),
        Field::TimestampMicros(count) => time(*count, TimeUnit::MICROS),
        Field::Group(row) => object(row, &[]),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        Field::MapInternal(map) => {
            let entries = map.entries().iter().map(|(key, of)| {
                let key = match value(key) {
                    Value::String(key) => key,
                    other => other.to_string(),
                };
                (key, value(of))
            });
            Value::Object(entries.collect())
        }
        // Dates, decimals and half floats, as the library writes them.
        other => Value::String(other.to_string()),
    }
}

/// JSON has no NaN, which some write for "nothing".
fn number(n: f64) -> Value {
    Number::from_f64(n).map_or(Value::Null, Value::Number)
}

/// A count too far off for a date stays a number.
fn time(count: i64, unit: TimeUnit) -> Value {
    let timestamp = match unit {
        TimeUnit::MILLIS => Timestamp::from_millisecond(count),
        TimeUnit::MICROS => Timestamp::from_microsecond(count),
        TimeUnit::NANOS => Timestamp::from_nanosecond(i128::from(count)),
    };
    timestamp.map_or_else(|_| Value::from(count), |t| Value::String(t.to_string()))
}

#[cfg(test)]
mod tests;
