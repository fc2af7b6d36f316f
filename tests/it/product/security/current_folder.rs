//! An untrusted current folder: its files are neither the user's settings nor the user's programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::program::{TestDir, assert_exit_code, example};
use crate::support::server::{MockServer, Response};

/// Creates a folder with these files.
fn folder(place: &TestDir, files: &[(&str, &str)]) -> PathBuf {
    let folder = place.path("stranger");
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the command `testwright run` on the current folder.
fn run_here(place: &TestDir, folder: &Path) -> Command {
    let mut command = place.testwright();
    command.args(["run", &example("issue.md"), "--out"]);
    command.arg(place.path("out")).current_dir(folder);
    command
}

#[test]
fn tracked_settings_cannot_redirect_keys() {
    let place = TestDir::new();
    let server = MockServer::start(|_| Response::status(401));
    let text = format!(
        "[run]\nmodel = \"m\"\napproach = \"testwright\"\n[model]\nbase-url = \"{}/v1\"\napi-key-env = \"ANY_SECRET\"\n",
        server.url
    );
    let folder = folder(&place, &[("testwright.toml", &text), ("a.py", "a = 1\n")]);
    let commands: [&[&str]; 5] = [
        &[
            "run",
            &example("issue.md"),
            "--out",
            "out",
            "--max-minutes",
            "0.1",
        ],
        &[
            "run",
            &example("issue.md"),
            "--out",
            "out2",
            "--repo",
            ".",
            "--max-minutes",
            "0.1",
        ],
        &["doctor", "--online"],
        &["mcp"],
        &["tools"],
    ];
    for arguments in commands {
        let _ = place
            .testwright()
            .args(arguments)
            .env("ANY_SECRET", "the-value-of-a-variable")
            // Without the file's settings, the default address would be called. The proxy prevents that.
            .env("HTTPS_PROXY", "http://127.0.0.1:1")
            .env("TESTWRIGHT_MODEL_TIMEOUT_SECONDS", "1")
            .current_dir(&folder)
            .output()
            .unwrap();
        let authorizations =
            server.all_requests(|r| r.header("authorization").unwrap_or_default().to_owned());
        assert_eq!(authorizations, Vec::<String>::new(), "{arguments:?}");
    }
    let output = place
        .testwright()
        .arg("doctor")
        .current_dir(&folder)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        stdout.contains("`model.base-url`") && stdout.contains("--config"),
        "{stdout}"
    );

    // If the user passes the same file with `--config`, it is trusted.
    let _ = place
        .testwright()
        .args(["doctor", "--online", "--config", "testwright.toml"])
        .env("ANY_SECRET", "the-value-of-a-variable")
        .current_dir(&folder)
        .output()
        .unwrap();
    let authorizations =
        server.all_requests(|r| r.header("authorization").unwrap_or_default().to_owned());
    assert_eq!(authorizations, ["Bearer the-value-of-a-variable"]);
}

