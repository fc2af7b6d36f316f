//! A model repairs an environment that the rules cannot build, with real builds and recorded replies.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::program::{TestDir, assert_exit_code, calls, text_reply};

/// Writes a repository whose tests need a variable with a value that no file states.
fn write_repository(place: &TestDir) {
    let files = [
        ("level.py", "def double(x):\n    return 2 * x\n"),
        (
            "tests/test_level.py",
            "import os\n\nfrom level import double\n\n\ndef test_level():\n    assert double(int(os.environ['LEVEL_OF_TEST'])) == 14\n",
        ),
        (
            ".github/workflows/test.yml",
            "on: push\njobs:\n  test:\n    steps:\n      - run: pip install pytest\n      - run: pytest\n",
        ),
        ("issue.md", "# double is wrong\n\n`double(1)` returns 2.\n"),
    ];
    for (path, content) in files {
        let path = place.path("levels").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

/// Returns a command of the program on the repository, with a cache of its own.
fn testwright(place: &TestDir, arguments: &[&str]) -> Command {
    let mut command = place.testwright();
    command
        .args(arguments)
        .arg("--repo")
        .arg(place.path("levels"))
        .env("TESTWRIGHT_CACHE", place.path("cache"));
    command
}

fn amend(level: &str) -> (&'static str, serde_json::Value) {
    (
        "amend_environment",
        json!({"env": {"LEVEL_OF_TEST": level}}),
    )
}

#[test]
fn model_repairs_environment_before_run() {
    let place = TestDir::new();
    write_repository(&place);
    let path = json!({"path": "tests/test_level.py"});
    let model = place.recording(&[
        calls(&[("open_file", path)]),
        calls(&[("amend_environment", json!({"image": "somewhere/else"}))]),
        calls(&[amend("6")]),
        calls(&[("try_tests", json!({"files": ["tests/test_level.py"]}))]),
        calls(&[amend("7")]),
        text_reply("I stop here."),
        text_reply("I stop here."),
        text_reply("I stop here."),
    ]);
    let issue = place.path("levels/issue.md");
    let run = ["run", issue.to_str().unwrap(), "--approach", "testwright"];
    let output = testwright(&place, &run)
        .args(["--model", &model, "--out"])
        .arg(place.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&output, 1);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("a model repaired the environment with 2 amendments, 5 calls"),
        "{stderr}"
    );

    let repair = &place.events()[0]["environment_repair"];
    assert_eq!(
        (&repair["calls"], &repair["amendments"]),
        (&json!(5), &json!(2))
    );
    let messages = repair["messages"].as_array().unwrap();
    let task = messages[1]["content"].as_str().unwrap();
    for part in [
        "none of the tests that were tried passes",
        "KeyError: 'LEVEL_OF_TEST'",
        ".github/workflows/test.yml:5: - run: pip install pytest",
        "level.py",
    ] {
        assert!(task.contains(part), "{part}\n{task}");
    }
    let answers: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert!(
        answers[0].contains("   6  def test_level"),
        "{}",
        answers[0]
    );
    assert!(answers[1].contains("no field `image`"), "{}", answers[1]);
    assert!(answers[2].contains("(5 amendments left)"), "{}", answers[2]);
    assert!(answers[3].contains("1 failed") && answers[3].contains("assert 12 == 14"));
    assert!(answers[4].contains("1 passed"), "{}", answers[4]);

    let usage = &place.json("run.json")["usage"];
    assert_eq!(
        (&usage["model_calls"], &usage["steps"]),
        (&json!(8), &json!(3))
    );
    let recipe = std::fs::read_to_string(place.path("out/recipe.toml")).unwrap();
    assert!(recipe.contains("LEVEL_OF_TEST = \"7\""), "{recipe}");

    let output = testwright(&place, &["environment"]).output().unwrap();
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("amended earlier, over detected"),
        "{stdout}"
    );
    let saved = saved_environments(&place.path("cache"));
    assert_eq!(saved, 1, "the rejected environments were removed");
}

/// Returns the number of environments that a backend has saved, rejected ones included.
fn saved_environments(cache: &Path) -> usize {
    let mut count = 0;
    let mut folders = vec![cache.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_folder = entry.file_type().unwrap().is_dir();
            if is_folder && name.starts_with("env-") {
                count += 1;
            } else if is_folder && name != "downloads" {
                folders.push(entry.path());
            }
        }
    }
    count
}

#[test]
fn failed_build_gives_advice() {
    let place = TestDir::new();
    write_repository(&place);
    let output = testwright(&place, &["environment"]).output().unwrap();
    assert_exit_code(&output, 3);
    let stderr = String::from_utf8_lossy(&output.stderr);
    for part in [
        "recipe, to amend in testwright.toml:",
        "requirements = [\"pytest\"]",
        ".github/workflows/test.yml:5: - run: pip install pytest",
    ] {
        assert!(stderr.contains(part), "{part}\n{stderr}");
    }

    let model = place.recording(&[text_reply("The tests need a licence server.")]);
    let output = testwright(&place, &["environment", "--model", &model])
        .output()
        .unwrap();
    assert_exit_code(&output, 3);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("it gave up: The tests need a licence server."),
        "{stderr}"
    );
    assert_eq!(saved_environments(&place.path("cache")), 0);
}
