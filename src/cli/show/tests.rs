#![allow(clippy::unwrap_used)]
use super::*;
use testwright_agent::gate::{FixTrial, TestEvidence};
use testwright_agent::issues::Issue;
use testwright_tools::outcomes::report::{FailureClass, Outcome as TestOutcome, Phase};

#[test]
fn pull_request_links_issue_and_folds_evidence() {
    let started = Started {
        format: 1,
        at: String::new(),
        testwright: String::new(),
        approach: "testwright".to_owned(),
        model: "@ann".to_owned(),
        issue: Issue::default(),
        repository: "acme/slugs".to_owned(),
        commit: Some("348ee765b261abcdef".to_owned()),
        digest: String::new(),
        settings: serde_json::Value::Null,
        tools: Vec::new(),
        environment_repair: None,
    };
    let mut evidence = Evidence {
        tests: vec![TestEvidence {
            id: "t.py::test_it".to_owned(),
            outcome: TestOutcome::Failed,
            phase: Phase::Call,
            class: FailureClass::Assertion,
            exception: "AssertionError".to_owned(),
            message: "assert 'a' == '@ann'".to_owned(),
            frame: None,
            missing_name: None,
            executed: Vec::new(),
            unreached: Vec::new(),
            test_double: None,
            warning_as_error: false,
        }],
        ..Evidence::default()
    };
    let body = pull_request_body(&started, &evidence, Some("#12"), true);
    let (text, card) = body.split_once("\n\n<details>").unwrap();
    assert_eq!(
        text,
        "Adds a failing test for #12.\n\n**testwright** wrote it (`testwright, @ann`). It fails on commit \
         348ee765b2 for the reason the issue states. It fails with `AssertionError`: `assert 'a' == '@ann'`. It \
         is marked as expected to fail until the issue is fixed."
    );
    assert!(card.starts_with("<summary>Evidence</summary>\n\n```text\n"));
    assert!(card.ends_with("\n```\n\n</details>\n"), "{card}");

    for (existing_run, end) in [
        (1, "so does 1 existing test."),
        (2, "so do 2 existing tests."),
    ] {
        evidence.fixes = vec![FixTrial {
            outcomes: vec![("t.py::test_it".to_owned(), TestOutcome::Passed)],
            on_submitted_tests: true,
            existing_run,
            ..FixTrial::default()
        }];
        assert!(failure(&evidence).ends_with(end), "{existing_run}");
    }

    evidence.tests.clear();
    let body = pull_request_body(&started, &evidence, None, false);
    let start = "Adds a test.\n\n**testwright** wrote it for commit 348ee765b2 (`testwright, @ann`).\n\n<details>";
    assert!(body.starts_with(start), "{body}");
}

#[test]
fn results_beside_a_comparison_of_folders_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("comparison.json", "{\"format\": 1, \"notes\": []}");
    assert!(report(folder.path()).is_err());
    write("results.jsonl", "");
    let table = report(folder.path()).unwrap().unwrap();
    assert!(table.starts_with("prediction"), "{table}");
}

#[test]
fn added_lines_become_source() {
    let patch = "diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1,2 +1,4 @@\n class T:\n     x = 1\n\
                 +\n+    def test(self):\n+        assert f()\n";
    assert_eq!(
        added_source(patch).as_deref(),
        Some("def test(self):\n    assert f()")
    );
    assert_eq!(added_source(&format!("{patch}-    y = 1\n")), None);
    let empty = "diff --git a/__init__.py b/__init__.py\nnew file mode 100644\n";
    let source = added_source(&format!("{empty}{patch}"));
    assert_eq!(source, added_source(patch));
    let data = patch.replace("t.py", "data.json");
    assert_eq!(added_source(&format!("{data}{patch}")), None);
    assert_eq!(added_source(""), None);
}

#[test]
fn fence_outlasts_inner_backticks() {
    assert_eq!(fenced("text", "a"), "```text\na\n```");
    assert_eq!(fenced("text", "````\n@ann"), "`````text\n````\n@ann\n`````");
    assert_eq!(inline_code("a`b"), "``a`b``");
    assert_eq!(inline_code("`@ann` ``"), "``` `@ann` `` ```");
}
