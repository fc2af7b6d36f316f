//! The invariants of docs/ARCHITECTURE.md that a program can check. Each rule is also shown to find what breaks it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A source file: its path from the root of the workspace, and its text.
pub struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn under(&self, folders: &[&str]) -> bool {
        folders.iter().any(|f| self.path.starts_with(f))
    }

    pub fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
            || self.path.starts_with("tests/")
    }
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust sources of the workspace.
pub fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = [
        "src",
        "tests",
        "benches",
        "tools",
        "agent-prompts",
        "sandboxes",
        "evals",
    ]
    .iter()
    .map(|name| root().join(name))
    .collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|e| e.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let shown = path
                    .strip_prefix(root())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                files.push(Source {
                    path: shown,
                    text: std::fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    assert!(files.len() > 50, "the sources were not found");
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Who may know whom.
fn allowed() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("testwright-tools", [].as_slice()),
        ("testwright-agent-prompts", &[]),
        ("testwright-sandboxes", &[]),
        (
            "testwright-evals",
            &["testwright-sandboxes", "testwright-tools"],
        ),
        (
            "testwright",
            &[
                "testwright-tools",
                "testwright-agent-prompts",
                "testwright-sandboxes",
                "testwright-evals",
            ],
        ),
    ])
}

fn wrong_edges(metadata: &Value) -> Vec<String> {
    let allowed = allowed();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some(known) = allowed.get(name) else {
            wrong.push(format!(
                "{name} is a crate that has no place in the architecture"
            ));
            continue;
        };
        // Development and build dependencies count as well.
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = dependency["name"].as_str().unwrap();
            if allowed.contains_key(other) && !known.contains(&other) {
                wrong.push(format!("{name} knows {other}"));
            }
        }
        let tests = package["targets"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|t| t["kind"][0] == "test")
            .count();
        if tests > 1 {
            wrong.push(format!("{name} has {tests} integration test binaries"));
        }
    }
    wrong
}

#[test]
fn crates_know_only_whom_they_may() {
    assert_eq!(wrong_edges(&metadata()), Vec::<String>::new());
    let mut broken = metadata();
    for package in broken["packages"].as_array_mut().unwrap() {
        if package["name"] == "testwright-evals" {
            let edge = serde_json::json!({ "name": "testwright", "kind": "dev" });
            package["dependencies"].as_array_mut().unwrap().push(edge);
        }
    }
    assert_eq!(wrong_edges(&broken), ["testwright-evals knows testwright"]);
}

/// Libraries that one place alone may name, so that they can be exchanged there.
const CONFINED: [(&str, &[&str]); 4] = [
    (
        "bollard",
        &["sandboxes/src/docker/", "sandboxes/src/docker.rs"],
    ),
    ("async_openai", &["src/model/"]),
    (
        "reqwest",
        &[
            "src/issues/",
            "src/model/",
            "src/cli/doctor/",
            "sandboxes/src/egress/",
            "sandboxes/src/egress.rs",
            "sandboxes/src/http_client.rs",
        ],
    ),
    ("tree_sitter", &["tools/src/"]),
];

fn out_of_place(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (library, places) in CONFINED {
        for file in files.iter().filter(|f| !f.under(places) && !f.is_test()) {
            let names = |line: &str| {
                line.contains(&format!("{library}::")) || line.contains(&format!("use {library}"))
            };
            if file.text.lines().any(names) {
                wrong.push(format!("{} names {library}", file.path));
            }
        }
    }
    wrong
}

#[test]
fn libraries_stay_behind_their_boundary() {
    assert_eq!(out_of_place(&sources()), Vec::<String>::new());
    let broken = [
        Source::new("src/session/mod.rs", "use bollard::Docker;\n"),
        Source::new("sandboxes/src/docker/mod.rs", "use bollard::Docker;\n"),
        Source::new(
            "src/agent/mod.rs",
            "    let client = async_openai::Client::new();\n",
        ),
    ];
    assert_eq!(
        out_of_place(&broken),
        [
            "src/session/mod.rs names bollard",
            "src/agent/mod.rs names async_openai"
        ]
    );
}

