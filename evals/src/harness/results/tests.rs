#![allow(clippy::unwrap_used)]
use super::*;
use crate::report::sample;

#[test]
fn cut_off_line_is_removed_when_adding() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let mut all = sample::results(&["a"], 3, 1);
    all.sort_by(|a, b| a.instance_id.cmp(&b.instance_id));
    let line = |at: usize| serde_json::to_string(&Versioned::new(&all[at])).unwrap() + "\n";
    let cut = format!("{}{}", line(0), &line(1)[..40]);
    std::fs::write(&path, &cut).unwrap();
    let mut results = Results::open(folder.path()).unwrap();
    assert_eq!(results.all().count(), 1);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), cut);
    results.add(all[2].clone()).unwrap();
    results.add(all[1].clone()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, [line(0), line(2), line(1)].concat());
    results.rewrite_sorted().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, [line(0), line(1), line(2)].concat());
    assert_eq!(results.all().count(), 3);
}
