//! Converts Parquet files to JSON lines. Texts, numbers, booleans, lists and structs keep their values; timestamps
//! become RFC 3339 texts.
//!
//! A few bytes of a Parquet file can stand for terabytes, and the library trusts the file's own metadata. Therefore
//! this program starts itself again, to convert the file in a process with limited memory and processor time.

mod process;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use jiff::Timestamp;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use serde_json::{Map, Number, Value};

pub(super) use process::to_json_lines;
pub use process::{PARQUET, ParquetFileError, parquet_main};

const MAGIC: &[u8] = b"PAR1";
/// Maximum rows: a file can declare any number of rows without containing a single value.
const MAX_ROWS: i64 = 1_000_000;
const TOO_LARGE: &str = "its content exceeds the size limit";

pub(super) fn is_parquet(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

#[derive(Debug, thiserror::Error)]
enum ConvertError {
    #[error("it cannot be read: {}", .0.to_string().lines().next().unwrap_or_default())]
    Parquet(#[from] ParquetError),
    #[error("{TOO_LARGE}")]
    TooManyRows,
    #[error("its rows cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// Writes each row as a line of JSON.
fn convert(file: File, lines: impl Write) -> Result<(), ConvertError> {
    let reader = SerializedFileReader::new(file)?;
    let groups = reader.metadata().row_groups().iter();
    let rows = groups.fold(0i64, |rows, group| rows.saturating_add(group.num_rows()));
    if rows > MAX_ROWS {
        return Err(ConvertError::TooManyRows);
    }
    let schema = reader.metadata().file_metadata().schema_descr();
    let units: Vec<Option<TimeUnit>> = schema.root_schema().get_fields().iter().map(unit).collect();
    let mut lines = BufWriter::new(lines);
    for row in reader.get_row_iter(None)? {
        writeln!(lines, "{}", object(&row?, &units))?;
    }
    Ok(lines.flush()?)
}

/// Returns the unit of a timestamp column.
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
        // Byte arrays without a type are usually text.
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
        // Dates, decimals and half floats use the library's own format.
        other => Value::String(other.to_string()),
    }
}

/// Converts a float. JSON has no NaN, which some writers use for missing values.
fn number(n: f64) -> Value {
    Number::from_f64(n).map_or(Value::Null, Value::Number)
}

/// Converts a timestamp. A count outside the range of dates stays a number.
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
