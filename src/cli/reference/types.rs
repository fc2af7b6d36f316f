//! `file-formats.md`: the types that are written to files, read from their source: fields, types and doc comments.
//! They derive serde's traits alone; their source is what can be read without a schema.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

/// Heading, what the file is, the source, and the types of it that are described.
type Format = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const FORMATS: [Format; 6] = [
    (
        "evidence.json",
        "What speaks for an accepted test. One JSON object.",
        "src/gate/evidence.rs",
        &["Evidence", "TestEvidence", "FixTrial", "Review"],
    ),
    (
        "trajectory.jsonl",
        "Everything that happened in a run. One JSON object a line; `event` says which of these it is.",
        "src/trajectory/event.rs",
        &["Event", "Started", "Answer", "FileState"],
    ),
    (
        "run.json of a run",
        "Settings, versions, isolation, outcome and usage. One JSON object.",
        "src/job.rs",
        &["Record"],
    ),
    (
        "results.jsonl",
        "Graded predictions. One JSON object a line.",
        "evals/src/result.rs",
        &["InstanceResult"],
    ),
    (
        "report.json",
        "The figures of `report.md` and `report.html`. One JSON object.",
        "evals/src/report.rs",
        &["Report"],
    ),
    (
        "testwright.toml [environment]",
        "How an environment is built, in the repository's own `testwright.toml` or a file named with `--config`.",
        "sandboxes/src/recipe.rs",
        &["Recipe", "Runner", "Service"],
    ),
];

pub fn page(root: &Path) -> String {
    let mut body = "Types are written as in the source: `Option<T>` may be `null` or left out, `Vec<T>` is a list, `BTreeMap` a map.\n\n\
                    `test.patch` is a unified diff for `git apply`.\n"
        .to_owned();
    for (title, what, file, names) in FORMATS {
        let source = std::fs::read_to_string(root.join(file)).unwrap();
        body += &format!("\n## {title}\n\n{what} Source: `{file}`.\n");
        for name in names {
            body += &described(&source, name);
        }
    }
    super::page("File formats", "the types that are written", &body)
}

/// A section on one type of the source.
fn described(source: &str, name: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let is = |line: &&str| {
        [
            format!("pub struct {name} {{"),
            format!("pub enum {name} {{"),
        ]
        .contains(&(*line).to_owned())
    };
    let start = lines.iter().position(is).unwrap();
    let head = lines[..start]
        .iter()
        .rev()
        .take_while(|line| line.starts_with("///") || line.starts_with("#["));
    let head: Vec<&str> = head.copied().collect();
    let has = |word: &str| head.iter().any(|line| line.contains(word));
    let (kebab, snake) = (has("\"kebab-case\""), has("\"snake_case\""));
    let about: Vec<&str> = head
        .iter()
        .rev()
        .filter_map(|l| l.strip_prefix("/// "))
        .collect();
    let mut text = format!("\n### `{name}`\n\n");
    if !about.is_empty() {
        text += &format!("{}\n\n", about.join("\n"));
    }
    text += "| field | type | meaning |\n|---|---|---|\n";
    let mut help = String::new();
    let mut flat = false;
    let end = start + lines[start..].iter().position(|line| *line == "}").unwrap();
    for line in lines[start + 1..end]
        .iter()
        .filter_map(|l| l.strip_prefix("    "))
    {
        if let Some(words) = line.trim().strip_prefix("/// ") {
            help = format!("{help} {words}");
        } else if line.starts_with("#[serde(flatten)]") {
            flat = true;
        } else if let Some((field, kind)) =
            line.strip_prefix("pub ").and_then(|l| l.split_once(": "))
        {
            let field = if kebab {
                field.replace('_', "-")
            } else {
                field.to_owned()
            };
            let kind = kind.trim_end_matches(',');
            let field = if flat {
                "(its fields, here)".to_owned()
            } else {
                format!("`{field}`")
            };
            text += &format!("| {field} | `{kind}` | {} |\n", super::cell(&help));
            (help, flat) = (String::new(), false);
        } else if snake && line.starts_with(char::is_uppercase) {
            let end = line.find([' ', '(', ',']).unwrap_or(line.len());
            let (variant, rest) = line.split_at(end);
            let rest = rest.trim_matches([' ', ',', '(', ')', '{', '}']);
            let rest = rest.trim_start_matches("Box<").trim_end_matches('>');
            let kind = if rest.is_empty() {
                "object".to_owned()
            } else {
                format!("`{rest}`")
            };
            text += &format!(
                "| `\"event\": \"{}\"` | {kind} | {} |\n",
                variant.to_lowercase(),
                super::cell(&help)
            );
            help = String::new();
        } else if line.starts_with("    ") {
            // Fields of a variant: told as part of it.
            if let Some((field, kind)) = line.trim().split_once(": ") {
                let kind = kind.trim_end_matches(',');
                text += &format!("| – `{field}` | `{kind}` | {} |\n", super::cell(&help));
                help = String::new();
            }
        }
    }
    text
}

#[test]
fn a_type_is_read_from_its_source() {
    let source = "/// What it is.\n#[serde(rename_all = \"kebab-case\")]\npub struct One {\n    /// First\n    /// of all.\n    \
                  pub a_b: Option<u8>,\n}\n";
    let text = described(source, "One");
    assert!(
        text.contains("What it is.") && text.contains("| `a-b` | `Option<u8>` | First of all. |")
    );
}
