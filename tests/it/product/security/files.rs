//! Received folders and files, whose content may be endless or not a regular file.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::program::{TestDir, code};

/// Forms of a file, with the expected message.
const FORMS: [(&str, &str); 4] = [
    ("pipe", "it is a pipe, a socket or a device"),
    ("link", "it is a symbolic link"),
    ("sparse file", "it has 3221225472 bytes"),
    ("zeros", "line 1 has more than 16777216 bytes"),
];

fn plant(path: &Path, form: &str) {
    let _ = std::fs::remove_file(path);
    let hole = |bytes| std::fs::File::create(path).unwrap().set_len(bytes).unwrap();
    match form {
        "pipe" => {
            let exit_status = Command::new("mkfifo").arg(path).status();
            assert!(exit_status.unwrap().success());
        }
        "link" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        // A sparse file that takes only a few blocks on disk.
        "sparse file" => hole(3 << 30),
        _ => hole(100 << 20),
    }
}

/// Runs the program with half a gigabyte of memory and a timeout.
fn run(place: &TestDir, words: &[&str], path: &Path) -> Output {
    let program = place.testwright();
    let script = "ulimit -d 500000; exec timeout 60 \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .arg(program.get_program());
    command.args(words).arg(path);
    command.current_dir(place.folder.path());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.output().unwrap()
}

#[test]
fn received_files_are_regular_and_bounded() {
    let place = TestDir::new();
    let folder = place.path("sent");
    std::fs::create_dir(&folder).unwrap();
    let commands: [(&[&str], &str); 7] = [
        (&["show"], "trajectory.jsonl"),
        (&["inspect"], "trajectory.jsonl"),
        (&["replay"], "trajectory.jsonl"),
        (&["run", "--resume"], "trajectory.jsonl"),
        (&["inspect"], "comparison.json"),
        (&["eval", "report"], "results.jsonl"),
        (&["eval", "report"], "run.json"),
    ];
    for (words, name) in commands {
        for (form, reason) in FORMS {
            if name.ends_with(".json") && form == "zeros" {
                continue;
            }
            if name == "run.json" {
                std::fs::write(folder.join("results.jsonl"), "").unwrap();
            }
            // The limit for files of records applies to each line.
            let reason = match (name, form) {
                ("results.jsonl", "sparse file") => "line 1 has more than",
                _ => reason,
            };
            let path = folder.join(name);
            plant(&path, form);
            let output = run(&place, words, &folder);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let what = format!("{words:?}, {name} is a {form}: {stderr}");
            assert!([2, 3].contains(&code(&output)), "{what}");
            // A name that is not a regular file counts as missing.
            let is_none = name == "results.jsonl" && stderr.contains("it has no results.jsonl");
            assert!(stderr.contains(name), "{what}");
            assert!(is_none || stderr.contains(reason), "{what}");
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn endless_inputs_are_rejected() {
    let place = TestDir::new();
    let out = place.path("out");
    let arguments = ["eval", "--out", out.to_str().unwrap(), "--dataset"];
    let forms = [
        ("pipe", "it is a pipe without a writer"),
        ("link", "it is a pipe, a socket or a device"),
        ("sparse file", "it has 3221225472 bytes"),
    ];
    for (form, reason) in forms {
        let path = place.path("given");
        plant(&path, form);
        let output = run(&place, &arguments, &path);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!([2, 3].contains(&code(&output)), "{form}: {stderr}");
        assert!(stderr.contains(reason), "{form}: {stderr}");
    }
}
