//! `testwright apply` and `run --apply`, in a project in a subfolder of its repository.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::program::{TestDir, assert_exit_code, example};

const TEST: &str = "pkgs/slugs/tests/test_slug.py";

fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
        .args(words)
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn test_of_subfolder_is_applied_and_committed() {
    let place = TestDir::new();
    let root = place.path("mono");
    std::fs::create_dir_all(root.join("pkgs")).unwrap();
    let mut copy = Command::new("cp");
    copy.args(["-r", &example("slugs")]).arg(root.join("pkgs"));
    assert!(copy.status().unwrap().success());
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "first"]);
    let testwright = |words: &[&str]| -> Output {
        let mut command = place.testwright();
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Ann");
            command.env(format!("GIT_{role}_EMAIL"), "ann@example.org");
        }
        command.args(words).current_dir(&root).output().unwrap()
    };
    let issue = example("issue.md");
    let run = [
        "run",
        &issue,
        "--repo",
        "pkgs/slugs",
        "--approach",
        "snippet",
    ];

    let output = testwright(&run);
    assert_exit_code(&output, 0);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let printed = |start: &str| {
        let mut lines = stderr.lines();
        let line = lines.find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("no {start} in {stderr}"))
            .to_owned()
    };
    let run_line = printed("run: ");
    assert!(run_line.starts_with("cd "), "{run_line}");
    assert!(
        run_line.contains(
            "/mono/pkgs/slugs && python -m pytest tests/test_slug.py::TestMaxLength::test_"
        ),
        "{run_line}"
    );
    // The results of the run are not among the changes.
    assert_eq!(git(&root, &["status", "--short"]), "");
    let mut paste = Command::new("sh");
    assert!(printed("apply: ").starts_with("testwright apply testwright-runs/"));
    paste.args(["-c", &printed("or: ")]).current_dir(&root);
    assert_exit_code(&paste.output().unwrap(), 0);
    assert_eq!(git(&root, &["status", "--short"]), format!("M {TEST}"));

    // The record has the paths of the repository.
    let runs = std::fs::read_dir(root.join("testwright-runs")).unwrap();
    let mut runs = runs.map(|entry| entry.unwrap().path());
    let run_folder = runs.find(|path| path.is_dir()).unwrap();
    let output = testwright(&["history", run_folder.to_str().unwrap()]);
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("still fails on main."), "{stdout}");

    // The file has other changes now. The test of the second run is not lost.
    git(&root, &["checkout", "-q", "."]);
    let committed = std::fs::read_to_string(root.join(TEST)).unwrap();
    std::fs::write(root.join(TEST), committed + "\n# Mine.\n").unwrap();
    let output = testwright(&[&run[..], &["--apply", "--out", "out"]].concat());
    assert_exit_code(&output, 2);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let cause = format!("cause: {TEST} has uncommitted changes");
    assert!(stderr.contains(&cause), "{stderr}");
    assert!(stderr.contains("1 uncommitted change ("), "{stderr}");
    assert!(root.join("out/test.patch").exists());
    git(&root, &["checkout", "-q", "."]);

    // Another clone gets the test, and the command runs it there.
    let clone = place.path("clone");
    git(place.folder.path(), &["clone", "-q", "mono", "clone"]);
    let output = testwright(&["apply", "out", "--repo", clone.to_str().unwrap()]);
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("/clone/pkgs/slugs && python -m pytest "),
        "{stdout}"
    );
    assert_eq!(git(&clone, &["status", "--short"]), format!("M {TEST}"));

    let output = testwright(&["apply", "--branch", "issue", "--commit", "--xfail"]);
    assert_exit_code(&output, 0);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let note = "note: using the newest accepted test: testwright-runs/";
    assert!(stderr.starts_with(note), "{stderr}");
    assert_eq!(git(&root, &["branch", "--show-current"]), "issue");
    let subject = git(&root, &["log", "-1", "--format=%an: %s"]);
    assert!(
        subject.starts_with("Ann: Add an expected failure: "),
        "{subject}"
    );
    assert_eq!(git(&root, &["diff", "--name-only", "main"]), TEST);
    let text = std::fs::read_to_string(root.join(TEST)).unwrap();
    assert!(
        text.contains("@pytest.mark.xfail(strict=True, reason="),
        "{text}"
    );
    assert_eq!(git(&root, &["status", "--short"]), "?? out/");
    for words in [&["apply"][..], &["apply", "--xfail"]] {
        let output = testwright(words);
        assert_exit_code(&output, 2);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let cause =
            "cause: it is already applied, marked as expected to fail\n  hint: to apply it again";
        assert!(stderr.contains(cause), "{stderr}");
    }

    // The folder around the repository is not a repository.
    git(&root, &["checkout", "-q", "main"]);
    let runs = "testwright-runs";
    std::fs::rename(root.join(runs), place.path(runs)).unwrap();
    std::fs::create_dir(place.path("plain")).unwrap();
    let outside = |words: &[&str]| -> Output {
        let mut command = place.testwright();
        command.args(words).current_dir(place.folder.path());
        command.output().unwrap()
    };
    assert_exit_code(&outside(&["apply"]), 0);
    assert!(git(&root, &["status", "--short"]).contains(&format!("M {TEST}")));
    for (words, cause) in [
        (&["apply"][..], "cause: it is already applied"),
        (
            &["apply", "--repo", "plain"],
            "cause: plain is not a clone of the repository",
        ),
    ] {
        let output = outside(words);
        assert_exit_code(&output, 2);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(cause), "{stderr}");
    }
}
