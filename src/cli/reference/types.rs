//! `file-formats.md`: the types that are written to files, read from their source: fields, types and doc comments.
//! They derive serde's traits alone; their source is what can be read without a schema.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

/// One kind of file, and the types whose content it holds.
struct Format {
    title: &'static str,
    what: &'static str,
    /// Source files, and the types in each that are described, in this order.
    types: &'static [(&'static str, &'static [&'static str])],
}

const FORMATS: [Format; 11] = [
    Format {
        title: "evidence.json",
        what: "What speaks for an accepted test. One JSON object, an `Evidence`.",
        types: &[
            (
                "agent/src/gate/evidence.rs",
                &[
                    "Evidence",
                    "TestEvidence",
                    "FixTrial",
                    "Review",
                    "ReviewVerdict",
                ],
            ),
            (
                "tools/src/outcomes/report.rs",
                &["Outcome", "Phase", "FailureClass", "Frame", "Place"],
            ),
        ],
    },
    Format {
        title: "trajectory.jsonl",
        what: "Everything that happened in a run. One JSON object a line, an `Event`.",
        types: &[
            (
                "agent/src/trajectory/event.rs",
                &[
                    "Event",
                    "Started",
                    "Purpose",
                    "NoReplyCause",
                    "Answer",
                    "FileState",
                ],
            ),
            ("agent/src/issues/mod.rs", &["Issue", "Comment"]),
            ("tools/src/tool.rs", &["ToolSpec"]),
            (
                "models/src/message.rs",
                &["Message", "ToolCall", "ToolResult"],
            ),
            ("models/src/lib.rs", &["Reply", "Usage", "Finish"]),
        ],
    },
    Format {
        title: "run.json of a run",
        what: "Settings, versions, isolation, outcome and usage. One JSON object, a `Record`.",
        types: &[
            ("agent/src/job.rs", &["Record"]),
            ("agent/src/approaches/given.rs", &["Given"]),
            ("sandboxes/src/environment.rs", &["Environment"]),
            ("agent/src/outcome.rs", &["Outcome", "Limit"]),
            ("agent/src/agent/budget.rs", &["RunUsage"]),
        ],
    },
    Format {
        title: "datasets",
        what: "What `testwright eval --dataset` reads: JSON lines, a JSON list, or Parquet, with SWE-bench's names. A row is an \
               `Instance`; other fields are left alone.",
        types: &[("evals/src/dataset.rs", &["Instance"])],
    },
    Format {
        title: "predictions",
        what: "What `testwright eval --predictions` reads: JSON lines or a JSON list. A row is a `Prediction`.",
        types: &[("evals/src/predictions.rs", &["Prediction"])],
    },
    Format {
        title: "results.jsonl",
        what: "Graded predictions. One JSON object a line, an `InstanceResult`.",
        types: &[
            (
                "evals/src/result.rs",
                &[
                    "InstanceResult",
                    "TestPair",
                    "Infrastructure",
                    "Seconds",
                    "Leakage",
                ],
            ),
            ("evals/src/verdict.rs", &["OldClass"]),
            ("evals/src/verdict/strict.rs", &["Strict"]),
            ("evals/src/verdict/official.rs", &["Swt", "Tdd"]),
        ],
    },
    Format {
        title: "report.json",
        what: "The figures of `report.md` and `report.html`. One JSON object, a `Report`. The folder's `run.json` is a `RunMetadata`.",
        types: &[
            ("evals/src/report.rs", &["Report"]),
            ("evals/src/report/run_metadata.rs", &["RunMetadata"]),
            ("evals/src/report/summary.rs", &["Summary"]),
            ("evals/src/report/details.rs", &["Details"]),
            ("evals/src/report/compare.rs", &["Comparison"]),
        ],
    },
    Format {
        title: "comparison.json and runs.jsonl",
        what: "What a comparison compares, a `Plan`; and what became of its runs, one JSON object a line, a `RunRecord`.",
        types: &[
            (
                "comparisons/src/compare/plan.rs",
                &[
                    "Plan",
                    "System",
                    "PlanLimits",
                    "PlannedInstance",
                    "PlannedGiven",
                ],
            ),
            (
                "comparisons/src/compare/run_record.rs",
                &["RunRecord", "RunStatus", "RunCost", "StageCost"],
            ),
        ],
    },
    Format {
        title: "report.json of a comparison",
        what: "The figures of its `report.md` and `report.html`. One JSON object, a `Report`.",
        types: &[
            ("comparisons/src/compare/report/mod.rs", &["Report"]),
            (
                "comparisons/src/compare/report/summary.rs",
                &["SystemSummary", "CostSummary", "Group"],
            ),
            ("comparisons/src/compare/report/score.rs", &["Score"]),
            (
                "comparisons/src/compare/report/pairs.rs",
                &["Pair", "Discordant", "Ablation"],
            ),
            (
                "comparisons/src/compare/report/overlap.rs",
                &["Overlap", "OverlapGroup"],
            ),
        ],
    },
    Format {
        title: "selection.json",
        what: "Code patches sorted by tests: `summaries`, of each set of tests, and `results`, of each patch.",
        types: &[(
            "evals/src/selection.rs",
            &["SelectionSummary", "Choice", "SelectionResult"],
        )],
    },
    Format {
        title: "testwright.toml [environment]",
        what: "How an environment is built, in the repository's own `testwright.toml` or a file named with `--config`: a `Recipe`.",
        types: &[("sandboxes/src/recipe.rs", &["Recipe", "Runner", "Service"])],
    },
];