/// Layers inside the root crate: what each folder must not use.
const LAYERS: [(&str, &[&str]); 4] = [
    (
        "src/model/",
        &[
            "agent",
            "approaches",
            "cli",
            "daemon",
            "gate",
            "session",
            "trajectory",
        ],
    ),
    (
        "src/issues/",
        &[
            "agent",
            "approaches",
            "cli",
            "daemon",
            "gate",
            "model",
            "session",
            "trajectory",
        ],
    ),
    (
        "src/settings/",
        &[
            "agent",
            "approaches",
            "cli",
            "daemon",
            "gate",
            "model",
            "session",
            "trajectory",
        ],
    ),
    ("src/agent/", &["approaches", "cli", "daemon"]),
];

fn upward_uses(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (folder, others) in LAYERS {
        for file in files.iter().filter(|f| f.path.starts_with(folder)) {
            for other in others {
                if file.text.contains(&format!("crate::{other}::"))
                    || file.text.contains(&format!("crate::{other};"))
                {
                    wrong.push(format!("{} uses {other}", file.path));
                }
            }
        }
    }
    wrong
}

#[test]
fn lower_layers_do_not_use_upper_ones() {
    assert_eq!(upward_uses(&sources()), Vec::<String>::new());
    let broken = [Source::new(
        "src/model/openai.rs",
        "use crate::agent::Run;\n",
    )];
    assert_eq!(upward_uses(&broken), ["src/model/openai.rs uses agent"]);
}

/// What prints. Foreign text reaches a terminal through `src/cli/output.rs` alone.
const PRINTING: [&str; 9] = [
    "print!(",
    "println!(",
    "dbg!(",
    "anstream::",
    "indicatif::",
    "io::stdout(",
    "io::stderr(",
    "/dev/tty",
    "Stdio::inherit(",
];
/// It speaks a protocol on stdout.
const PROTOCOL: &str = ".serve((tokio::io::stdin(), tokio::io::stdout()))";

fn prints(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    let own = |f: &&Source| f.path.starts_with("src/") && !f.is_test();
    for file in files.iter().filter(own) {
        if file.under(&["src/cli/output.rs", "src/cli/output/"]) {
            continue;
        }
        for line in file.text.lines() {
            let code = line.trim_start();
            if code.starts_with("//") || code == PROTOCOL {
                continue;
            }
            for word in PRINTING.iter().filter(|word| code.contains(**word)) {
                wrong.push(format!("{} has {word}", file.path));
            }
        }
    }
    wrong
}

#[test]
fn foreign_text_reaches_a_terminal_in_one_way() {
    assert_eq!(prints(&sources()), Vec::<String>::new());
    let broken = [
        Source::new("src/cli/run.rs", "    eprintln!(\"{name}\");\n"),
        Source::new("src/cli/mcp.rs", PROTOCOL),
        Source::new("src/cli/output.rs", "anstream::print!(\"{text}\");\n"),
        Source::new(
            "src/trajectory/folder.rs",
            "// eprintln!()\nwriteln!(std::io::stderr(), \"x\")\n",
        ),
    ];
    assert_eq!(
        prints(&broken),
        [
            "src/cli/run.rs has println!(",
            "src/trajectory/folder.rs has io::stderr("
        ]
    );
}

const MOST_LINES: usize = 500;
/// Tests are lists; they may be longer.
const MOST_TEST_LINES: usize = 800;
const NO_NAMES: [&str; 8] = [
    "util", "utils", "common", "manager", "helper", "helpers", "misc", "shared",
];

