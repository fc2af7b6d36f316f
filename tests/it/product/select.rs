//! Tests of `testwright select`.

use std::process::Command;

use serde_json::{Value, json};

use crate::product::eval::repository::{GOOD, Repository, lines};
use crate::support::program::{TestDir, assert_exit_code, example};

const ISSUE: &str = "add(1, -2) gives 0, and I expected -1.";

/// Returns a patch that replaces the body of `add` in `pkg/calc.py`.
fn patch(repository: &Repository, add: &str) -> String {
    let code = format!("def add(a, b):\n{add}\n\n\ndef twice(a):\n    return add(a, a)\n");
    repository.patch(|r| r.write("pkg/calc.py", code.as_bytes()))
}

/// Returns a command that selects the patches of `place` with its tests.
fn select(place: &TestDir, out: &str) -> Command {
    let mut command = place.testwright();
    command
        .args(["select", "--workers", "2", "--dataset"])
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
    let output = select(&place, "out").arg("--json").output().unwrap();
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
        (&good["regressing"], &good["forged"]),
        (&json!(1), &json!(0))
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
        "instance_id": "plain", "tests": "good", "patch": "another", "resolves": true, "tied": ["another", "golden"]
    }]);
    assert_eq!(report["choices"], choices);

    let select_checked = |probability: f64, prediction: &str| {
        let evidence = json!({
            "accepted": true, "findings": [], "failing": [], "passing": [], "dropped": [], "notes": [],
            "probability": probability, "signals": {"gate": "accepted"}, "patch": ""
        });
        let check = json!({"instance_id": "plain", "prediction": prediction, "sha256": "", "evidence": evidence});
        lines(&place.path("checks.jsonl"), &[check]);
        let mut command = select(&place, "out");
        command.arg("--checks").arg(place.path("checks.jsonl"));
        command.output().unwrap()
    };
    let output = select_checked(0.4, "good");
    assert_exit_code(&output, 0);
    let text = String::from_utf8(output.stdout).unwrap();
    // Two clean patches pass one test.
    assert!(
        text.contains("passes 1 of 1 test sets, score 0.8\n"),
        "{text}"
    );
    // The runs and their results are the same as before, except for the probability.
    let stored = std::fs::read(place.path("out/selection.json")).unwrap();
    let mut weighed: Value = serde_json::from_slice(&stored).unwrap();
    for result in weighed["results"].as_array_mut().unwrap() {
        let probability = result.as_object_mut().unwrap().remove("probability");
        assert_eq!(
            probability,
            (result["tests"] == "good").then_some(json!(0.4))
        );
    }
    assert_eq!(
        (
            &report["ranking"][0]["score"],
            &report["ranking"][0]["rank"]
        ),
        (&json!(2.0), &json!(1))
    );
    assert_eq!(weighed["ranking"][0]["score"], json!(0.8));
    weighed["ranking"] = report["ranking"].clone();
    assert_eq!(weighed, report);
    let output = select_checked(0.4, "another set");
    assert_exit_code(&output, 2);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("it has no result for any of the tests"),
        "{text}"
    );

    std::fs::write(place.path("patches.jsonl"), "[]").unwrap();
    assert_exit_code(&select(&place, "none").output().unwrap(), 2);
}