pub fn page(root: &Path) -> String {
    let mut body = "Types are written as in the source: `Option<T>` may be `null` or left out, `Vec<T>` is a list, `BTreeMap` a map.\n\n\
                    `test.patch` is a unified diff for `git apply`.\n"
        .to_owned();
    for format in FORMATS {
        body += &format!("\n## {}\n\n{}\n", format.title, format.what);
        for (file, names) in format.types {
            let source = std::fs::read_to_string(root.join(file)).unwrap();
            for name in *names {
                body += &description(&source, name, file);
            }
        }
    }
    super::page("File formats", "the types that are written", &body)
}

/// The source of one type.
struct Definition<'s> {
    doc: String,
    /// What `#[serde(...)]` says before it.
    serde: String,
    is_enum: bool,
    lines: Vec<&'s str>,
}

impl<'s> Definition<'s> {
    fn of(source: &'s str, name: &str) -> Option<Self> {
        let lines: Vec<&str> = source.lines().collect();
        let start = lines.iter().position(|line| {
            *line == format!("pub struct {name} {{") || *line == format!("pub enum {name} {{")
        })?;
        let is_head = |line: &&&str| line.starts_with("///") || line.starts_with("#[");
        let head = lines[..start].iter().rev().take_while(is_head).count();
        let head = &lines[start - head..start];
        let docs: Vec<&str> = head.iter().filter_map(|l| l.strip_prefix("/// ")).collect();
        let length = lines[start..].iter().position(|line| *line == "}")?;
        Some(Definition {
            doc: docs.join("\n"),
            serde: head
                .iter()
                .filter(|l| l.starts_with("#["))
                .copied()
                .collect(),
            is_enum: lines[start].starts_with("pub enum"),
            lines: lines[start + 1..start + length]
                .iter()
                .filter_map(|line| line.strip_prefix("    "))
                .collect(),
        })
    }

    /// A name as it is written to the file.
    fn name_in_file(&self, name: &str) -> String {
        if self.serde.contains("\"kebab-case\"") {
            name.replace('_', "-")
        } else if self.serde.contains("\"lowercase\"") {
            name.to_lowercase()
        } else if self.serde.contains("\"snake_case\"") {
            snake_case(name)
        } else {
            name.to_owned()
        }
    }

