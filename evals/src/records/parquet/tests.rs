#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::json;

use crate::dataset::Dataset;
use crate::predictions;

const SCHEMA: &str = "message schema {
    REQUIRED BYTE_ARRAY instance_id (UTF8);
    REQUIRED BYTE_ARRAY repo (UTF8);
    REQUIRED BYTE_ARRAY base_commit (UTF8);
    REQUIRED BYTE_ARRAY problem_statement (UTF8);
    OPTIONAL BYTE_ARRAY hints_text (UTF8);
    OPTIONAL INT64 created_at (TIMESTAMP(MICROS,true));
    OPTIONAL INT64 stars;
    OPTIONAL group FAIL_TO_PASS (LIST) { REPEATED group list { OPTIONAL BYTE_ARRAY element (UTF8); } }
}";

/// Two instances; the second has nothing that may be missing.
fn parquet_bytes(compression: Compression) -> Vec<u8> {
    let schema = std::sync::Arc::new(parse_message_type(SCHEMA).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .build();
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, schema, std::sync::Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let texts: [[&str; 2]; 4] = [
        ["acme__slugs-1", "acme__slugs-2"],
        ["acme/slugs", "acme/slugs"],
        ["0123abc", "4567def"],
        ["It fails: é", "It is slow"],
    ];
    let text = |text: &str| ByteArray::from(text);
    let mut number = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        match column.untyped() {
            ColumnWriter::ByteArrayColumnWriter(writer) => match number {
                0..=3 => writer.write_batch(&texts[number].map(text), None, None),
                4 => writer.write_batch(&[text("a hint")], Some(&[1, 0]), None),
                _ => {
                    let names = [text("t.py::a"), text("t.py::b[x, 'y']")];
                    writer.write_batch(&names, Some(&[3, 3, 0]), Some(&[0, 1, 0]))
                }
            },
            ColumnWriter::Int64ColumnWriter(writer) => {
                let value = if number == 5 {
                    1_646_320_494_000_000
                } else {
                    7
                };
                writer.write_batch(&[value], Some(&[1, 0]), None)
            }
            _ => unreachable!(),
        }
        .unwrap();
        column.close().unwrap();
        number += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

fn stored(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new()
        .suffix(".jsonl")
        .tempfile()
        .unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

fn expected() -> [serde_json::Value; 2] {
    [
        json!({
            "instance_id": "acme__slugs-1", "repo": "acme/slugs", "base_commit": "0123abc",
            "problem_statement": "It fails: é", "hints_text": "a hint", "created_at": "2022-03-03T15:14:54Z",
            "stars": 7, "FAIL_TO_PASS": ["t.py::a", "t.py::b[x, 'y']"],
        }),
        json!({
            "instance_id": "acme__slugs-2", "repo": "acme/slugs", "base_commit": "4567def",
            "problem_statement": "It is slow", "stars": null,
        }),
    ]
}

#[test]
fn files_are_known_by_their_begin_and_read_with_each_codec() {
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        let file = stored(&parquet_bytes(compression));
        let dataset = Dataset::read(file.path()).unwrap();
        let read: Vec<serde_json::Value> = dataset
            .instances
            .iter()
            .map(|i| serde_json::to_value(i).unwrap())
            .collect();
        assert_eq!(read, expected(), "{compression:?}");
    }
}

#[test]
fn a_file_cut_short_or_spoilt_is_one_clear_line() {
    let whole = parquet_bytes(Compression::SNAPPY);
    for length in 4..whole.len() {
        let error = super::rows(whole[..length].to_vec()).unwrap_err();
        assert!(error.starts_with("its end is missing"), "{length}: {error}");
    }
    let file = stored(&whole[..whole.len() / 2]);
    let error = Dataset::read(file.path()).unwrap_err().to_string();
    assert!(
        error.contains("begins as a Parquet file does, and its end is missing")
            && error.lines().count() == 1,
        "{error}"
    );
    // The end is there, and what it points to is not.
    let mut spoilt = whole.clone();
    let footer = spoilt.len() - 8;
    spoilt[footer..footer + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = Dataset::read(stored(&spoilt).path())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("it cannot be read") && error.lines().count() == 1,
        "{error}"
    );
}

#[test]
fn what_is_wrong_with_a_record_is_told_by_its_row() {
    let schema = "message schema { REQUIRED BYTE_ARRAY instance_id (UTF8); }";
    let schema = std::sync::Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    if let ColumnWriter::ByteArrayColumnWriter(writer) = column.untyped() {
        let ids = [ByteArray::from("a"), ByteArray::from("b")];
        writer.write_batch(&ids, None, None).unwrap();
    }
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let error = Dataset::read(stored(&bytes).path())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("row 2: `b` lacks repo, base_commit, problem_statement"),
        "{error}"
    );
}

#[test]
fn predictions_may_be_parquet_too() {
    let dataset = Dataset::read(stored(&parquet_bytes(Compression::SNAPPY)).path()).unwrap();
    let file = stored(&parquet_bytes(Compression::SNAPPY));
    let (sets, _) = predictions::read(&[file.path()], &dataset, &dataset).unwrap();
    assert_eq!(sets[0].by_instance.len(), 2);
}

/// As the field has them: written by pyarrow, in SWE-bench's columns.
const SCRIPT: &str = r#"
import datetime, json, sys
import pyarrow as pa, pyarrow.parquet as pq
row = {"instance_id": "a__b-1", "repo": "a/b", "base_commit": "0123abc", "problem_statement": "It", "version": "0.3",
       "created_at": datetime.datetime(2022, 3, 3, 15, 14, 54), "FAIL_TO_PASS": json.dumps(["t.py::x"]),
       "PASS_TO_PASS": ["t.py::y", "t.py::z"], "difficulty": 3, "hints_text": None}
other = dict(row, instance_id="a__b-2", created_at=None, PASS_TO_PASS=None, difficulty=4)
for unit in ("s", "ms", "us", "ns"):
    for codec in ("snappy", "zstd", "gzip", "none"):
        schema = pa.schema([(k, pa.large_string() if k == "repo" else pa.string()) for k in
            ("instance_id", "repo", "base_commit", "problem_statement", "version", "FAIL_TO_PASS", "hints_text")]
            + [("created_at", pa.timestamp(unit)), ("PASS_TO_PASS", pa.list_(pa.string())), ("difficulty", pa.int32())])
        table = pa.Table.from_pylist([row, other], schema=schema)
        pq.write_table(table, f"{sys.argv[1]}/{unit}-{codec}.parquet", compression=codec)
"#;

#[test]
fn files_of_pyarrow_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let wrote = Command::new("uv")
        .args(["run", "--no-project", "--quiet", "--with", "pyarrow"])
        .args(["python", "-c", SCRIPT])
        .arg(folder.path())
        .output();
    match wrote {
        Ok(output) if output.status.success() => {}
        // The files of our own writer are read in the other tests.
        failed => {
            eprintln!("skipped: pyarrow is not to be had: {failed:?}");
            return;
        }
    }
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 16);
    for file in files {
        check(&file.unwrap().path());
    }
}

