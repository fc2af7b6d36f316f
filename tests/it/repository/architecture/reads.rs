//! Checks that files are read through one module, which opens only regular files up to a maximum size.

use super::{Source, sources};

/// Functions that read a file by name without a size limit.
const UNBOUNDED_READS: [&str; 5] = [
    "fs::read(",
    "fs::read_to_string(",
    "fs::copy(",
    "File::open(",
    ".read(true)",
];

/// Files that may call these functions, with the reason.
const ALLOWED: [(&str, &[&str]); 6] = [
    ("the reader itself", &["sandboxes/src/plain_file.rs"]),
    (
        "opens with the flags of the reader, checks, and appends",
        &[
            "evals/src/harness/results.rs",
            "comparisons/src/clover/evaluation.rs",
            "models/src/spending_limit.rs",
            "comparisons/src/record_file.rs",
        ],
    ),
    (
        "readers with their own limits",
        &[
            "models/src/cassette/recorder.rs",
            "config/src/settings/layer.rs",
        ],
    ),
    (
        "the system's own files",
        &[
            "sandboxes/src/egress.rs",
            "server/src/machine.rs",
            "server/src/telemetry/process.rs",
            "comparisons/src/grading/mod.rs",
        ],
    ),
    (
        "the cache, which only this user can write, and files that the program has just created",
        &[
            "evals/src/harness/test_run_cache.rs",
            "sandboxes/src/docker/",
            "sandboxes/src/egress/",
            "sandboxes/src/environment/",
            "sandboxes/src/local/",
            "sandboxes/src/repository/",
            "sandboxes/src/sandbox.rs",
            "sandboxes/src/uv.rs",
            "server/src/artifacts/mod.rs",
        ],
    ),
    (
        "inside a sandbox, within its limits; `workspace/regular.rs` reads what tests can replace",
        &["tools/src/"],
    ),
];

/// Returns the text without its unit tests.
fn without_unit_tests(text: &str) -> &str {
    let tests = text.find("#[cfg(test)]\nmod tests {");
    tests.map_or(text, |at| &text[..at])
}

fn raw_reads(files: &[Source]) -> Vec<String> {
    let allowed = |file: &Source| ALLOWED.iter().any(|(_, places)| file.under(places));
    let is_program = |file: &&Source| {
        file.path.split('/').any(|part| part == "src") && !file.is_test() && !allowed(file)
    };
    let mut wrong = Vec::new();
    for file in files.iter().filter(is_program) {
        for (number, line) in without_unit_tests(&file.text).lines().enumerate() {
            // Functions such as `RecordFile::open` belong to this project and are allowed.
            let is_raw = |raw: &&str| {
                let before = line.split(*raw).next().unwrap_or_default();
                line.contains(*raw) && !before.ends_with(char::is_alphanumeric)
            };
            if UNBOUNDED_READS.iter().any(is_raw) && !line.trim_start().starts_with("//") {
                wrong.push(format!("{}:{} {}", file.path, number + 1, line.trim()));
            }
        }
    }
    wrong
}

#[test]
fn files_are_read_through_one_module() {
    assert_eq!(raw_reads(&sources()), Vec::<String>::new());
    let unbounded = "use std::fs;\nlet text = fs::read_to_string(path)?;\n";
    let tested = "//! X.\n#[cfg(test)]\nmod tests {\nstd::fs::read(path)\n}\n";
    let broken = [
        Source::new("comparisons/src/inspect.rs", unbounded),
        Source::new("evals/src/records.rs", "let file = File::open(path)?;\n"),
        Source::new("agent/src/job.rs", "let file = RecordFile::open(path)?;\n"),
        Source::new("agent/src/session/mod.rs", tested),
        Source::new("sandboxes/src/plain_file.rs", unbounded),
        Source::new("tests/it/product/runs.rs", unbounded),
    ];
    assert_eq!(
        raw_reads(&broken),
        [
            "comparisons/src/inspect.rs:2 let text = fs::read_to_string(path)?;",
            "evals/src/records.rs:1 let file = File::open(path)?;",
        ]
    );
}
