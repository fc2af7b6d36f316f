//! Is there room for what a Parquet file holds? A few bytes can stand for many: a page is compressed, a value is named
//! again and again, a schema nests without end, and the library believes what a file says of itself.

use std::io::Read as _;

use parquet::basic::Compression;
use parquet::column::reader::ColumnReader;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::format::{FILE, PAGE};
use super::thrift::{Reader, Result, Value};

/// Bytes of all pages, unpacked, and of all texts.
pub const BYTES: u64 = 4 << 30;
/// Bytes of one page.
const PAGE_BYTES: u64 = 1 << 30;
/// Values of all columns: as many in any file, as many in a large one, which may have one for each of its bytes.
const VALUES: u64 = 1_000_000;
const MOST_VALUES: u64 = 50_000_000;
const ROWS: u64 = 1_000_000;
/// Columns, and groups around one.
const COLUMNS: usize = 2_000;
const DEEPEST: usize = 16;
/// Rows that are counted at a time.
const BATCH: usize = 1_024;

/// The end of a file: its schema, and lists that are as long as they say. Before the library reads it.
pub fn footer(bytes: &[u8]) -> Result<()> {
    let damaged = || "it cannot be read: it is damaged".to_owned();
    let (rest, end) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
    let length = u32::from_le_bytes([end[0], end[1], end[2], end[3]]) as usize;
    let begin = rest.len().checked_sub(length).ok_or_else(damaged)?;
    Reader::new(&rest[begin..]).check(FILE)?;
    let mut reader = Reader::new(&rest[begin..]);
    let mut number = 0;
    while let Some((next, kind)) = reader.field(number)? {
        number = next;
        match (number, reader.value(kind)?) {
            (2, Value::List { kind: 12, size }) => schema(&mut reader, size)?,
            (_, value) => reader.pass(value, 0)?,
        }
    }
    Ok(())
}

/// Elements in the order in which they are nested, each with the number of its children.
fn schema(reader: &mut Reader<'_>, size: usize) -> Result<()> {
    if size > COLUMNS {
        return Err(format!("it has more than {COLUMNS} columns"));
    }
    let mut open: Vec<i64> = Vec::new();
    for _ in 0..size {
        let mut children = 0;
        let mut number = 0;
        while let Some((next, kind)) = reader.field(number)? {
            number = next;
            match (number, reader.value(kind)?) {
                (5, Value::Number(n)) => children = n,
                (_, value) => reader.pass(value, 0)?,
            }
        }
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        if children > 0 {
            open.push(children);
        }
        if open.len() > DEEPEST {
            return Err(format!("its columns are nested more than {DEEPEST} deep"));
        }
    }
    Ok(())
}

/// What the pages say that they hold, and what they do. Before the library unpacks one.
pub fn pages(bytes: &[u8], metadata: &ParquetMetaData) -> Result<()> {
    let most_values = (bytes.len() as u64).clamp(VALUES, MOST_VALUES);
    let (mut unpacked, mut values) = (0, 0);
    for column in metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns())
    {
        let (begin, length) = column.byte_range();
        let end = begin.saturating_add(length).min(bytes.len() as u64);
        let chunk = usize::try_from(begin).ok().and_then(|begin| {
            let end = usize::try_from(end).ok()?;
            bytes.get(begin..end)
        });
        let mut rest = chunk.unwrap_or_default();
        while !rest.is_empty() {
            let (header, length) = Header::read(rest)?;
            let content = &rest[length..];
            let packed = usize::try_from(header.packed)
                .unwrap_or(usize::MAX)
                .min(content.len());
            unpacked += header.unpacked.max(0).unsigned_abs();
            values += header.values.max(0).unsigned_abs();
            if header.unpacked.max(0).unsigned_abs() > PAGE_BYTES
                || unpacked > BYTES
                || values > most_values
            {
                return Err(too_much());
            }
            if matches!(column.compression(), Compression::GZIP(_)) {
                gzip(&content[..packed], header.unpacked.max(0).unsigned_abs())?;
            }
            rest = &content[packed..];
        }
    }
    // The library makes a row as often as a group of them says, of no columns too.
    let rows = metadata.row_groups().iter().map(|group| group.num_rows());
    let rows = rows.fold(0u64, |all, rows| {
        all.saturating_add(rows.max(0).unsigned_abs())
    });
    if rows > values {
        return Err("it has fewer values than rows".to_owned());
    }
    if rows > ROWS {
        return Err(too_much());
    }
    Ok(())
}

fn too_much() -> String {
    "it holds more than there is room for".to_owned()
}

/// The one codec whose pages are unpacked to their end, whatever their header says.
fn gzip(content: &[u8], declared: u64) -> Result<()> {
    let mut unpacked = flate2::read::MultiGzDecoder::new(content).take(declared + 1);
    match std::io::copy(&mut unpacked, &mut std::io::sink()) {
        Ok(bytes) if bytes > declared => Err("a page of it is larger than it says".to_owned()),
        // Damage is reported by the library; levels before the data of a page are not packed.
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Header {
    unpacked: i64,
    packed: i64,
    values: i64,
}

impl Header {
    /// With its length.
    fn read(bytes: &[u8]) -> Result<(Header, usize)> {
        Reader::new(bytes).check(PAGE)?;
        let mut reader = Reader::new(bytes);
        let mut header = Header::default();
        let mut number = 0;
        while let Some((next, kind)) = reader.field(number)? {
            number = next;
            match (number, reader.value(kind)?) {
                (2, Value::Number(n)) => header.unpacked = n,
                (3, Value::Number(n)) => header.packed = n,
                // Of data pages and of dictionaries.
                (5 | 7 | 8, Value::Struct) => {
                    let mut number = 0;
                    while let Some((next, kind)) = reader.field(number)? {
                        number = next;
                        match (number, reader.value(kind)?) {
                            (1, Value::Number(n)) => header.values = header.values.max(n),
                            (_, value) => reader.pass(value, 0)?,
                        }
                    }
                }
                (_, value) => reader.pass(value, 0)?,
            }
        }
        Ok((header, reader.at()))
    }
}

/// All texts together take no more than `most` bytes: one that stands in a dictionary may be named by every row. Before
/// texts are made of them.
pub fn texts(reader: &SerializedFileReader<bytes::Bytes>, most: u64) -> Result<()> {
    let wrong = |e: parquet::errors::ParquetError| {
        let message = e.to_string();
        format!(
            "it cannot be read: {}",
            message.lines().next().unwrap_or_default()
        )
    };
    let mut bytes = 0;
    for at in 0..reader.num_row_groups() {
        let group = reader.get_row_group(at).map_err(wrong)?;
        for column in 0..group.num_columns() {
            let ColumnReader::ByteArrayColumnReader(mut column) =
                group.get_column_reader(column).map_err(wrong)?
            else {
                continue;
            };
            let (mut defined, mut repeated, mut values) = (Vec::new(), Vec::new(), Vec::new());
            loop {
                values.clear();
                defined.clear();
                repeated.clear();
                let (records, _, _) = column
                    .read_records(BATCH, Some(&mut defined), Some(&mut repeated), &mut values)
                    .map_err(wrong)?;
                bytes += values.iter().map(|value| value.len() as u64).sum::<u64>();
                if bytes > most {
                    return Err(too_much());
                }
                if records == 0 {
                    break;
                }
            }
        }
    }
    Ok(())
}
