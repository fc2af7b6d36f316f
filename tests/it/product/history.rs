//! `testwright history` on a repository with four releases, a bug and its fix.

use std::process::Output;

use serde_json::Value;

use crate::product::eval::repository::{GOOD, Repository};
use crate::support::program::{TestDir, assert_exit_code, text_reply};

const RIGHT: &str = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return add(a, a)\n";
const WRONG: &str =
    "def add(a, b):\n    return a + abs(b)\n\n\ndef twice(a):\n    return add(a, a)\n";
const TEST: &str = "```python\nfrom pkg.calc import add\n\n\ndef test_negative():\n    assert add(1, -2) == -1\n```\n";

/// Commits of the repository.
struct Commits {
    introduction: String,
    base: String,
    fix: String,
    /// The merge of the fix.
    merge: String,
}

fn head(repository: &Repository) -> String {
    let hash = String::from_utf8(repository.git(&["rev-parse", "HEAD"])).unwrap();
    hash.trim().to_owned()
}

fn create_repository(repository: &Repository) -> Commits {
    let commit = |path: &str, text: &str, tag: Option<&str>| {
        repository.write(path, text.as_bytes());
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-qm", "Change"]);
        if let Some(tag) = tag {
            repository.git(&["tag", tag]);
        }
        head(repository)
    };
    let (package, code, notes) = ("pkg/__init__.py", "pkg/calc.py", "notes.txt");
    commit(package, "import no_such_module\n", Some("v0.9.0"));
    repository.write(package, b"");
    commit(code, RIGHT, Some("v1.0.0"));
    commit(notes, "1", None);
    let introduction = commit(code, WRONG, None);
    commit(notes, "2", Some("v1.1.0"));
    let base = commit(notes, "3", None);
    repository.git(&["checkout", "-qb", "topic"]);
    commit("topic.txt", "1", None);
    let fix = commit(code, RIGHT, None);
    repository.git(&["checkout", "-q", "-"]);
    repository.git(&["merge", "-q", "--no-ff", "--no-edit", "topic"]);
    let merge = head(repository);
    commit(notes, "4", Some("v1.2.0"));
    Commits {
        introduction,
        base,
        fix,
        merge,
    }
}

fn history(place: &TestDir, options: &[&str]) -> Output {
    let mut command = place.testwright();
    command.arg("history").arg(place.path("out")).args(options);
    let output = command.output().unwrap();
    assert_exit_code(&output, 0);
    output
}

