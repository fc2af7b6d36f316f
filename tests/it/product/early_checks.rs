//! Checks that need no environment, and come before its build.

use serde_json::Value;

use crate::support::program::{TestDir, assert_exit_code, example};

#[test]
fn hopeless_runs_end_before_build() {
    let place = TestDir::new();
    let prose = place.path("prose.md");
    std::fs::write(&prose, "# It is slow\n\nAll of it.\n").unwrap();
    let (prose, missing) = (prose.to_str().unwrap(), place.path("missing"));
    // The repository is looked at last, so its absence shows that nothing was built before.
    let run = |words: &[&str]| {
        let mut command = place.testwright();
        command
            .args(["run", "--json", "--repo"])
            .arg(&missing)
            .args(words);
        command.current_dir(place.folder.path()).output().unwrap()
    };
    for (words, code, message) in [
        (
            vec![prose],
            1,
            "the issue contains no code that `snippet` can run",
        ),
        (
            vec![prose, "--approach", "snipet"],
            2,
            "failed to find the approach `snipet`",
        ),
        (
            vec![prose, "--approach", "command:nosuchprog"],
            2,
            "failed to start `nosuchprog`",
        ),
        (
            vec![prose, "--python", "2.7"],
            2,
            "Python 2.7 is not supported (3.6 or later)",
        ),
        (
            vec![prose, "--python", "3.99"],
            3,
            "Python 3.99 is not installed",
        ),
        (
            vec![prose, "--out", "prose.md"],
            2,
            "failed to use --out prose.md",
        ),
        (
            vec![prose, "--out", "prose.md/out"],
            3,
            "failed to write prose.md/out",
        ),
        (
            vec![prose, "--max-steps", "0"],
            2,
            "invalid --max-steps: must be greater than 0, not 0",
        ),
        (vec!["#7"], 2, "failed to find the issue `#7`"),
    ] {
        let output = run(&words);
        assert_exit_code(&output, code);
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = printed["error"]["message"].as_str().unwrap();
        assert!(error.starts_with(message), "{words:?}: {error}");
        assert!(!place.path("testwright-runs").exists());
    }
}

#[test]
fn folder_without_python_is_refused() {
    let place = TestDir::new();
    let folder = place.path("notes");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("notes.txt"), "Nothing to test.\n").unwrap();
    let assert_refused = |lines: &[&str]| {
        let mut command = place.testwright();
        command
            .args(["run", &example("issue.md"), "--repo"])
            .arg(&folder);
        let output = command
            .arg("--out")
            .arg(place.path("out"))
            .output()
            .unwrap();
        assert_exit_code(&output, 2);
        let stderr = String::from_utf8_lossy(&output.stderr);
        for line in lines {
            assert!(stderr.contains(line), "{stderr}");
        }
        assert!(!place.path("out").exists());
    };
    assert_refused(&[
        "cause: the folder has neither a git repository nor Python code",
        "hint: name the repository with --repo",
    ]);
    let nested = folder.join("click");
    std::fs::create_dir_all(nested.join(".git")).unwrap();
    assert_refused(&[
        "cause: the folder contains repositories, but no Python code of its own",
        &format!("hint: use --repo {}", nested.display()),
    ]);
}
