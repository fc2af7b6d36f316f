//! Folders and files that somebody sent: what lies there under a name that is read may be no plain file, and has no end.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::program::{Place, code};

/// What can lie under a name, and what is said of it.
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
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        }
        "link" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        // Some blocks on disk.
        "sparse file" => hole(3 << 30),
        _ => hole(100 << 20),
    }
}

/// Runs the program with half a gigabyte of memory; one that waits is ended.
fn run(place: &Place, words: &[&str], path: &Path) -> Output {
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
fn files_of_a_sent_folder_are_plain_and_bounded() {
    let place = Place::new();
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
        for (form, said) in FORMS {
            if name.ends_with(".json") && form == "zeros" {
                continue;
            }
            if name == "run.json" {
                std::fs::write(folder.join("results.jsonl"), "").unwrap();
            }
            // A file of records may be larger than that, but not one of its lines.
            let said = match (name, form) {
                ("results.jsonl", "sparse file") => "line 1 has more than",
                _ => said,
            };
            let path = folder.join(name);
            plant(&path, form);
            let output = run(&place, words, &folder);
            let shown = String::from_utf8_lossy(&output.stderr).into_owned();
            let what = format!("{words:?}, {name} is a {form}: {shown}");
            assert!([2, 3].contains(&code(&output)), "{what}");
            // What is no file is no results.
            let is_none = name == "results.jsonl" && shown.contains("it has no results.jsonl");
            assert!(shown.contains(name), "{what}");
            assert!(is_none || shown.contains(said), "{what}");
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn dataset_and_predictions_have_an_end() {
    let place = Place::new();
    let out = place.path("out");
    let named = ["eval", "--out", out.to_str().unwrap(), "--dataset"];
    let forms = [
        ("pipe", "it is a pipe without a writer"),
        ("link", "it is a pipe, a socket or a device"),
        ("sparse file", "it has 3221225472 bytes"),
    ];
    for (form, said) in forms {
        let path = place.path("given");
        plant(&path, form);
        let output = run(&place, &named, &path);
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!([2, 3].contains(&code(&output)), "{form}: {shown}");
        assert!(shown.contains(said), "{form}: {shown}");
    }
}
