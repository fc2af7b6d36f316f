#![allow(clippy::unwrap_used)]
use super::*;
use crate::report::sample;

fn parse(bytes: &[u8]) -> ResultsFile {
    ResultsFile::read(&mut LineReader::new(bytes)).unwrap()
}

fn line(graded: &InstanceResult) -> String {
    serde_json::to_string(graded).unwrap() + "\n"
}

#[test]
fn incomplete_lines_are_ignored_last_result_wins() {
    let all = sample::results(&["a"], 4, 1);
    let mut later = all[0].clone();
    later.strict.reason = "later".to_owned();
    let mut text: String = all.iter().map(line).collect();
    text += &line(&later);
    let cut = line(&all[1]);
    for length in 1..cut.len() - 1 {
        let results = parse(format!("{text}{}", &cut[..length]).as_bytes());
        assert_eq!(results.by_name.len(), 4);
        let name = (later.prediction.clone(), later.instance_id.clone());
        assert_eq!(results.by_name[&name].graded.strict.reason, "later");
        assert_eq!(results.remarks.len(), 2, "{:?}", results.remarks);
    }
    // A complete line without a final newline is valid.
    let results_file = parse(format!("{text}{}", cut.trim_end()).as_bytes());
    assert_eq!(results_file.remarks.len(), 1, "{:?}", results_file.remarks);
}

#[test]
fn a_broken_line_does_not_hide_the_next() {
    let all = sample::results(&["a"], 2, 1);
    let broken = line(&all[0])[..40].to_owned();
    let mut bytes = format!("{broken}{}", line(&all[1])).into_bytes();
    bytes.extend(b"\xff\xfe\n\n");
    bytes.extend(line(&all[0]).into_bytes());
    let results = parse(&bytes);
    assert_eq!(results.by_name.len(), 1);
    let first = results.by_name.values().next().unwrap();
    assert_eq!(first.graded.instance_id, all[0].instance_id);
    assert_eq!(first.text, line(&all[0]).trim_end().as_bytes());
    assert!(results.remarks[0].starts_with("line 1 of results.jsonl is not a valid result"));
    assert!(results.remarks[1].starts_with("line 2 of results.jsonl"));
    assert_eq!(parse(b""), ResultsFile::default());
}
