//! Datasets in Parquet.
#![no_main]

use testwright_evals::Dataset;
use testwright_fuzz::{bounded_target, file};

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    testwright_fuzz::let_panics_be_caught();
    // Mutations rarely leave both marks in place.
    let mut bytes = data.to_vec();
    if bytes.len() >= 12 {
        let end = bytes.len();
        bytes[..4].copy_from_slice(b"PAR1");
        bytes[end - 4..].copy_from_slice(b"PAR1");
    }
    match Dataset::read(&file("records.parquet", &bytes)) {
        Ok(read) => drop(serde_json::to_string(&read.instances).expect("instances as JSON")),
        Err(error) => assert!(error.to_string().len() < 20_000),
    }
});
