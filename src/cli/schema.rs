//! `testwright schema`: prints the JSON Schemas of the files that testwright reads and writes.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use testwright_evals::predictions::Prediction;
use testwright_evals::report::{GradingReport, RunMetadata};
use testwright_evals::selection::{Choice, PatchRank, SelectionResult, SelectionSummary};
use testwright_evals::{Instance, InstanceResult};
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::recipe::Recipe;

use super::output;
use testwright_agent::gate::Evidence;
use testwright_agent::job::Record;
use testwright_agent::trajectory::Event;
use testwright_comparisons::check::CheckRecord;
use testwright_comparisons::compare::report::ComparisonReport;
use testwright_comparisons::compare::{Plan, RunRecord};
use testwright_config::error::{Error, Result};
use testwright_config::settings::nearest;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a type; without it, the names are listed
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Adds a type to a generator, and returns its schema, which refers to the added definition.
type Subschema = fn(&mut SchemaGenerator) -> Schema;

/// A file format.
pub(super) struct Format {
    /// Heading on the reference page.
    pub title: &'static str,
    /// Description of the file.
    pub what: &'static str,
    /// Types of its content, by name.
    pub types: &'static [(&'static str, Subschema)],
}

pub(super) fn subschema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// All file formats, in the order of the reference page.
pub(super) static FORMATS: [Format; 12] = [
    Format {
        title: "evidence.json",
        what: "Evidence for an accepted test. One JSON object, an `Evidence`.",
        types: &[("evidence", subschema::<Evidence>)],
    },
    Format {
        title: "trajectory.jsonl",
        what: "Everything that happened in a run. JSON lines; each line is an `Event`.",
        types: &[("trajectory", subschema::<Event>)],
    },
    Format {
        title: "run.json of a run",
        what: "Settings, versions, isolation, outcome and usage. One JSON object, a `Record`. Its `environment` is an `Environment`.",
        types: &[
            ("run", subschema::<Record>),
            ("environment", subschema::<Environment>),
        ],
    },
    Format {
        title: "datasets",
        what: "Input of `testwright eval --dataset`: JSON lines, a JSON list, or Parquet, with the field names of SWE-bench. Each \
               row is an `Instance`; other fields are ignored.",
        types: &[("dataset", subschema::<Instance>)],
    },
    Format {
        title: "predictions",
        what: "Input of `testwright eval --predictions`: JSON lines or a JSON list. Each row is a `Prediction`.",
        types: &[("prediction", subschema::<Prediction>)],
    },
    Format {
        title: "results.jsonl",
        what: "Graded predictions. JSON lines; each line is an `InstanceResult`.",
        types: &[("results", subschema::<InstanceResult>)],
    },
    Format {
        title: "checks.jsonl",
        what: "Predictions checked by `testwright check --dataset`. JSON lines; each line is a `CheckRecord`. `testwright check --json` prints \
               a list of `CheckEvidence`, each with the name of its `test`.",
        types: &[("checks", subschema::<CheckRecord>)],
    },
    Format {
        title: "report.json",
        what: "The figures of `report.md` and `report.html`. One JSON object, a `GradingReport`. The folder's `run.json` is a `RunMetadata`.",
        types: &[
            ("report", subschema::<GradingReport>),
            ("grading-run", subschema::<RunMetadata>),
        ],
    },
    Format {
        title: "comparison.json and runs.jsonl",
        what: "The plan of a comparison, a `Plan`; and the results of its runs, as JSON lines of type `RunRecord`.",
        types: &[
            ("comparison", subschema::<Plan>),
            ("comparison-run", subschema::<RunRecord>),
        ],
    },
    Format {
        title: "report.json of a comparison",
        what: "The figures of its `report.md` and `report.html`. One JSON object, a `ComparisonReport`.",
        types: &[("comparison-report", subschema::<ComparisonReport>)],
    },
    Format {
        title: "selection.json",
        what: "Code patches selected by tests: `summaries` for each set of tests, `ranking` for each patch by all sets, `choices` for \
               each set and several patches, and `results` for each set and patch.",
        types: &[
            ("selection-summary", subschema::<SelectionSummary>),
            ("selection-ranking", subschema::<PatchRank>),
            ("selection-choice", subschema::<Choice>),
            ("selection", subschema::<SelectionResult>),
        ],
    },
    Format {
        title: "testwright.toml [environment]",
        what: "The build of an environment, a `Recipe`, in the repository's own `testwright.toml` or a file given with `--config`.",
        types: &[("recipe", subschema::<Recipe>)],
    },
];

