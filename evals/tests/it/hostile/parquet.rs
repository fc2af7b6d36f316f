//! Parquet files of a few kilobytes that stand for more than there is room for.

use std::sync::Arc;

use ::parquet::basic::{Compression, GzipLevel};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;

use super::*;

fn refused(content: &[u8]) -> String {
    let folder = Folder::new();
    let path = folder.file("dataset.parquet", content);
    let message = Dataset::read(&path).unwrap_err().to_string();
    is_fit_to_be_shown(&message);
    message
}

/// A column of one text.
fn parquet_bytes(text: &[u8], compression: Compression) -> Vec<u8> {
    let schema = parse_message_type("message schema { REQUIRED BYTE_ARRAY a (UTF8); }");
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_page_size_limit(1 << 30)
        .build();
    let mut bytes = Vec::new();
    let schema = Arc::new(schema.unwrap());
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let ColumnWriter::ByteArrayColumnWriter(texts) = column.untyped() else {
        unreachable!()
    };
    texts
        .write_batch(&[ByteArray::from(text.to_vec())], None, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn a_page_is_no_larger_than_it_says() {
    let mut bytes = parquet_bytes(
        &vec![b'x'; 50 << 20],
        Compression::GZIP(GzipLevel::default()),
    );
    // Of the dictionary's page: the text and its length, as a number of Thrift's.
    let number = |mut n: u64| {
        n <<= 1;
        let mut bytes = Vec::new();
        while n >= 0x80 {
            bytes.push((n & 0x7f) as u8 | 0x80);
            n >>= 7;
        }
        bytes.push(n as u8);
        bytes
    };
    let (true_size, smaller) = (number((50 << 20) + 4), number(2_000_000));
    assert_eq!(true_size.len(), smaller.len());
    let at = bytes.windows(4).position(|four| four == true_size).unwrap();
    bytes[at..at + 4].copy_from_slice(&smaller);
    let message = refused(&bytes);
    assert!(message.contains("larger than it says"), "{message}");
}

/// A file of nothing but its end.
fn with_end(end: &[u8]) -> Vec<u8> {
    let length = u32::try_from(end.len()).unwrap().to_le_bytes();
    [b"PAR1".as_slice(), end, &length, b"PAR1"].concat()
}

#[test]
fn columns_are_not_nested_without_end() {
    for levels in [100usize, 200_000] {
        let mut end = vec![0x15, 0x02, 0x19, 0xfc];
        let mut size = levels + 2;
        while size >= 0x80 {
            end.push((size & 0x7f) as u8 | 0x80);
            size >>= 7;
        }
        end.push(size as u8);
        end.extend([0x48, 1, b's', 0x15, 0x02, 0]);
        for _ in 0..levels {
            end.extend([0x35, 0, 0x18, 1, b'a', 0x15, 0x02, 0]);
        }
        end.extend([0x15, 0x0c, 0x25, 0, 0x18, 1, b'a', 0]);
        end.extend([0x16, 0, 0x19, 0x0c, 0]);
        let message = refused(&with_end(&end));
        assert!(
            message.contains("nested") || message.contains("columns"),
            "{message}"
        );
    }
}

#[test]
fn lists_are_as_long_as_they_say() {
    // Two thousand million columns, or groups of rows, of which there is none.
    let long = [0xff, 0xff, 0xff, 0xff, 0x07];
    let schema = [&[0x15, 0x02, 0x19, 0xfc], long.as_slice()].concat();
    let groups = [
        &[
            0x15, 0x02, 0x19, 0x2c, 0x48, 1, b's', 0x15, 0x02, 0, 0x15, 0x0c, 0x25, 0, 0x18, 1,
            b'a', 0,
        ],
        [0x16, 0, 0x19, 0xfc].as_slice(),
        &long,
    ]
    .concat();
    for end in [schema, groups] {
        let message = refused(&with_end(&end));
        assert!(
            message.contains("damaged")
                || message.contains("columns")
                || message.contains("exceeds"),
            "{message}"
        );
    }
}

/// The library reads a field as what its number says, whatever kind is written before it: here it found a list of two
/// thousand million elements that take no bytes.
#[test]
fn a_page_header_holds_what_the_format_says() {
    let bytes = include_bytes!("../../../../fuzz/corpus/parquet/page_header_of_another_kind");
    let message = refused(bytes);
    assert!(message.contains("damaged"), "{message}");
}

#[test]
fn rows_have_columns() {
    // A root without children; a group of 2^40 rows without columns.
    let rows = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
    let end = [
        [0x15, 0x02, 0x19, 0x1c, 0x48, 1, b's', 0x15, 0, 0, 0x16].as_slice(),
        &rows,
        &[0x19, 0x1c, 0x19, 0x0c, 0x16, 0, 0x16],
        &rows,
        &[0, 0],
    ];
    let message = refused(&with_end(&end.concat()));
    assert!(message.contains("fewer values than rows"), "{message}");
}

/// Of a column that is null everywhere, a run of ten million rows takes a few bytes.
#[test]
fn rows_are_counted_before_they_are_made() {
    let schema = parse_message_type("message schema { OPTIONAL INT64 a; }").unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, Arc::new(schema), Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let ColumnWriter::Int64ColumnWriter(numbers) = column.untyped() else {
        unreachable!()
    };
    let levels = vec![0; 10_000_000];
    numbers.write_batch(&[], Some(&levels), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    assert!(bytes.len() < 100_000, "{} bytes", bytes.len());
    let message = refused(&bytes);
    assert!(message.contains("more than there is room for"), "{message}");
}
