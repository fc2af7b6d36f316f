#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::Write;
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

/// Writes two instances; the second has no optional values.
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

/// Converts a Parquet file with the function that the process runs.
fn converted(parquet: File) -> tempfile::NamedTempFile {
    let lines = tempfile::NamedTempFile::new().unwrap();
    super::convert(parquet, lines.as_file()).unwrap();
    lines
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
fn all_codecs_are_read() {
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&parquet_bytes(compression)).unwrap();
        let dataset = Dataset::read(converted(file).path()).unwrap();
        let read: Vec<serde_json::Value> = dataset
            .instances
            .iter()
            .map(|i| serde_json::to_value(i).unwrap())
            .collect();
        assert_eq!(read, expected(), "{compression:?}");
    }
}

#[test]
fn truncated_file_gives_one_line() {
    let bytes = parquet_bytes(Compression::SNAPPY);
    for length in 4..bytes.len() {
        let error = super::to_json_lines(&bytes[..length]).unwrap_err();
        assert!(matches!(error, super::ParquetFileError::CutShort));
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes[..bytes.len() / 2]).unwrap();
    let error = Dataset::read(file.path()).unwrap_err().to_string();
    assert!(
        error.contains("starts like a Parquet file, but its end is missing")
            && error.lines().count() == 1,
        "{error}"
    );
}

/// Script that writes files with pyarrow, the usual writer, in SWE-bench's columns.
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
fn pyarrow_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let wrote = Command::new("uv")
        .args(["run", "--no-project", "--quiet", "--with", "pyarrow"])
        .args(["python", "-c", SCRIPT])
        .arg(folder.path())
        .output();
    match wrote {
        Ok(output) if output.status.success() => {}
        // Fixture files written by pyarrow are covered by other tests.
        failed => {
            eprintln!("skipped: pyarrow is not available: {failed:?}");
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
    let dataset = Dataset::read(converted(File::open(path).unwrap()).path()).unwrap();
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
