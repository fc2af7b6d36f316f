#![allow(clippy::unwrap_used)]
use serde_json::json;
use testwright_comparisons::grading::GradingOptions;
use testwright_config::settings::Settings;

use super::*;

fn grading(ids: &[&str]) -> GradingRun {
    let records = ids.iter().map(|id| {
        json!({"instance_id": id, "repo": "a/b", "base_commit": "0123abc", "problem_statement": "It"})
    });
    let dataset = Dataset::of_records("dataset", records.collect()).unwrap();
    GradingRun {
        options: GradingOptions {
            repositories: ".".to_owned(),
            test_seconds: 1,
            workers: None,
        },
        whole: dataset.clone(),
        dataset,
        out: PathBuf::new(),
        settings: Settings::default(),
        shared: None,
    }
}

#[test]
fn patches_are_named_after_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let predictions = json!({"instance_id": "i", "model_name_or_path": "m", "model_patch": "x"});
    let files = [
        write("p1.patch", "diff"),
        write("v1.2.diff", " \n"),
        write("many.jsonl", &predictions.to_string()),
    ];
    let one = grading(&["i"]);
    let sets = read(&files, &one).unwrap();
    let found: Vec<(&str, Option<&str>)> = sets
        .iter()
        .map(|set| {
            (
                set.model.as_str(),
                set.by_instance["i"].model_patch.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [("m", Some("x")), ("p1", Some("diff")), ("v1.2", None)]
    );

    let cause = |file: PathBuf, grading: &GradingRun| {
        let files = [&files[..], &[file]].concat();
        read(&files, grading).unwrap_err().cause.unwrap()
    };
    let same = cause(write("other/p1.diff", "diff"), &one);
    assert!(
        same.starts_with("its name, `p1`, is also used by "),
        "{same}"
    );
    assert!(same.ends_with("p1.patch"), "{same}");
    let same = cause(write("m.patch", "diff"), &one);
    assert_eq!(same, "its name, `m`, is also used by a file of predictions");
    let absent = cause(folder.path().join("absent.patch"), &one);
    assert_eq!(absent, "the file does not exist");
    let several = cause(write("p2.patch", "diff"), &grading(&["i", "j"]));
    assert_eq!(several, "a patch does not name the instance that it is for");
}
