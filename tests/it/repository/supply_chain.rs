//! Checks the licences and sources of all crates (`.ci/deny.toml`), and the list of unsafe code (`docs/UNSAFE.md`).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::repository::architecture::{Source, root, sources};

fn policy() -> toml::Table {
    std::fs::read_to_string(root().join(".ci/deny.toml"))
        .unwrap()
        .parse()
        .unwrap()
}

/// Returns every crate that is built on this platform.
fn packages() -> Value {
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(root())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let about = run("rustc", &["-vV"]);
    let host = about
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let metadata = run(
        env!("CARGO"),
        &[
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--all-features",
            "--filter-platform",
            host,
        ],
    );
    let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
    let mut packages = metadata["packages"].take();
    for package in packages.as_array_mut().unwrap() {
        if package["license"].is_null()
            && let Some(file) = package["license_file"].as_str()
        {
            let manifest = Path::new(package["manifest_path"].as_str().unwrap());
            let text = std::fs::read_to_string(manifest.with_file_name(file)).unwrap();
            package["license"] = license_of_text(&text).into();
        }
    }
    packages
}

/// Returns the licence of a licence text, for crates that name none. cargo-deny compares the full text.
fn license_of_text(text: &str) -> Option<&'static str> {
    let is_mit = text.trim_start().starts_with("MIT License")
        && text.contains("Permission is hereby granted, free of charge, to any person");
    is_mit.then_some("MIT")
}

fn texts<'t>(table: &'t toml::Table, section: &str, key: &str) -> Vec<&'t str> {
    let list = table[section][key].as_array().unwrap();
    list.iter().map(|item| item.as_str().unwrap()).collect()
}

/// Evaluates an SPDX expression with `AND`, `OR` and parentheses. `/` is an old notation for `OR`.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    fn either(
        words: &mut std::iter::Peekable<std::vec::IntoIter<String>>,
        allowed: &[&str],
    ) -> bool {
        let mut result = both(words, allowed);
        while words.next_if(|word| word == "OR").is_some() {
            result |= both(words, allowed);
        }
        result
    }
    fn both(words: &mut std::iter::Peekable<std::vec::IntoIter<String>>, allowed: &[&str]) -> bool {
        let mut result = one(words, allowed);
        while words.next_if(|word| word == "AND").is_some() {
            result &= one(words, allowed);
        }
        result
    }
    fn one(words: &mut std::iter::Peekable<std::vec::IntoIter<String>>, allowed: &[&str]) -> bool {
        let Some(mut word) = words.next() else {
            return false;
        };
        if word == "(" {
            let result = either(words, allowed);
            return words.next().as_deref() == Some(")") && result;
        }
        if words.next_if(|word| word == "WITH").is_some() {
            word = format!("{word} WITH {}", words.next().unwrap_or_default());
        }
        allowed.contains(&word.as_str())
    }
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
    let mut words = words.into_iter().peekable();
    either(&mut words, allowed) && words.peek().is_none()
}

fn refused(packages: &Value, policy: &toml::Table) -> Vec<String> {
    let licenses = texts(policy, "licenses", "allow");
    let registries = texts(policy, "sources", "allow-registry");
    let banned = policy["bans"]["deny"].as_array().unwrap();
    let banned: Vec<&str> = banned
        .iter()
        .map(|crate_| crate_["crate"].as_str().unwrap())
        .collect();
    let mut wrong = Vec::new();
    for package in packages.as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let license = package["license"].as_str().unwrap_or("no licence");
        if !is_allowed(license, &licenses) {
            wrong.push(format!("{name} is under {license}"));
        }
        // Workspace crates have no source.
        if let Some(source) = package["source"].as_str()
            && !source
                .strip_prefix("registry+")
                .is_some_and(|url| registries.contains(&url))
        {
            wrong.push(format!("{name} comes from {source}"));
        }
        if banned.contains(&name) {
            wrong.push(format!("{name} is banned"));
        }
    }
    wrong
}

#[test]
fn crates_have_allowed_licence_and_source() {
    let (packages, policy) = (packages(), policy());
    assert!(packages.as_array().unwrap().len() > 100);
    assert_eq!(refused(&packages, &policy), Vec::<String>::new());
    let registry = "registry+https://github.com/rust-lang/crates.io-index";
    let broken = json!([
        {"name": "a", "license": "GPL-3.0-only", "source": registry},
        {"name": "b", "license": null, "source": registry},
        {"name": "c", "license": "MIT", "source": "git+https://github.com/o/c"},
        {"name": "d", "license": "MIT", "source": "registry+https://other.example.org/index"},
        {"name": "openssl", "license": "Apache-2.0", "source": registry},
        {"name": "e", "license": "(MIT OR GPL-2.0) AND ISC", "source": registry},
        {"name": "f", "license": "MIT AND GPL-2.0", "source": registry},
        {"name": "g", "license": "Apache-2.0/GPL-2.0", "source": registry},
        {"name": "h", "license": "MIT WITH GCC-exception-3.1", "source": registry},
    ]);
    assert_eq!(
        refused(&broken, &policy),
        [
            "a is under GPL-3.0-only",
            "b is under no licence",
            "c comes from git+https://github.com/o/c",
            "d comes from registry+https://other.example.org/index",
            "openssl is banned",
            "f is under MIT AND GPL-2.0",
            "h is under MIT WITH GCC-exception-3.1",
        ]
    );
}

/// Counts uses of the keyword by file, and lists uses without a SAFETY comment.
fn unsafe_code(files: &[Source]) -> (BTreeMap<String, usize>, Vec<String>) {
    let mut count = BTreeMap::new();
    let mut bare = Vec::new();
    for file in files.iter().filter(|f| !f.is_test()) {
        let lines: Vec<&str> = file.text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let word = |w: &str| w == "unsafe";
            let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            let number = words.filter(|w| word(w)).count();
            // A string that contains the word is not a use.
            if number == 0 || code.contains("\"unsafe") {
                continue;
            }
            *count.entry(file.path.clone()).or_default() += number;
            let above = lines[..i].iter().rev().take(5);
            if !above.chain([line]).any(|line| line.contains("SAFETY:")) {
                bare.push(format!("{}:{}", file.path, i + 1));
            }
        }
    }
    (count, bare)
}

fn listed(document: &str) -> BTreeMap<String, usize> {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let mut cells = row.split(" | ");
        let file = cells.next().unwrap().trim_end_matches('`').to_owned();
        let number = cells.next().unwrap().trim().parse().unwrap();
        assert!(
            cells.next().is_some_and(|why| why.len() > 10),
            "{file} has no reason"
        );
        (file, number)
    })
    .collect()
}

#[test]
fn unsafe_code_is_documented() {
    let document = std::fs::read_to_string(root().join("docs/UNSAFE.md")).unwrap();
    let (count, bare) = unsafe_code(&sources());
    assert_eq!(bare, Vec::<String>::new(), "each needs a SAFETY comment");
    assert_eq!(count, listed(&document), "docs/UNSAFE.md lists all uses");
    let broken = [
        Source::new(
            "src/a.rs",
            "// SAFETY: it is.\nunsafe { f() };\nlet unsafety = 1; // unsafe\n",
        ),
        Source::new("src/b.rs", "pub unsafe fn f() {}\n"),
        Source::new("src/b/tests.rs", "unsafe { f() }\n"),
    ];
    let (count, bare) = unsafe_code(&broken);
    assert_eq!(
        count,
        BTreeMap::from([("src/a.rs".to_owned(), 1), ("src/b.rs".to_owned(), 1)])
    );
    assert_eq!(bare, ["src/b.rs:1"]);
}
