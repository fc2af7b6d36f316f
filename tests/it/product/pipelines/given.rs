//! Extra inputs of pipelines: test files to change and a code patch, which appear only in the prompt and the record.

use serde_json::{Value, json};

use super::{TEST, block, of_kind, stages};
use crate::support::program::{TestDir, assert_exit_code, text_reply};

/// A wrong code patch, since the separator may be another.
const PATCH: &str = "diff --git a/src/slugs/slug.py b/src/slugs/slug.py\n--- a/src/slugs/slug.py\n+++ b/src/slugs/slug.py\n\
                     @@ -29,3 +29,3 @@\n def truncate(slug, max_length):\n     \"\"\"Cut a slug to its first ``max_length`` characters.\"\"\"\n\
                     -    return slug[:max_length]\n+    return slug[:max_length].rstrip(\"-\")\n";
const ALL: &str = "zero-shot-plus:given-files=on:given-patch=on:given-tests=on";

/// Runs the example with this patch and these flags.
fn run(place: &TestDir, approach: &str, flags: &[&str]) -> std::process::Output {
    let model = place.recording(&[text_reply(&block(TEST))]);
    std::fs::write(place.path("fix.patch"), PATCH).unwrap();
    let mut command = place.run_example(&["--approach", approach, "--model", &model]);
    command
        .args(flags)
        .current_dir(place.folder.path())
        .output()
        .unwrap()
}

fn asked(place: &TestDir) -> String {
    let reply = of_kind(place, "reply").remove(0);
    reply["messages"][1]["content"].as_str().unwrap().to_owned()
}

const FLAGS: [&str; 4] = [
    "--code-patch",
    "fix.patch",
    "--test-file",
    "tests/test_slug.py",
];

#[test]
fn inputs_appear_in_prompt_and_record() {
    let place = TestDir::new();
    assert_exit_code(&run(&place, ALL, &FLAGS), 0);
    insta::assert_snapshot!("everything", asked(&place));
    let record = place.json("run.json");
    let expected_inputs = json!({"code_patch": PATCH, "test_files": ["tests/test_slug.py"]});
    assert_eq!(record["extra_inputs"], expected_inputs);
    assert_eq!(record["approach"], ALL);
    let expected_evidence = json!([
        "a code patch",
        "test files: tests/test_slug.py",
        "the files that a code patch changes"
    ]);
    assert_eq!(
        place.json("evidence.json")["extra_inputs"],
        expected_evidence
    );
    // The test fails because the sandbox has the old code. Only the test was added to it.
    assert_eq!(record["outcome"], "accepted");
    for event in of_kind(&place, "state") {
        let files = event["files"].as_array().unwrap();
        let paths: Vec<&Value> = files.iter().map(|file| &file["path"]).collect();
        assert_eq!(paths, ["tests/test_slug.py"]);
    }
    let retrieved = of_kind(&place, "stage")[0]["result"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        retrieved.starts_with("given a code patch of ")
            && retrieved
                .contains("; given tests/test_slug.py; 1 file that the code patch changes, "),
        "{retrieved}"
    );
}

#[test]
fn options_add_their_own_inputs() {
    for (approach, flags, has) in [
        ("zero-shot-plus", &[][..], [false, false, true]),
        (
            "zero-shot-plus:given-tests=on",
            &FLAGS[2..],
            [false, true, true],
        ),
        (
            "zero-shot-plus:given-patch=on",
            &FLAGS[..2],
            [true, false, true],
        ),
        (
            "pass-at-k:given-files=on",
            &FLAGS[..2],
            [false, false, false],
        ),
    ] {
        let place = TestDir::new();
        assert_exit_code(&run(&place, approach, flags), 0);
        let prompt = asked(&place);
        let parts = [
            prompt.contains("<patch>") && prompt.contains("rstrip"),
            prompt.contains("Your test goes into this file, and into no other"),
            prompt.contains("Files that share the most words with the issue"),
        ];
        assert_eq!(parts, has, "{approach}: {prompt}");
        // Each file appears at most once.
        assert!(prompt.matches("<file path=\"tests/test_slug.py\">").count() <= 1);
        assert_eq!(
            place.json("run.json")["extra_inputs"].is_null(),
            approach == "zero-shot-plus"
        );
    }
}

