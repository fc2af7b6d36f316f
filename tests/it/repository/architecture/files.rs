//! Checks the names, lengths and layout of files.

use std::path::Path;
use std::process::Command;

use super::{Source, root, sources};

const MAX_LINES: usize = 500;
/// Maximum lines of a test file, which may be longer because tests are lists.
const MAX_TEST_LINES: usize = 800;
const MEANINGLESS_NAMES: [&str; 8] = [
    "util", "utils", "common", "manager", "helper", "helpers", "misc", "shared",
];

fn badly_shaped(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files {
        let lines = file.text.lines().count();
        if lines
            > if file.is_test() {
                MAX_TEST_LINES
            } else {
                MAX_LINES
            }
        {
            wrong.push(format!("{} has {lines} lines", file.path));
        }
        let parts = Path::new(&file.path).with_extension("");
        for part in parts.iter().filter_map(|p| p.to_str()) {
            if part
                .split('_')
                .any(|word| MEANINGLESS_NAMES.contains(&word))
            {
                wrong.push(format!("{} has the meaningless name `{part}`", file.path));
            }
        }
        if !file.is_test() && !file.text.starts_with("//!") {
            wrong.push(format!("{} has no module comment", file.path));
        }
    }
    wrong
}

#[test]
fn files_are_short_and_documented() {
    assert_eq!(badly_shaped(&sources()), Vec::<String>::new());
    let broken = [
        Source::new(
            "src/long.rs",
            &format!("//! Long.\n{}", "\n".repeat(MAX_LINES)),
        ),
        Source::new("src/string_utils.rs", "//! Strings.\n"),
        Source::new("src/quiet.rs", "pub fn f() {}\n"),
        Source::new("src/x/tests.rs", "use super::*;\n"),
    ];
    assert_eq!(
        badly_shaped(&broken),
        [
            "src/long.rs has 501 lines",
            "src/string_utils.rs has the meaningless name `string_utils`",
            "src/quiet.rs has no module comment",
        ]
    );
}

/// Complete content of the top level.
const TOP_LEVEL_FILES: [&str; 32] = [
    ".cargo",
    ".ci",
    ".config",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "Dockerfile",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "action.yml",
    "agent-prompts",
    "agent",
    "benches",
    "comparisons",
    "config",
    "deploy",
    "docs",
    "evals",
    "examples",
    "fuzz",
    "models",
    "pyproject.toml",
    "python",
    "sandboxes",
    "server",
    "src",
    "tests",
    "tools",
];

#[test]
fn top_level_has_no_extra_files() {
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
    assert_eq!(there, TOP_LEVEL_FILES);
}
