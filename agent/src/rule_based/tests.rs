#![allow(clippy::unwrap_used, clippy::expect_used)]

mod block_texts;
mod conversations;
mod expected_exceptions;
mod expected_values;
mod issue_tests;
mod kept_statements;
mod printed_blocks;
mod raised_exceptions;
mod wrong_outputs;

use std::process::Command;

use super::candidates::{Candidate, Evidence, candidates};
use super::extract::{extract, wanted_exceptions};
use super::probe::{self, Probe};
use super::steps::steps;

/// A package with some mistakes.
const PACKAGE: &str = r#"
"""A shop."""

class Stuck(Exception):
    pass

class Grid(list):
    pass

class Ring(list):
    def __getitem__(self, index):
        return list.__getitem__(self, index % len(self))

    def pop(self, index):
        return list.pop(self, index % len(self) if index < -len(self) else index)

def low(number):
    return number - 2

def open_box(size):
    return _turn(size)

def _turn(size):
    if size > 2:
        raise Stuck("cannot turn {}".format(size))
    return size

def label(name):
    return "<" + name

def mixed(number):
    return "-{} -1/2".format(number)

class Size:
    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return "shop.sizes.Size({})".format(self.number)

def is_empty(box):
    return None

REGISTRY = {}

def register(name):
    REGISTRY[name] = True

class CliRunner:
    def invoke(self, command, arguments):
        return command(arguments)

def serve(arguments):
    return "on port 80"

def port():
    import os
    return os.environ.get("PORT", 80) + 1
"#;

/// Returns the candidates for an issue about the package, on real Python.
fn candidates_for(issue: &str) -> (Probe, Vec<Candidate>) {
    candidates_with(&[], issue)
}

/// Returns the candidates for an issue about the package and these further files.
fn candidates_with(files: &[(&str, &str)], issue: &str) -> (Probe, Vec<Candidate>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("shop")).unwrap();
    std::fs::write(folder.path().join("shop/__init__.py"), PACKAGE).unwrap();
    let late =
        "import os\nPORT = os.environ.get('PORT', 80)\n\ndef start():\n    return PORT + 1\n";
    std::fs::write(folder.path().join("shop/late.py"), late).unwrap();
    for (path, text) in files {
        std::fs::write(folder.path().join(path), text).unwrap();
    }
    let issue = extract(issue);
    let steps = steps(&issue);
    let exceptions = wanted_exceptions(&issue.prose());
    let script = probe::script(&steps, &exceptions, &Default::default());
    let file = folder.path().join("snippet.py");
    std::fs::write(&file, script).unwrap();
    let ran = Command::new("python3")
        .arg(&file)
        .env("PYTHONPATH", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let probe = probe::read(&String::from_utf8_lossy(&ran.stdout))
        .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
    let test_candidates = candidates(&Evidence::new(&issue, &steps, &probe));
    (probe, test_candidates)
}

fn lines(candidate: &Candidate) -> Vec<&str> {
    let imports = candidate.body.imports.iter();
    imports
        .chain(&candidate.body.lines)
        .map(String::as_str)
        .collect()
}

/// Returns the last lines of the candidates that expect a value.
fn equalities(issue: &str) -> Vec<String> {
    let (_, all) = candidates_for(issue);
    let gives = all
        .iter()
        .filter(|c| c.behaviour.to_string().starts_with("gives"));
    gives.filter_map(|c| c.body.lines.last().cloned()).collect()
}