fn check(path: &Path) {
    let dataset = Dataset::read(path).unwrap();
    let (first, second) = (&dataset.instances[0], &dataset.instances[1]);
    assert_eq!(
        first.created_at.as_deref(),
        Some("2022-03-03T15:14:54Z"),
        "{path:?}"
    );
    assert_eq!(first.fail_to_pass, Some(vec!["t.py::x".to_owned()]));
    let passing = ["t.py::y", "t.py::z"].map(str::to_owned).to_vec();
    assert_eq!(first.pass_to_pass, Some(passing));
    assert_eq!(first.other["difficulty"], 3);
    assert_eq!((&second.created_at, &second.pass_to_pass), (&None, &None));
    assert_eq!(second.hints_text, None);
}

/// The library panics on some of these.
#[test]
fn damaged_bytes_are_an_error_at_most() {
    let whole = parquet_bytes(Compression::SNAPPY);
    let mut seed = 5u64;
    let mut errors = 0;
    for _ in 0..600 {
        let mut bytes = whole.clone();
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let at = 4 + (seed >> 33) as usize % (bytes.len() - 8);
        bytes[at] = (seed >> 20) as u8;
        errors += usize::from(super::rows(bytes).is_err());
    }
    assert!((100..600).contains(&errors), "{errors}");
}

/// A text of a mebibyte that every row names.
#[test]
fn texts_are_counted_as_often_as_they_are_named() {
    let times = 100;
    for is_list in [false, true] {
        let schema = match is_list {
            true => {
                "message schema { REQUIRED group a (LIST) { REPEATED group list { REQUIRED BYTE_ARRAY element (UTF8); } } }"
            }
            false => "message schema { REQUIRED BYTE_ARRAY a (UTF8); }",
        };
        let schema = std::sync::Arc::new(parse_message_type(schema).unwrap());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_page_size_limit(1 << 30)
            .build();
        let mut bytes = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut bytes, schema, std::sync::Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let ColumnWriter::ByteArrayColumnWriter(texts) = column.untyped() else {
            unreachable!()
        };
        let values = vec![ByteArray::from(vec![b'x'; 1 << 20]); times];
        let levels: Vec<i16> = (0..times).map(|at| i16::from(at > 0)).collect();
        let (defined, repeated) = is_list.then(|| (vec![1i16; times], levels)).unzip();
        texts
            .write_batch(&values, defined.as_deref(), repeated.as_deref())
            .unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
        let reader =
            parquet::file::reader::SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let all = (times as u64) << 20;
        assert!(super::limits::texts(&reader, all).is_ok());
        let refused = super::limits::texts(&reader, all - 1).unwrap_err();
        assert!(refused.contains("more than there is room for"), "{refused}");
    }
}
