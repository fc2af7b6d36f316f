//! Checks that a tool, an approach and a sandbox can each be added with one file and one line.
//!
//! The test adds them to a copy of the project, builds it and runs the program. Dependencies come from the build of
//! these tests. Only crates of this workspace are compiled, and only if they changed since the last time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::repository::architecture::{metadata, root};
use crate::support::program::{TestDir, assert_exit_code, calls, example, text_reply};

/// A file and a line to add. `list` is the file with the list and the beginning of that list.
struct Addition {
    sample: &'static str,
    file: &'static str,
    list: (&'static str, &'static str),
    line: &'static str,
}

const ADDITIONS: [Addition; 3] = [
    Addition {
        sample: "tests/samples/tool.rs",
        file: "tools/src/tools/sample.rs",
        list: ("tools/src/tools/mod.rs", "\ntools! {\n"),
        line: "    sample::Sample,\n",
    },
    Addition {
        sample: "tests/samples/approach.rs",
        file: "agent/src/approaches/sample.rs",
        list: ("agent/src/approaches/mod.rs", "\napproaches! {\n"),
        line: "    sample,\n",
    },
    Addition {
        sample: "tests/samples/backend.rs",
        file: "agent/src/backends/sample.rs",
        list: ("agent/src/backends/mod.rs", "\nbackends! {\n"),
        line: "    sample::SampleConnector,\n",
    },
];

/// Returns the text with the line added at the end of the list.
fn with_line(text: &str, list: &str, line: &str) -> String {
    let start = text.find(list).expect("the list") + list.len();
    let end = start + text[start..].find("}\n").expect("the end of the list");
    [&text[..end], line, &text[end..]].concat()
}

/// Returns the files that git tracks or would add.
fn files() -> BTreeSet<String> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    String::from_utf8(listed.stdout)
        .unwrap()
        .split_terminator('\0')
        .filter(|path| root().join(path).is_file())
        .map(str::to_owned)
        .collect()
}

fn below(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => below(&path, paths),
            false => paths.push(path),
        }
    }
}

/// Updates the copy. Unchanged files are not rewritten, because cargo compares modification times.
fn copy(to: &Path) {
    let mut file_names = files();
    if to.starts_with(root()) {
        // Cargo reads the settings of folders above, too. Repeated flags would compile the dependencies again.
        file_names.retain(|path| !path.starts_with(".cargo/"));
    }
    for addition in &ADDITIONS {
        let is_new = file_names.insert(addition.file.to_owned());
        assert!(is_new, "{} exists already", addition.file);
    }
    for path in &file_names {
        let added = ADDITIONS.iter().find(|addition| addition.file == path);
        let list = ADDITIONS.iter().find(|addition| addition.list.0 == path);
        let mut content = std::fs::read(root().join(added.map_or(&**path, |a| a.sample))).unwrap();
        if let Some(Addition { list, line, .. }) = list {
            let text = String::from_utf8(content).unwrap();
            content = with_line(&text, list.1, line).into_bytes();
        }
        let path = to.join(path);
        if std::fs::read(&path).ok().as_ref() != Some(&content) {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, content).unwrap();
        }
    }
    let mut there = Vec::new();
    below(to, &mut there);
    for path in there {
        let name = path.strip_prefix(to).unwrap().to_str().unwrap();
        if !file_names.contains(name) {
            std::fs::remove_file(&path).unwrap();
        }
    }
}

/// Builds the program from a copy of the project with the samples.
fn build() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("samples");
    let (tree, target) = (place.join("tree"), place.join("target"));
    std::fs::create_dir_all(&tree).unwrap();
    copy(&tree);
    let metadata = metadata();
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--workspace", "--bin", "testwright"])
        .args(["--locked", "--offline", "--message-format", "json"])
        // Intermediate files are shared with this build, results are not.
        .env(
            "CARGO_BUILD_BUILD_DIR",
            metadata["target_directory"].as_str().unwrap(),
        )
        .env("CARGO_TARGET_DIR", &target)
        .current_dir(&tree)
        .stdin(Stdio::null());
    // These variables would make build scripts of dependencies run again, now and in the next build.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            cargo.env_remove(name.as_ref());
        }
    }
    // Other settings keep crates of this build from being replaced by those of the copy, and compile faster.
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        for setting in [
            "codegen-units=255",
            "opt-level=0",
            "debug-assertions=false",
            "overflow-checks=false",
        ] {
            cargo.arg("--config");
            cargo.arg(format!("profile.dev.package.{name}.{setting}"));
        }
    }
    let output = cargo.output().unwrap();
    assert_exit_code(&output, 0);
    let programs = String::from_utf8(output.stdout).unwrap();
    let program = programs.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).unwrap();
        message["executable"].as_str().map(PathBuf::from)
    });
    program.expect("the program")
}

#[test]
fn one_file_and_line_extend_program() {
    let program = build();
    let place = TestDir::new();
    let printed = |arguments: &[&str], expected_code: i32| {
        let output = place.command(&program).args(arguments).output().unwrap();
        assert_exit_code(&output, expected_code);
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let tools = printed(&["tools"], 0);
    assert!(
        tools.contains("\nsample\n  Counts the lines of a file.\n    path: The file to count.\n"),
        "{tools}"
    );
    // The default approach selects tools by their declared properties.
    let offered = printed(&["tools", "--approach", "testwright"], 0);
    assert!(offered.contains("\nsample\n"), "{offered}");
    let offered: Value =
        serde_json::from_str(&printed(&["tools", "--json", "--approach", "sample"], 0)).unwrap();
    let names: Vec<&str> = offered
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["submit", "sample"]);

    let help = printed(&["run", "--help"], 0);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [
        ", snippet or sample",
        "Sandbox that runs the repository's code: local, docker, landlock or sample [default: local]",
        " counts lines and submits",
        " sample same as local",
    ] {
        assert!(help.contains(text), "{text}: {help}");
    }
    let refused = printed(&["run", "-", "--sandbox", "smaple"], 2);
    assert!(
        refused.contains(
            "`smaple` is not one of local, docker, landlock, sample\n  hint: did you mean `sample`?"
        ),
        "{refused}"
    );
    let report = printed(&["doctor"], 0);
    for line in [
        "\nsandbox sample\n  ok       isolation: a sample\n",
        "\nguarantees of sample\n  ok       files: isolated as in local\n",
    ] {
        assert!(report.contains(line), "{report}");
    }

    let model = place.recording(&[
        calls(&[("sample", json!({"path": "src/slugs/slug.py"}))]),
        text_reply("Nothing to submit."),
    ]);
    let out = place.path("out");
    let run = [
        "run",
        &example("issue.md"),
        "--repo",
        &example("slugs"),
        "--model",
        &model,
    ];
    let choice = [
        "--approach",
        "sample",
        "--sandbox",
        "sample",
        "--out",
        out.to_str().unwrap(),
    ];
    printed(&[&run[..], &choice[..]].concat(), 1);
    let record = place.json("run.json");
    assert_eq!(record["approach"], "sample");
    assert_eq!(record["settings"]["run"]["sandbox"], "sample");
    let events = place.events();
    let answer = events
        .iter()
        .find(|event| event["tool"] == "sample")
        .expect("an answer");
    assert_eq!(
        answer["result"]["content"],
        "src/slugs/slug.py has 33 lines."
    );
    // The tool only reads, so no file state was recorded.
    assert!(events.iter().all(|event| event["files"].is_null()));
}