/// The record is enough, because the file of the patch is deleted.
#[test]
fn resumed_and_replayed_runs_keep_inputs() {
    let full_run = TestDir::new();
    assert_exit_code(&run(&full_run, ALL, &FLAGS), 0);
    let prompt = asked(&full_run);
    let text = std::fs::read_to_string(full_run.path("out/trajectory.jsonl")).unwrap();
    let first = text.lines().next().unwrap();
    let place = TestDir::new();
    std::fs::create_dir(place.path("out")).unwrap();
    let model = |place: &TestDir| place.path("replies.jsonl").display().to_string();
    let begun = format!("{}\n", first.replace(&model(&full_run), &model(&place)));
    std::fs::write(place.path("out/trajectory.jsonl"), begun).unwrap();
    place.recording(&[text_reply(&block(TEST))]);
    let resume = |more: &[&str]| {
        let mut command = place.testwright();
        command.args(["run", "--resume"]).arg(place.path("out"));
        command.args(more).output().unwrap()
    };
    assert_exit_code(&resume(&["--code-patch", "other.patch"]), 2);
    assert_exit_code(&resume(&[]), 0);
    assert_eq!(asked(&place), prompt);
    assert_eq!(place.json("run.json")["extra_inputs"]["code_patch"], PATCH);

    std::fs::remove_file(full_run.path("fix.patch")).unwrap();
    let mut replay = full_run.testwright();
    let output = replay
        .args(["replay", "--json"])
        .arg(full_run.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    assert_eq!(stages(&full_run), ["retrieve", "write"]);
}

#[test]
fn invalid_inputs_are_rejected_before_build() {
    let place = TestDir::new();
    std::fs::write(place.path("picture.png"), b"\x89PNG\0\0").unwrap();
    std::fs::write(place.path("prose.txt"), "I would change slug.py.\n").unwrap();
    let elsewhere = PATCH.replace("src/slugs/slug.py", "lib/gone.py");
    std::fs::write(place.path("elsewhere.patch"), elsewhere).unwrap();
    let new = "--- /dev/null\n+++ b/src/slugs/cut.py\n@@ -0,0 +1 @@\n+x = 1\n";
    std::fs::write(place.path("new.patch"), new).unwrap();
    let patch = |file: &'static str| vec!["--code-patch", file];
    let test = |path: &'static str| vec!["--test-file", path];
    let files = "zero-shot-plus:given-files=on";
    let tests = "zero-shot-plus:given-tests=on";
    for (approach, flags, says) in [
        (files, vec![], "the input is missing"),
        (tests, vec![], "the input is missing"),
        (
            "zero-shot-plus",
            patch("fix.patch"),
            "its option `given-patch` is off",
        ),
        (
            "snippet",
            test("tests/test_slug.py"),
            "it has no option `given-tests`",
        ),
        (files, patch("gone.patch"), "No such file or directory"),
        (files, patch("picture.png"), "it is not a text file"),
        (files, patch("prose.txt"), "it contains no diff"),
        (
            files,
            patch("elsewhere.patch"),
            "lib/gone.py: No such file or directory",
        ),
        (
            files,
            patch("new.patch"),
            "it changes no text file of the old code",
        ),
        (tests, test("/etc/passwd"), "it is outside the repository"),
        (
            tests,
            test("tests/../../test_x.py"),
            "it is outside the repository",
        ),
        (tests, test("tests"), "it is not a Python file"),
        (
            tests,
            test("src/slugs/slug.py"),
            "it is not a test file of this repository",
        ),
        (
            tests,
            test("tests/test_slug.py/test_x.py"),
            "one of its folders is a file",
        ),
    ] {
        let output = run(&place, approach, &flags);
        assert_exit_code(&output, 2);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(says), "{approach} {flags:?}: {stderr}");
        assert!(!stderr.contains("environment"), "{stderr}");
        assert!(!place.path("out").exists());
    }
}

#[test]
fn missing_test_file_is_created() {
    let place = TestDir::new();
    let output = run(
        &place,
        "zero-shot-plus:given-tests=on",
        &["--test-file", "./tests/test_slugs.py"],
    );
    assert_exit_code(&output, 0);
    let prompt = asked(&place);
    assert!(
        prompt.contains("\ntests/test_slugs.py (not there yet: create it)\n"),
        "{prompt}"
    );
    let note = "the test file tests/test_slugs.py is not in the old code, so it will be created (the nearest is tests/test_slug.py)";
    let notes = place.json("run.json")["notes"].to_string();
    assert!(notes.contains(note), "{notes}");
}