#[test]
fn tracked_settings_cannot_raise_limits() {
    let place = TestDir::new();
    let text = "[run]\nmax-steps = 100000\nmax-minutes = 1e6\n[limits]\nmemory = \"900 GiB\"\ntest-seconds = 7\n";
    let folder = folder(&place, &[("testwright.toml", text)]);
    let output = place
        .testwright()
        .args(["doctor", "--json"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let value = |key: &str| {
        let rows = report["settings"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(value("limits.memory"), "\"4 GiB\"");
    assert_eq!(value("run.max-steps"), "60");
    assert_eq!(value("run.max-minutes"), "30.0");
    assert_eq!(value("limits.test-seconds"), "7");
}

/// A URL is a URL, even if the current folder contains a folder of that name.
#[test]
fn folder_named_like_url_is_ignored() {
    let place = TestDir::new();
    let address = "https://127.0.0.1:1/acme/slugs";
    let files = [
        ("https:/127.0.0.1:1/acme/slugs/a.py", "a = 1\n"),
        (
            "https:/127.0.0.1:1/acme/slugs/testwright.toml",
            "[environment]\npython = \"taken\"\n",
        ),
    ];
    let folder = folder(&place, &files);
    let mut command = run_here(&place, &folder);
    let output = command.args(["--repo", address]).output().unwrap();
    let message = stderr(&output);
    assert!(message.contains("cannot be reached"), "{message}");
    assert!(!message.contains("taken"), "{message}");
}

/// Python imports modules from its current folder, and the program uses Python to find `uv`.
#[test]
fn modules_of_current_folder_do_not_run() {
    let place = TestDir::new();
    let marker = place.path("ran");
    let code = format!(
        "open({:?}, 'a').write(__name__)\n",
        marker.to_str().unwrap()
    );
    let modules = [
        "uv",
        "pip",
        "os",
        "json",
        "re",
        "site",
        "sitecustomize",
        "usercustomize",
        "runpy",
        "encodings",
    ];
    let mut files: Vec<(String, &str)> = modules
        .map(|name| (format!("{name}.py"), code.as_str()))
        .to_vec();
    files.push(("pip/__init__.py".to_owned(), &code));
    files.push(("pip/__main__.py".to_owned(), &code));
    files.push(("a.py".to_owned(), "a = 1\n"));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), *text))
        .collect();
    let folder = folder(&place, &files);
    // This simulates a machine without uv, and an index that does not respond.
    let programs = place.path("programs");
    std::fs::create_dir(&programs).unwrap();
    for name in ["git", "python3", "sh"] {
        let output = Command::new("sh")
            .args(["-c", &format!("command -v {name}")])
            .output()
            .unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        std::os::unix::fs::symlink(output.trim(), programs.join(name)).unwrap();
    }
    for arguments in [
        ["doctor"].as_slice(),
        &["run", &example("issue.md"), "--out", "out"],
    ] {
        let output = place
            .testwright()
            .args(arguments)
            .env(
                "PATH",
                std::env::join_paths([&programs, Path::new("/usr/bin"), Path::new("/bin")])
                    .unwrap(),
            )
            .env("TESTWRIGHT_CACHE", place.path("cache"))
            .env("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
            .env("PIP_RETRIES", "0")
            .current_dir(&folder)
            .output()
            .unwrap();
        let ran = std::fs::read_to_string(&marker).unwrap_or_default();
        assert_eq!(
            ran,
            "",
            "{arguments:?} ran a module of the folder: {}",
            stderr(&output)
        );
    }
}

/// Programs come from absolute entries of `PATH`, never from the current folder through an empty entry.
#[test]
fn relative_path_entries_are_ignored() {
    let place = TestDir::new();
    let marker = place.path("ran");
    let script = format!("#!/bin/sh\necho ran >> {}\nexit 1\n", marker.display());
    let names = [
        "uv",
        "python3",
        "python3.11",
        "python3.9",
        "git",
        "sh",
        "patch",
    ];
    let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, script.as_str())).collect();
    let folder = folder(&place, &files);
    for name in names {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.join(name), mode).unwrap();
    }
    let path = format!(".::{}", std::env::var("PATH").unwrap());
    let output = place
        .testwright()
        .arg("doctor")
        .env("PATH", path)
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(
        !marker.exists(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn linked_settings_are_not_quoted() {
    let place = TestDir::new();
    let secret = place.path("secret");
    std::fs::write(&secret, "pa55word = \"pa55word\"\n").unwrap();
    let folder = folder(&place, &[("a.py", "a = 1\n")]);
    std::os::unix::fs::symlink(&secret, folder.join("testwright.toml")).unwrap();
    let output = run_here(&place, &folder).output().unwrap();
    assert_exit_code(&output, 2);
    let message = stderr(&output);
    assert!(
        message.contains("testwright.toml: is a symbolic link"),
        "{message}"
    );
    assert!(!message.contains("pa55"), "{message}");
}

#[test]
fn tracked_link_cannot_redirect_results() {
    let place = TestDir::new();
    let folder = folder(&place, &[("a.py", "a = 1\n")]);
    let elsewhere = place.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, folder.join("testwright-runs")).unwrap();
    let mut command = place.testwright();
    command.args(["run", &example("issue.md"), "--max-steps", "1"]);
    let output = command.current_dir(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let message = stderr(&output);
    assert!(
        message.contains("testwright-runs: it is a link") && message.contains("--out DIR"),
        "{message}"
    );
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}
