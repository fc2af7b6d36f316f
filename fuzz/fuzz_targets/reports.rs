//! Reports on results. The input is lines of `results.jsonl` and, after the byte 0xff, a text for all text fields. The
//! text must never become markup of the page.
#![no_main]

use testwright_evals::InstanceResult;
use testwright_evals::report::{RunMetadata, write};
use testwright_evals::result::results_file::ResultsFile;
use testwright_fuzz::{bounded_target, file, folder, texts};
use testwright_sandboxes::plain_file::LineReader;

/// A tag that a page contains only if text became markup.
const TAG: &str = "<fuzzed";

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let [Some(lines), text] = texts(data) else {
        return;
    };
    let Ok(stored) = ResultsFile::read(&mut LineReader::new(lines.as_bytes())) else {
        return;
    };
    let text = format!("{}{TAG} a='\"`>", text.unwrap_or_default());
    let mut out = String::new();
    for line in stored.by_name.into_values().take(8) {
        let mut graded: InstanceResult = line.graded;
        graded.instance_id.push_str(&text);
        graded.prediction.push_str(&text);
        graded.repo.push_str(&text);
        graded.notes.push(text.clone());
        graded.contributed.push(text.clone());
        graded.differs.push(text.clone());
        graded.strict.reason.push_str(&text);
        graded.logs.insert(text.clone(), text.clone());
        out.push_str(&serde_json::to_string(&graded).expect("a line"));
        out.push('\n');
    }
    file("results.jsonl", out.as_bytes());
    if write(folder(), &RunMetadata::default()).is_ok() {
        let page = std::fs::read_to_string(folder().join("report.html")).expect("a page");
        assert!(!page.contains(TAG), "a text became markup");
        assert!(page.len() < 40 * out.len() + 200_000);
    }
});
