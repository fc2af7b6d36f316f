#![allow(clippy::unwrap_used)]
use std::path::PathBuf;

use serde_json::json;
use testwright_evals::predictions::Prediction;

use super::*;

const PATCH: &str = "--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1 @@\n-a\n+b\n";

fn dataset(test_patch: &str) -> Dataset {
    let instance = |number: u32, patch: &str| {
        let value = json!({
            "instance_id": format!("example__a-{number}"), "repo": "example/a", "base_commit": "abcdef",
            "problem_statement": "It fails.", "patch": patch, "test_patch": test_patch,
        });
        serde_json::from_value::<Instance>(value).unwrap()
    };
    Dataset {
        path: PathBuf::from("dataset.jsonl"),
        sha256: None,
        instances: vec![instance(1, PATCH), instance(2, "")],
    }
}

fn variants(names: &[&str]) -> Vec<Variant> {
    names.iter().map(|n| Variant::parse(n).unwrap()).collect()
}

fn patches() -> Predictions {
    let prediction = |number: u32| Prediction {
        instance_id: format!("example__a-{number}"),
        model_name_or_path: "other".to_owned(),
        model_patch: Some(PATCH.replace("+b", "+c")),
    };
    let all = [prediction(1), prediction(2)];
    Predictions {
        model: "other".to_owned(),
        by_instance: all.map(|p| (p.instance_id.clone(), p)).into(),
        sha256: Vec::new(),
    }
}

#[test]
fn systems_get_the_inputs_they_request() {
    let tests = "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1 +1,2 @@\n a\n+++ b/no/file.py\n\
                 --- /dev/null\n+++ b/tests/test_new.py\n@@ -0,0 +1 @@\n+b\n\
                 --- a/tests/test_gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n\
                 --- a/tests/data.json\n+++ b/tests/data.json\n@@ -1 +1 @@\n-1\n+2\n";
    let mut dataset = dataset(tests);
    dataset.instances.pop();
    let names = [
        "zero-shot-plus",
        "zero-shot-plus:given-tests=on",
        "zero-shot-plus:given-files=on",
        "libro:given-patch=on:other-patch=on",
    ];
    let variants = variants(&names);
    let patches = patches();
    let inputs = inputs(&variants, &dataset, Some(&patches)).unwrap();
    let of = |at: usize| inputs["example__a-1"].given(variants[at].options());
    assert!(of(0).is_empty());
    assert_eq!(of(1).test_files, ["tests/test_a.py", "tests/test_new.py"]);
    assert_eq!(of(1).code_patch, None);
    assert_eq!(of(2).code_patch.as_deref(), Some(PATCH));
    assert!(of(3).code_patch.unwrap().contains("+c"));
    let planned = inputs["example__a-1"].planned().unwrap();
    assert_ne!(planned.golden_patch, planned.other_patch);
    assert_eq!(planned.golden_patch.unwrap().len(), 64);
}

#[test]
fn missing_inputs_are_refused_by_name() {
    let error = |names: &[&str], patches: Option<&Predictions>| {
        let error = inputs(&variants(names), &dataset(""), patches).unwrap_err();
        error.render()
    };
    insta::assert_snapshot!(error(&["zero-shot:given-patch=on"], None), @r"
        error: failed to give `zero-shot:given-patch=on` a code patch
          cause: 1 of 2 instances has no golden code patch: example__a-2
          hint: select only instances that have it with --instances
        ");
    insta::assert_snapshot!(error(&["zero-shot:given-tests=on"], None), @r"
        error: failed to give `zero-shot:given-tests=on` test files
          cause: 2 of 2 instances have no golden tests in Python files: example__a-1, example__a-2
          hint: select only instances that have it with --instances
        ");
    insta::assert_snapshot!(error(&["zero-shot:given-patch=on:other-patch=on"], None), @r"
        error: failed to give `zero-shot:given-patch=on:other-patch=on` a code patch
          cause: `other-patch` needs a file of code patches
          hint: add --code-patches FILE, with instance_id and model_patch in each line
        ");
    insta::assert_snapshot!(error(&["zero-shot"], Some(&patches())), @r"
        error: failed to use --code-patches
          cause: no approach uses a patch from the file
          hint: add an approach such as zero-shot-plus:given-patch=on:other-patch=on
        ");
    let mut some = patches();
    some.by_instance.remove("example__a-1");
    let cause = error(&["zero-shot:given-files=on:other-patch=on"], Some(&some));
    assert!(
        cause.contains("1 of 2 instances has no patch of --code-patches: example__a-1"),
        "{cause}"
    );
    let plain = inputs(&variants(&["zero-shot"]), &dataset(""), None).unwrap();
    assert_eq!(plain["example__a-1"].planned(), None);
}