fn badly_shaped(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files {
        let lines = file.text.lines().count();
        if lines
            > if file.is_test() {
                MOST_TEST_LINES
            } else {
                MOST_LINES
            }
        {
            wrong.push(format!("{} has {lines} lines", file.path));
        }
        let parts = Path::new(&file.path).with_extension("");
        for part in parts.iter().filter_map(|p| p.to_str()) {
            if part.split('_').any(|word| NO_NAMES.contains(&word)) {
                wrong.push(format!("{} says nothing by `{part}`", file.path));
            }
        }
        if !file.is_test() && !file.text.starts_with("//!") {
            wrong.push(format!("{} does not say what it is for", file.path));
        }
    }
    wrong
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    assert_eq!(badly_shaped(&sources()), Vec::<String>::new());
    let broken = [
        Source::new(
            "src/long.rs",
            &format!("//! Long.\n{}", "\n".repeat(MOST_LINES)),
        ),
        Source::new("src/string_utils.rs", "//! Strings.\n"),
        Source::new("src/quiet.rs", "pub fn f() {}\n"),
        Source::new("src/x/tests.rs", "use super::*;\n"),
    ];
    assert_eq!(
        badly_shaped(&broken),
        [
            "src/long.rs has 501 lines",
            "src/string_utils.rs says nothing by `string_utils`",
            "src/quiet.rs does not say what it is for",
        ]
    );
}

/// The toolbox runs beside untrusted code: it opens no connection and looks up no name.
fn opens_connections(files: &[Source]) -> Vec<String> {
    let words = [
        "std::net",
        "tokio::net",
        "TcpStream",
        "UdpSocket",
        "to_socket_addrs",
    ];
    files
        .iter()
        .filter(|f| f.path.starts_with("tools/src/"))
        .flat_map(|f| {
            words
                .iter()
                .filter(|w| f.text.contains(**w))
                .map(|w| format!("{} has {w}", f.path))
        })
        .collect()
}

#[test]
fn the_tools_open_no_connection() {
    assert_eq!(opens_connections(&sources()), Vec::<String>::new());
    let broken = [Source::new(
        "tools/src/server.rs",
        "use std::net::IpAddr;\n",
    )];
    assert_eq!(
        opens_connections(&broken),
        ["tools/src/server.rs has std::net"]
    );
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for package in metadata()["packages"].as_array().unwrap() {
        let manifest = package["manifest_path"].as_str().unwrap();
        let manifest: toml::Table = std::fs::read_to_string(manifest).unwrap().parse().unwrap();
        assert_eq!(
            manifest["lints"]["workspace"].as_bool(),
            Some(true),
            "{}",
            package["name"]
        );
    }
}

/// What the top level holds, and nothing else.
const TOP: [&str; 23] = [
    ".cargo",
    ".ci",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "Dockerfile",
    "LICENSE",
    "README.md",
    "action.yml",
    "agent-prompts",
    "benches",
    "docs",
    "evals",
    "examples",
    "fuzz",
    "pyproject.toml",
    "sandboxes",
    "src",
    "tests",
    "tools",
];

#[test]
fn the_top_level_is_as_designed() {
    let listed = Command::new("git")
        .args(["ls-files"])
        .current_dir(root())
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut there: Vec<&str> = listed
        .lines()
        .filter_map(|path| path.split('/').next())
        .collect();
    there.dedup();
    assert_eq!(there, TOP);
}

/// External crates that the table of docs/ARCHITECTURE.md does not name.
fn unexplained(metadata: &Value, document: &str) -> Vec<String> {
    let (_, table) = document.split_once("## Dependencies, and why").unwrap();
    let named: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .flat_map(|cell| cell.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_'))
        .collect();
    let mut missing: Vec<String> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|package| package["dependencies"].as_array().unwrap())
        .filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
        .filter(|name| !name.starts_with("testwright-") && !named.contains(&name.as_str()))
        .collect();
    missing.sort();
    missing.dedup();
    missing
}

#[test]
fn every_dependency_is_explained() {
    let document = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    assert_eq!(unexplained(&metadata(), &document), Vec::<String>::new());
    let less = document.replace("bollard", "");
    assert_eq!(unexplained(&metadata(), &less), ["bollard"]);
}
