//! Datasets and predictions as text: JSON lines, a JSON array, or an object by instance. Lines and an array of the same
//! records must give the same result.
#![no_main]

use testwright_evals::{Dataset, predictions};
use testwright_fuzz::{bounded_target, file};

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    if data.starts_with(b"PAR1") {
        return;
    }
    let path = file("records.jsonl", data);
    match Dataset::read(&path) {
        Ok(read) => {
            let line = |instance| serde_json::to_string(instance).expect("an instance as JSON");
            let all: Vec<String> = read.instances.iter().map(line).collect();
            let lines = Dataset::read(&file("lines.jsonl", all.join("\n").as_bytes()));
            let array = Dataset::read(&file("array.json", format!("[{}]", all.join(",\n")).as_bytes()));
            assert_eq!(facts(&lines.expect("lines")), facts(&read));
            assert_eq!(facts(&array.expect("an array")), facts(&read));
            let found = predictions::read(&[&path], &read, &read);
            if let Ok((sets, _)) = found {
                assert!(sets.iter().all(|set| set.by_instance.len() <= read.instances.len()));
            }
        }
        Err(error) => {
            let length = error.to_string().len();
            assert!(length < 20_000, "{length} bytes are said about {} bytes", data.len());
            let none = Dataset { path: path.clone(), ..Dataset::default() };
            let _ = predictions::read(&[&path], &none, &none);
        }
    }
});

/// Returns the fields to compare. In other fields, the last digits of numbers may change.
fn facts(dataset: &Dataset) -> Vec<(&str, &str, Option<&str>, Option<&Vec<String>>)> {
    let of = |i| {
        let instance: &testwright_evals::Instance = i;
        let patch = instance.patch.as_deref();
        (
            instance.instance_id.as_str(),
            instance.problem_statement.as_str(),
            patch,
            instance.fail_to_pass.as_ref(),
        )
    };
    dataset.instances.iter().map(of).collect()
}
