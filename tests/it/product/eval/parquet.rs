//! Parquet files of a few kilobytes, some of which expand to more than fits in memory. The files in `parquet/` were
//! written by pyarrow.

use std::path::Path;

use crate::support::program::{TestDir, assert_exit_code};

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/product/eval/parquet");
    std::fs::read(folder.join(name)).unwrap()
}

/// Returns the line with which `testwright eval` rejects a dataset.
fn refuse(dataset: &[u8]) -> String {
    let place = TestDir::new();
    std::fs::write(place.path("dataset.parquet"), dataset).unwrap();
    let output = place
        .testwright()
        .arg("eval")
        .arg("--dataset")
        .arg(place.path("dataset.parquet"))
        .arg("--predictions")
        .arg(place.path("absent.jsonl"))
        .arg("--out")
        .arg(place.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&output, 2);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: failed to read"), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

#[test]
fn parquet_dataset_is_read() {
    // Its instances are complete, except that they have no fix.
    let message = refuse(&fixture("dataset.parquet"));
    assert!(
        message.contains("2 of 2 instances have no code patch"),
        "{message}"
    );
}

#[test]
fn incomplete_record_is_named_by_its_row() {
    let message = refuse(&fixture("second_row_incomplete.parquet"));
    let lack = "row 2: `acme__slugs-2`: missing fields: repo, base_commit, problem_statement";
    assert!(message.contains(lack), "{message}");
}

/// Each of 6,000 rows refers to the same text of 1 MiB.
#[test]
fn text_that_many_rows_repeat_is_refused() {
    let message = refuse(&fixture("repeated_text.parquet"));
    assert!(message.contains("exceeds the size limit"), "{message}");
}

/// Ten million rows without a value take only a few bytes.
#[test]
fn too_many_rows_are_refused() {
    let message = refuse(&fixture("null_rows.parquet"));
    assert!(message.contains("exceeds the size limit"), "{message}");
}

/// Returns a file with this footer between the two magic numbers.
fn with_footer(footer: &[u8]) -> Vec<u8> {
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [b"PAR1".as_slice(), footer, &length, b"PAR1"].concat()
}

/// The library builds the tree of columns recursively, so deep nesting could overflow the stack.
#[test]
fn columns_nested_too_deep_are_refused() {
    let levels = 200_000usize;
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    let mut size = levels + 2;
    while size >= 0x80 {
        footer.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    footer.push(size as u8);
    footer.extend([0x48, 1, b's', 0x15, 0x02, 0]);
    for _ in 0..levels {
        footer.extend([0x35, 0, 0x18, 1, b'a', 0x15, 0x02, 0]);
    }
    footer.extend([0x15, 0x0c, 0x25, 0, 0x18, 1, b'a', 0]);
    footer.extend([0x16, 0, 0x19, 0x0c, 0]);
    let message = refuse(&with_footer(&footer));
    assert!(message.contains("exceeds the size limit"), "{message}");
}

/// The root has no children, and the row group has 2^40 rows without columns.
#[test]
fn rows_without_columns_are_refused() {
    let rows = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
    let footer = [
        [0x15, 0x02, 0x19, 0x1c, 0x48, 1, b's', 0x15, 0, 0, 0x16].as_slice(),
        &rows,
        &[0x19, 0x1c, 0x19, 0x0c, 0x16, 0, 0x16],
        &rows,
        &[0, 0],
    ];
    let message = refuse(&with_footer(&footer.concat()));
    assert!(message.contains("exceeds the size limit"), "{message}");
}

#[test]
fn damaged_files_are_one_error() {
    let intact_bytes = fixture("dataset.parquet");
    let mut outside = intact_bytes.clone();
    let footer = outside.len() - 8;
    outside[footer..footer + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let message = refuse(&outside);
    assert!(message.contains("it cannot be read"), "{message}");

    // The library panics on some of these files.
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..60 {
        let mut bytes = intact_bytes.clone();
        let at = random.usize(4..bytes.len() - 8);
        bytes[at] = random.u8(..);
        refuse(&bytes);
    }
}