pub(super) fn run(args: &Args) -> Result<()> {
    let Some(name) = &args.name else {
        let width = types().map(|(_, (name, _))| name.len()).max();
        let width = width.unwrap_or_default();
        let line = |(_, (name, _)): (&Format, Named)| format!("{name:<width$}  {}\n", file(name));
        output::print_stdout(types().map(line).collect::<String>());
        return Ok(());
    };
    let Some((format, named)) = types().find(|(_, (other, _))| other == name) else {
        let names: Vec<&str> = types().map(|(_, (name, _))| name).collect();
        let hint = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "list the names with `testwright schema`".to_owned(),
        };
        return Err(Error::usage(format!("find the schema `{name}`"))
            .cause("there is no type of that name")
            .hint(hint));
    };
    output::print_json(&document(format, named))
}

type Named = (&'static str, Subschema);

fn types() -> impl Iterator<Item = (&'static Format, Named)> {
    let named = |format: &'static Format| format.types.iter().map(move |named| (format, *named));
    FORMATS.iter().flat_map(named)
}

/// Returns the file of a type, and the command that writes or reads it.
fn file(name: &str) -> &'static str {
    match name {
        "evidence" => "evidence.json of `run`",
        "trajectory" => "lines of trajectory.jsonl of `run`",
        "run" => "run.json of `run`",
        "environment" => "`environment` in run.json of `run`",
        "dataset" => "rows of a dataset for `eval`",
        "prediction" => "rows of predictions for `eval`",
        "results" => "lines of results.jsonl of `eval`",
        "checks" => "lines of checks.jsonl of `check --dataset`",
        "report" => "report.json of `eval`",
        "grading-run" => "run.json of `eval`",
        "comparison" => "comparison.json of `compare`",
        "comparison-run" => "lines of runs.jsonl of `compare`",
        "comparison-report" => "report.json of `compare`",
        "selection-summary" => "`summaries` in selection.json of `select`",
        "selection-ranking" => "`ranking` in selection.json of `select`",
        "selection-choice" => "`choices` in selection.json of `select`",
        "selection" => "`results` in selection.json of `select`",
        "recipe" => "[environment] in testwright.toml",
        _ => "",
    }
}

/// Returns a complete JSON Schema of a type.
fn document(format: &Format, (_, subschema): Named) -> Value {
    let mut generator = SchemaGenerator::default();
    let schema = subschema(&mut generator);
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format.title,
        "description": format.what,
    });
    if let (Value::Object(document), Value::Object(schema)) = (&mut document, schema.to_value()) {
        document.extend(schema);
    }
    document["$defs"] = Value::Object(generator.take_definitions(true));
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_name_has_suggestion() {
        let hint = |name: &str| {
            let name = Some(name.to_owned());
            run(&Args { name }).err().and_then(|error| error.hint)
        };
        assert_eq!(hint("datset").as_deref(), Some("did you mean `dataset`?"));
        let unlike = hint("zzzzzz");
        assert!(unlike.is_some_and(|hint| hint.contains("`testwright schema`")));
    }

    #[test]
    fn schemas_contain_everything_they_refer_to() {
        let (mut names, mut files) = (Vec::new(), vec![""]);
        for (format, named) in types() {
            assert!(!names.contains(&named.0), "{}", named.0);
            names.push(named.0);
            assert!(!files.contains(&file(named.0)), "{}", named.0);
            files.push(file(named.0));
            let document = document(format, named);
            let text = document.to_string();
            for reference in text.split("\"#/$defs/").skip(1) {
                let name = reference.split('"').next().unwrap_or_default();
                assert!(document["$defs"].get(name).is_some(), "{}: {name}", named.0);
            }
            assert!(document["$ref"].is_string(), "{}", named.0);
        }
    }
}
