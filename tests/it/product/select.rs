//! Tests of `testwright select` and `testwright inspect`.

use serde_json::{Value, json};

use crate::product::eval::repository::{GOOD, Repository, lines};
use crate::support::program::{TestDir, assert_exit_code, example, text_reply};

const ISSUE: &str = "add(1, -2) gives 0, and I expected -1.";

/// Returns a patch that replaces the body of `add` in `pkg/calc.py`.
fn patch(repository: &Repository, add: &str) -> String {
    let code = format!("def add(a, b):\n{add}\n\n\ndef twice(a):\n    return add(a, a)\n");
    repository.patch(|r| r.write("pkg/calc.py", code.as_bytes()))
}

#[test]
fn patches_that_pass_failing_tests_are_kept() {
    let place = TestDir::new();
    let repository = Repository::new(place.path("repositories/example+sums"), None);
    let instance = repository.instance("plain", ISSUE);
    lines(
        &place.path("dataset.jsonl"),
        std::slice::from_ref(&instance),
    );
    let prediction = |model: &str, patch: Option<&str>| json!({"instance_id": "plain", "model_name_or_path": model, "model_patch": patch});
    let passing =
        repository.append_tests_patch("\n\ndef test_short():\n    assert add(1, 1) == 2\n");
    lines(
        &place.path("tests.jsonl"),
        &[
            prediction("good", Some(&repository.append_tests_patch(GOOD))),
            prediction("passes anyway", Some(&passing)),
        ],
    );
    let golden = instance["patch"].as_str().unwrap();
    lines(
        &place.path("patches.jsonl"),
        &[
            prediction("golden", Some(golden)),
            // The golden tests do not check the new function, so this patch resolves the issue too.
            prediction("another", Some(&patch(&repository, "    return b + a"))),
            prediction(
                "no fix",
                Some(&patch(
                    &repository,
                    "    return a + b + (b < 0)  # the same",
                )),
            ),
            prediction("breaks others", Some(&patch(&repository, "    return -1"))),
            prediction(
                "no patch",
                Some("--- a/pkg/none.py\n+++ b/pkg/none.py\n@@ -1 +1 @@\n-x\n+y\n"),
            ),
            prediction("nothing", None),
        ],
    );
    let select = |out: &str| {
        let mut command = place.testwright();
        command
            .args(["select", "--workers", "2", "--json", "--dataset"])
            .arg(place.path("dataset.jsonl"))
            .arg("--tests")
            .arg(place.path("tests.jsonl"))
            .arg("--patches")
            .arg(place.path("patches.jsonl"))
            .arg("--repositories")
            .arg(place.path("repositories").join("{owner}+{name}"))
            .arg("--out")
            .arg(place.path(out));
        command
    };
    let output = select("out").output().unwrap();
    assert_exit_code(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |patch: &str| {
        let results = report["results"].as_array().unwrap();
        let is_match = |r: &&Value| r["tests"] == "good" && r["patch"] == patch;
        results.iter().find(is_match).unwrap().clone()
    };
    for (patch, passed, failed, resolves) in [
        ("golden", 1, 0, true),
        ("another", 1, 0, true),
        ("no fix", 0, 1, false),
        ("breaks others", 1, 0, false),
    ] {
        let result = of(patch);
        let number = |list: &str| result[list].as_array().unwrap().len();
        assert_eq!(
            (number("passed"), number("failed")),
            (passed, failed),
            "{patch}"
        );
        assert_eq!(result["resolves"], json!(resolves), "{patch}");
    }
    assert!(
        of("no patch")["not_tried"]
            .as_str()
            .unwrap()
            .contains("does not apply")
    );
    let summary = |tests: &str| {
        let all = report["summaries"].as_array().unwrap();
        all.iter().find(|s| s["tests"] == tests).unwrap().clone()
    };
    let good = summary("good");
    assert_eq!(
        (&good["selected"], &good["dropped"], &good["undecided"]),
        (&json!(3), &json!(1), &json!(2))
    );
    assert_eq!(
        (
            &good["precision"]["numerator"],
            &good["recall"]["denominator"]
        ),
        (&json!(2), &json!(2))
    );
    assert_eq!(good["codet"]["numerator"], 1);
    assert_eq!(summary("passes anyway")["undecided"], 6);
    let choices = json!([{
        "instance_id": "plain", "tests": "good", "patch": "another", "resolves": true
    }]);
    assert_eq!(report["choices"], choices);

    std::fs::write(place.path("patches.jsonl"), "[]").unwrap();
    assert_exit_code(&select("none").output().unwrap(), 2);
}

#[test]
fn inspect_prints_run() {
    let place = TestDir::new();
    let model = place.recording(&[text_reply("I would rather not.")]);
    let words = ["--approach", "zero-shot", "--model", &model];
    assert_exit_code(&place.run_example(&words).output().unwrap(), 1);
    let inspect = |folder: &std::path::Path| {
        place
            .testwright()
            .arg("inspect")
            .arg(folder)
            .output()
            .unwrap()
    };
    let output = inspect(&place.path("out"));
    assert_exit_code(&output, 0);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "by zero-shot with replay-by-order:",
        "== Outcome\nno test: the model's reply cannot be used",
        "1 model calls (0 failed, 0 malformed)",
        "== Tokens\nspent on ",
        "== Issue\n",
        "== Stage retrieve\n",
        "I would rather not.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let output = inspect(std::path::Path::new(&example("slugs")));
    assert_exit_code(&output, 2);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("hint: pass the folder of a run or a comparison"),
        "{stderr}"
    );
}