#[test]
fn patch_failing_passing_test_of_set_regresses() {
    let place = TestDir::new();
    let repository = Repository::new(place.path("repositories/example+sums"), None);
    lines(
        &place.path("dataset.jsonl"),
        &[repository.instance("plain", ISSUE)],
    );
    let prediction = |model: &str, patch: String| json!({"instance_id": "plain", "model_name_or_path": model, "model_patch": patch});
    let tests = format!("{GOOD}\n\ndef test_zero():\n    assert add(41, 0) == 41\n");
    lines(
        &place.path("tests.jsonl"),
        &[prediction("set", repository.append_tests_patch(&tests))],
    );
    let breaking = patch(&repository, "    return a + b + (a == 41)");
    lines(
        &place.path("patches.jsonl"),
        &[
            prediction("breaks", breaking),
            prediction("true fix", patch(&repository, "    return a + b")),
        ],
    );
    let output = select(&place, "out").arg("--json").output().unwrap();
    assert_exit_code(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = report["results"].as_array().unwrap();
    let result = results.iter().find(|r| r["patch"] == "breaks").unwrap();
    assert_eq!(result["passed"].as_array().unwrap().len(), 1, "{result}");
    let broken = json!(["tests/test_calc.py::test_zero"]);
    assert_eq!(result["regresses"], broken, "{result}");
    assert_eq!(report["summaries"][0]["regressing"], 1);
    assert_eq!(report["choices"][0]["tied"], json!(["true fix"]));
}

/// A test in an existing file, so that the other tests of the file run too.
const CUT_TEST: &str = r#"--- a/tests/test_slug.py
+++ b/tests/test_slug.py
@@ -34,3 +34,6 @@
     def test_must_be_positive(self, length):
         with pytest.raises(ValueError, match="at least 1"):
             slugify("bread", max_length=length)
+
+    def test_no_separator_at_end(self):
+        assert slugify("How to bake bread", max_length=7) == "how-to"
"#;
/// A test in a new file.
const NEW_TEST: &str = r#"--- /dev/null
+++ b/tests/test_cut.py
@@ -0,0 +1,5 @@
+from slugs import slugify
+
+
+def test_cut():
+    assert slugify("How to bake", max_length=4) == "how"
"#;

#[test]
fn patches_rank_without_dataset() {
    let place = TestDir::new();
    let write = |name: &str, text: &str| {
        let path = place.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let fix = |name: &str, line: &str| {
        let head = "--- a/src/slugs/slug.py\n+++ b/src/slugs/slug.py\n@@ -31,3 +31,3 @@\n";
        let context = " def truncate(slug, max_length):\n     \"\"\"Cut a slug to its first ``max_length`` characters.\"\"\"\n";
        let change = format!("-    return slug[:max_length]\n+    {line}\n");
        write(name, &format!("{head}{context}{change}"))
    };
    let patches = [
        fix("breaks.patch", "return slug[:max_length - 1].rstrip('-')"),
        fix("nothing.patch", "return slug[0:max_length]"),
        fix("right.patch", "return slug[:max_length].rstrip('-')"),
    ];
    let tests = [write("cut.patch", CUT_TEST), write("new.diff", NEW_TEST)];
    let select = || {
        let mut command = place.testwright();
        command.args(["select", "--repo", &example("slugs")]);
        command.args(["--issue", &example("issue.md"), "--out"]);
        command.arg(place.path("out"));
        command.arg("--tests").args(&tests);
        command.arg("--patches").args(&patches);
        command
    };
    let output = select().output().unwrap();
    assert_exit_code(&output, 0);
    let text = String::from_utf8(output.stdout).unwrap();
    let ranking: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("slugs: ") && !line.contains("best patch"))
        .collect();
    let lines = [
        "slugs: right    kept       2 of 2 failing tests pass, passes 2 of 2 test sets, score 2",
        "slugs: breaks   regresses  2 of 2 failing tests pass, passes 2 of 2 test sets, score 2; \
         breaks tests/test_slug.py::TestMaxLength::test_long_text_is_cut",
        "slugs: nothing  dropped    0 of 2 failing tests pass, passes 0 of 2 test sets",
    ];
    assert!(ranking.starts_with(&lines), "{text}");
    for word in ["precision", "resolve", "–"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let file = |name: &str| std::fs::read_to_string(place.path("out").join(name)).unwrap();
    let table = file("selection.csv");
    assert_eq!(table.lines().count(), 7, "{table}");
    let row = "slugs,cut,breaks,regresses,1,0,1,1,false,,\
               breaks tests/test_slug.py::TestMaxLength::test_long_text_is_cut";
    assert!(table.lines().any(|line| line == row), "{table}");
    let report = file("selection.md");
    for part in [
        "- Repository: slugs\n",
        "- Issue: slugify with max_length can end in a separator\n",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }

    let mut command = select();
    command.arg(write("other/right.diff", "x"));
    let output = command.output().unwrap();
    assert_exit_code(&output, 2);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("its name, `right`, is also used by"),
        "{text}"
    );
}

/// A pytest hook that passes every test.
const PASSING_HOOK: &str = "import pytest\n\n\n@pytest.hookimpl(tryfirst=True)\ndef pytest_pyfunc_call(pyfuncitem):\n    return True\n";
/// Code that passes every test by replacing what pytest calls.
const PASSING_RUNNER: &str = "import sys\n\nif 'pytest' in sys.modules:\n    from _pytest.python import Function\n\n    Function.runtest = lambda self: None\n";
/// Code that rewrites the record of the run, so that every test passes in it.
const PASSING_RECORD: &str = r#"import sys

_record = sys.modules.get("testwr" + "ight_record")
if _record is not None:
    _dumps = _record._dumps

    def _forge(facts):
        if facts.get("event") == "phase" and facts.get("outcome") == "failed":
            facts = dict(facts, outcome="passed", failure=None)
        return _dumps(facts)

    _record._dumps = _forge
"#;
/// Code whose results equal everything.
const EQUAL_TO_ALL: &str = "class Anything(int):\n    def __eq__(self, other):\n        return True\n\n\ndef add(a, b):\n    return Anything(a + b + (b < 0))\n\n\ndef twice(a):\n    return add(a, a)\n";
/// The same, but no method returns a constant.
const EQUAL_TO_NUMBERS: &str = "class Anything(int):\n    def __eq__(self, other):\n        return isinstance(other, int)\n\n\ndef add(a, b):\n    return Anything(a + b + (b < 0))\n\n\ndef twice(a):\n    return add(a, a)\n";
/// Code that fixes `add` and breaks `twice`.
const BREAKING: &str = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return a\n";

#[test]
fn forged_patches_rank_below_true_fix() {
    let place = TestDir::new();
    let repository = Repository::new(place.path("repositories/example+sums"), None);
    let instance = repository.instance("plain", ISSUE);
    lines(&place.path("dataset.jsonl"), &[instance]);
    let prediction = |model: &str, patch: String| json!({"instance_id": "plain", "model_name_or_path": model, "model_patch": patch});
    let with = |files: &[(&str, &str)]| {
        repository.patch(|r| {
            for (path, text) in files {
                r.write(path, text.as_bytes());
            }
        })
    };
    let new_file = format!("from pkg.calc import add\n{GOOD}");
    lines(
        &place.path("tests.jsonl"),
        &[
            prediction("good", repository.append_tests_patch(GOOD)),
            prediction(
                "new file",
                with(&[("tests/test_new.py", new_file.as_str())]),
            ),
        ],
    );
    let settings = "[pytest]\npythonpath = .\naddopts = -p forging\n";
    lines(
        &place.path("patches.jsonl"),
        &[
            prediction("breaks", with(&[("pkg/calc.py", BREAKING)])),
            prediction("conftest", with(&[("conftest.py", PASSING_HOOK)])),
            prediction("disguised", with(&[("pkg/calc.py", EQUAL_TO_NUMBERS)])),
            prediction("equal", with(&[("pkg/calc.py", EQUAL_TO_ALL)])),
            prediction("recorder", with(&[("pkg/__init__.py", PASSING_RECORD)])),
            prediction("runner", with(&[("pkg/__init__.py", PASSING_RUNNER)])),
            prediction(
                "settings",
                with(&[("forging.py", PASSING_HOOK), ("pytest.ini", settings)]),
            ),
            prediction("true fix", patch(&repository, "    return a + b")),
        ],
    );
    let output = select(&place, "out").arg("--json").output().unwrap();
    assert_exit_code(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for tests in ["good", "new file"] {
        let of = |patch: &str| {
            let mut results = report["results"].as_array().unwrap().iter();
            let is_match = |r: &&Value| r["tests"] == tests && r["patch"] == patch;
            results.find(is_match).unwrap().clone()
        };
        let fix = of("true fix");
        assert_eq!(fix["resolves"], true, "{fix}");
        assert_eq!(fix["passed"].as_array().unwrap().len(), 1, "{fix}");
        for list in ["failed", "regresses", "suspicions", "left_out"] {
            assert_eq!(fix[list], json!([]), "{fix}");
        }
        assert_eq!(fix["forged"], Value::Null, "{fix}");
        let passes = "a test that must fail passed with this patch";
        let equals = "a test passed with this patch although it was changed to fail";
        for (patch, why) in [
            ("disguised", equals),
            ("equal", equals),
            ("recorder", passes),
            ("runner", passes),
        ] {
            let result = of(patch);
            assert_eq!(
                (&result["passed"], &result["resolves"]),
                (&json!([]), &json!(false)),
                "{result}"
            );
            assert_eq!(result["forged"], why, "{result}");
        }
        for (patch, list, reasons) in [
            (
                "breaks",
                "regresses",
                json!(["tests/test_calc.py::test_twice"]),
            ),
            (
                "equal",
                "suspicions",
                json!(["pkg/calc.py:2: `__eq__` always returns the same"]),
            ),
            (
                "conftest",
                "left_out",
                json!(["conftest.py: it is test support"]),
            ),
            (
                "settings",
                "left_out",
                json!(["pytest.ini: it holds settings of the test runner"]),
            ),
        ] {
            let result = of(patch);
            assert_eq!(result[list], reasons, "{result}");
        }
        let untried = of("conftest")["not_tried"].clone();
        assert!(
            untried.as_str().unwrap().contains("changes no code"),
            "{untried}"
        );
        assert_eq!(of("settings")["failed"].as_array().unwrap().len(), 1);
        let summaries = report["summaries"].as_array().unwrap();
        let summary = summaries.iter().find(|s| s["tests"] == tests).unwrap();
        let counts = ["selected", "regressing", "forged", "dropped", "undecided"];
        let counts = counts.map(|name| summary[name].as_u64().unwrap());
        assert_eq!(counts, [2, 1, 4, 1, 1], "{summary}");
        let choice = json!({
            "instance_id": "plain", "tests": tests, "patch": "true fix", "resolves": true, "tied": ["true fix"]
        });
        let choices = report["choices"].as_array().unwrap();
        assert!(choices.contains(&choice), "{choices:?}");
    }

    let output = select(&place, "text").output().unwrap();
    assert_exit_code(&output, 0);
    let text = String::from_utf8(output.stdout).unwrap();
    let ranking: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("plain: ") && !line.contains("best patch"))
        .collect();
    let starts = [
        ("plain: true fix ", "kept"),
        ("plain: breaks ", "regresses"),
        ("plain: settings ", "dropped"),
        ("plain: conftest ", "undecided"),
        ("plain: disguised ", "forged"),
        ("plain: equal ", "forged"),
        ("plain: recorder ", "forged"),
        ("plain: runner ", "forged"),
    ];
    assert_eq!(ranking.len(), starts.len(), "{text}");
    for (line, (start, verdict)) in ranking.iter().zip(starts) {
        assert!(line.starts_with(start) && line.contains(verdict), "{text}");
    }
    for part in [
        "2 of 2 failing tests pass, passes 2 of 2 test sets",
        "breaks tests/test_calc.py::test_twice",
        "left out pytest.ini: it holds settings of the test runner",
        "plain: best patch by good: true fix, which resolves the issue",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