    /// The field that says which variant it is.
    fn tag(&self) -> Option<&str> {
        self.serde.split_once("tag = \"")?.1.split('"').next()
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// A section on one type of the source.
fn description(source: &str, name: &str, file: &str) -> String {
    let definition =
        Definition::of(source, name).unwrap_or_else(|| panic!("{file}: no type `{name}`"));
    let mut text = format!("\n### `{name}`\n\n");
    if !definition.doc.is_empty() {
        text += &format!("{}\n\n", definition.doc);
    }
    text += if definition.is_enum && definition.tag().is_none() {
        "| value | meaning |\n|---|---|\n"
    } else {
        "| field | type | meaning |\n|---|---|---|\n"
    };
    let mut rows = Rows::default();
    for line in &definition.lines {
        if definition.is_enum {
            rows.variant_line(line, &definition);
        } else {
            rows.field_line(line, &definition);
        }
    }
    text + &rows.text
}

/// The rows of a type's table, and what was read for the next of them.
#[derive(Default)]
struct Rows {
    text: String,
    help: String,
    is_flat: bool,
    /// The field's name in the file, where serde has another one.
    rename: Option<String>,
}

impl Rows {
    /// Takes a line that belongs to a doc comment or an attribute.
    fn prelude(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(words) = line.strip_prefix("/// ") {
            self.help = format!("{} {words}", self.help);
        } else if line.starts_with("#[serde(flatten)]") {
            self.is_flat = true;
        } else if let Some((_, rest)) = line.split_once("rename = \"") {
            self.rename = rest.split('"').next().map(str::to_owned);
        }
        line.starts_with("//") || line.starts_with("#[")
    }

    fn row(&mut self, cells: &[&str]) {
        let help = super::cell(&std::mem::take(&mut self.help));
        let help = help.replace("[`", "`").replace("`]", "`");
        self.text += &format!("| {} | {help} |\n", cells.join(" | "));
        self.is_flat = false;
        self.rename = None;
    }

    fn field_line(&mut self, line: &str, definition: &Definition<'_>) {
        if self.prelude(line) {
            return;
        }
        if let Some((field, kind)) = line.strip_prefix("pub ").and_then(|l| l.split_once(": ")) {
            let field = if self.is_flat {
                "(its fields, here)".to_owned()
            } else {
                let renamed = self.rename.take();
                format!(
                    "`{}`",
                    renamed.unwrap_or_else(|| definition.name_in_file(field))
                )
            };
            self.row(&[&field, &format!("`{}`", kind.trim_end_matches(','))]);
        }
    }

    fn variant_line(&mut self, line: &str, definition: &Definition<'_>) {
        if self.prelude(line) {
            return;
        }
        if line.starts_with(char::is_uppercase) {
            let end = line.find([' ', '(', ',']).unwrap_or(line.len());
            let (variant, rest) = line.split_at(end);
            let variant = definition.name_in_file(variant);
            let rest = rest.trim_matches([' ', ',', '(', ')', '{', '}']);
            let rest = rest.trim_start_matches("Box<").trim_end_matches('>');
            match definition.tag() {
                None => self.row(&[&format!("`\"{variant}\"`")]),
                Some(tag) => {
                    let kind = match rest {
                        "" => String::new(),
                        rest => format!("`{rest}`"),
                    };
                    self.row(&[&format!("`\"{tag}\": \"{variant}\"`"), &kind]);
                }
            }
        } else if let Some((field, kind)) = line.trim().split_once(": ") {
            // Fields of a variant: shown as part of it.
            let kind = kind.trim_end_matches(',');
            self.row(&[&format!("– `{field}`"), &format!("`{kind}`")]);
        }
    }
}

#[test]
fn a_type_is_read_from_its_source() {
    let source = "/// What it is.\n#[serde(rename_all = \"kebab-case\")]\npub struct One {\n    /// First\n    /// of all.\n    \
                  pub a_b: Option<u8>,\n    #[serde(\n        rename = \"C\",\n    )]\n    pub c: u8,\n}\n#[serde(tag = \"event\", rename_all = \"snake_case\")]\npub enum Two {\n    /// Over.\n    \
                  OutOfTime { limit: u8 },\n    Message {\n        text: String,\n    },\n}\n\
                  #[serde(rename_all = \"lowercase\")]\npub enum Three {\n    Yes,\n}\n";
    let text = description(source, "One", "a.rs");
    assert!(
        text.contains("What it is.")
            && text.contains("| `a-b` | `Option<u8>` | First of all. |")
            && text.contains("| `C` | `u8` |  |"),
        "{text}"
    );
    let text = description(source, "Two", "a.rs");
    for row in [
        "| `\"event\": \"out_of_time\"` | `limit: u8` | Over. |",
        "| `\"event\": \"message\"` |  |  |",
        "| – `text` | `String` |  |",
    ] {
        assert!(text.contains(row), "{text}");
    }
    let text = description(source, "Three", "a.rs");
    assert!(
        text.contains("| value | meaning |") && text.contains("| `\"yes\"` |  |"),
        "{text}"
    );
}