#[test]
fn history_names_introduction_and_fix() {
    let place = TestDir::new();
    let repository = Repository::new(place.path("calc"), None);
    let commits = create_repository(&repository);
    std::fs::write(
        place.path("issue.md"),
        "add(1, -2) is 3\n\n`add(1, -2)` returns 3, not -1.\n",
    )
    .unwrap();
    let mut run = place.testwright();
    run.arg("run").arg(place.path("issue.md"));
    run.args(["--commit", &commits.base, "--approach", "zero-shot-file"]);
    run.args(["--model", &place.recording(&[text_reply(TEST)])]);
    run.arg("--repo").arg(&repository.folder);
    let run = run.arg("--out").arg(place.path("out")).output().unwrap();
    assert_exit_code(&run, 0);

    let output = history(&place, &[]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let summary = format!(
        "Fails since 1.1.0, introduced by {0} (2024-01-01); fixed by {1} (2024-01-01), first released in 1.2.0. \
         {1} was merged by {2}.\n",
        &commits.introduction[..12],
        &commits.fix[..12],
        &commits.merge[..12]
    );
    assert!(stdout.starts_with(&summary), "{stdout}");
    let mut report = place.json("history.json");
    let answer = |report: &Value, name: &str| {
        let answers = report["answers"].as_array().unwrap();
        let entry = answers.iter().find(|entry| entry["name"] == name);
        let entry = entry.unwrap_or_else(|| panic!("{name}: {report:#}"));
        (
            entry["verdict"].as_str().unwrap().to_owned(),
            entry["reason"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(answer(&report, "1.0.0").0, "passes");
    assert_eq!(answer(&report, "1.1.0").0, "fails");
    let (verdict, reason) = answer(&report, "0.9.0");
    assert_eq!(verdict, "cannot_tell");
    assert!(!reason.is_empty());
    let page = std::fs::read_to_string(place.path("out/history.md")).unwrap();
    assert!(page.contains("| 1.1.0 | "), "{page}");

    // The command resumes from its report.
    for entry in report["answers"].as_array_mut().unwrap() {
        entry["reason"] = "known from before".into();
        // Nothing was found out about this release, for a reason outside of the code.
        if entry["name"] == "1.0.0" {
            entry["verdict"] = "cannot_tell".into();
            entry["is_external"] = true.into();
        }
    }
    let text = serde_json::to_vec(&report).unwrap();
    std::fs::write(place.path("out/history.json"), text).unwrap();
    history(&place, &[]);
    let resumed = place.json("history.json");
    assert_eq!(answer(&resumed, "0.9.0").1, "known from before");
    assert_eq!(answer(&resumed, "1.0.0").0, "passes");
    assert_eq!(resumed["summary"], report["summary"]);
    let count = |report: &Value| report["answers"].as_array().unwrap().len();
    assert_eq!(count(&resumed), count(&report));

    // Parts that are not searched again stay known.
    let output = history(&place, &["--only", "introduced"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let fixed = format!("fixed by {} ", &commits.fix[..12]);
    assert!(stdout.contains(&fixed), "{stdout}");

    // A branch that ends before the bug does not fix it.
    repository.git(&["tag", "-d", "v1.2.0"]);
    let output = history(&place, &["--branch", "v1.0.0"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let summary = format!(
        "Fails since 1.1.0, introduced by {} (2024-01-01); passes on v1.0.0.\n",
        &commits.introduction[..12]
    );
    assert!(stdout.starts_with(&summary), "{stdout}");

    // The branch that is checked out does not matter.
    let main = head(&repository);
    repository.git(&["checkout", "-qb", "topic-2"]);
    repository.write("topic.txt", b"2");
    repository.git(&["commit", "-qam", "Change"]);
    history(&place, &["--only", "fixed"]);
    let report = place.json("history.json");
    assert_eq!(report["branch"], "main");
    assert_eq!(report["head"], main);

    // The fix comes before the introduction. Another folder has no answers yet.
    let options = ["--max-commits", "6", "--out"];
    let other = place.path("other");
    let options = options.into_iter().chain(other.to_str());
    let output = history(&place, &options.collect::<Vec<_>>());
    let stdout = String::from_utf8(output.stdout).unwrap();
    for part in [&*fixed, "; run the command again to continue."] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}

/// Runs the command on a patch with tests, and returns its first line.
fn history_of_patch(
    place: &TestDir,
    repository: &Repository,
    patch: &str,
    options: &[&str],
) -> String {
    std::fs::write(place.path("tests.patch"), patch).unwrap();
    let mut command = place.testwright();
    command.arg("history").args(options);
    command.arg("--patch").arg(place.path("tests.patch"));
    command.arg("--repo").arg(&repository.folder);
    let output = command.arg("--out").arg(place.path("out")).output();
    let output = output.unwrap();
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8(output.stdout).unwrap();
    stdout.lines().next().unwrap().to_owned()
}

/// The patch applies to the older commits, but adds the test to a class with another name.
#[test]
fn test_is_found_in_renamed_class() {
    let place = TestDir::new();
    let repository = Repository::new(place.path("calc"), None);
    let class = |name: &str| {
        let body = "    def test_add(self):\n        assert add(1, 2) == 3\n        assert add(2, 1) == 3\n        assert add(3, 0) == 3\n";
        format!("from pkg.calc import add\n\n\nclass {name}:\n{body}")
    };
    let commit = |path: &str, text: &str| {
        repository.write(path, text.as_bytes());
        repository.git(&["commit", "-qam", "Change"]);
        head(&repository)
    };
    commit("pkg/calc.py", RIGHT);
    commit("tests/test_calc.py", &class("TestOld"));
    repository.git(&["tag", "v1.0.0"]);
    let introduction = commit("pkg/calc.py", WRONG);
    let base = commit("tests/test_calc.py", &class("TestNew"));
    let test = "\n    def test_negative(self):\n        assert add(1, -2) == -1\n";
    let patch = repository.patch(|r| {
        let text = class("TestNew") + test;
        r.write("tests/test_calc.py", text.as_bytes());
    });
    let options = ["--only", "introduced", "--commit", &base];
    let summary = history_of_patch(&place, &repository, &patch, &options);
    let introduced = format!("introduced by {} ", &introduction[..12]);
    assert!(summary.contains(&introduced), "{summary}");
}

/// The tests can no longer be imported on the newest release and the branch.
#[test]
fn fix_is_found_before_newest_releases() {
    let place = TestDir::new();
    let repository = Repository::new(place.path("calc"), None);
    let commit = |path: &str, text: &str, tag: &str| {
        repository.write(path, text.as_bytes());
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-qm", "Change"]);
        repository.git(&["tag", tag]);
        head(&repository)
    };
    let patch = repository.append_tests_patch(GOOD);
    let base = head(&repository);
    commit("notes.txt", "1", "v1.0.0");
    let fix = commit("pkg/calc.py", RIGHT, "v1.1.0");
    commit("pkg/calc.py", "plus = int.__add__\n", "v1.2.0");
    commit("notes.txt", "2", "v1.3.0");
    let options = ["--only", "fixed", "--commit", &base];
    let summary = history_of_patch(&place, &repository, &patch, &options);
    let fixed = format!(
        "fixed by {} (2024-01-01), first released in 1.1.0.",
        &fix[..12]
    );
    assert!(summary.contains(&fixed), "{summary}");
}
