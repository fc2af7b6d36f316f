//! Datasets in the shape of SWE-bench: one instance an issue, as JSON lines or a JSON array.
//!
//! Everything that is wrong in a file is reported at once, with lines. Fields that are not known here
//! are kept.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// An issue and its repository at a base commit, with the golden patches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    pub instance_id: String,
    /// `owner/name`.
    pub repo: String,
    /// The old code.
    pub base_commit: String,
    /// The issue: title and body, and nothing that came after the fix.
    pub problem_statement: String,
    /// Comments from before the fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints_text: Option<String>,
    /// RFC 3339; of the pull request with the fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The repository's own version, which names its environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_setup_commit: Option<String>,
    /// The golden code patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The golden test patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_patch: Option<String>,
    /// Names of tests; written as a list or as a string that holds one.
    #[serde(
        default,
        rename = "FAIL_TO_PASS",
        deserialize_with = "names",
        skip_serializing_if = "Option::is_none"
    )]
    pub fail_to_pass: Option<Vec<String>>,
    #[serde(
        default,
        rename = "PASS_TO_PASS",
        deserialize_with = "names",
        skip_serializing_if = "Option::is_none"
    )]
    pub pass_to_pass: Option<Vec<String>>,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

const REQUIRED: [&str; 4] = ["instance_id", "repo", "base_commit", "problem_statement"];

#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    pub path: PathBuf,
    /// In the order of the file; ids are unique.
    pub instances: Vec<Instance>,
}

#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error("read {path}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("read {path}: {}", listed(.problems))]
    Content {
        path: PathBuf,
        problems: Vec<Problem>,
    },
}

/// Something wrong in a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Problems that an error's text names; the rest is counted.
const SHOWN: usize = 10;

fn listed(problems: &[Problem]) -> String {
    let shown: Vec<String> = problems
        .iter()
        .take(SHOWN)
        .map(Problem::to_string)
        .collect();
    let more = problems.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join("; "))
}

impl Dataset {
    pub fn read(path: &Path) -> Result<Dataset, DatasetError> {
        let failed = |source| DatasetError::Read {
            path: path.to_owned(),
            source,
        };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        match parse(&text) {
            Ok(instances) => Ok(Dataset {
                path: path.to_owned(),
                instances,
            }),
            Err(problems) => Err(DatasetError::Content {
                path: path.to_owned(),
                problems,
            }),
        }
    }

    pub fn get(&self, instance_id: &str) -> Option<&Instance> {
        self.instances.iter().find(|i| i.instance_id == instance_id)
    }
}

fn parse(text: &str) -> Result<Vec<Instance>, Vec<Problem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut problems = Vec::new();
    let values = if text.trim_start().starts_with('[') {
        array(text, &mut problems)
    } else {
        lines(text, &mut problems)
    };
    let mut instances: Vec<Instance> = Vec::new();
    let mut seen = std::collections::BTreeMap::new();
    for (line, value) in values {
        match instance(value) {
            Ok(instance) => {
                if let Some(first) = seen.insert(instance.instance_id.clone(), line) {
                    let message = format!(
                        "`{}` is there already, in line {first}",
                        instance.instance_id
                    );
                    problems.push(Problem { line, message });
                }
                instances.push(instance);
            }
            Err(message) => problems.push(Problem { line, message }),
        }
    }
    if instances.is_empty() && problems.is_empty() {
        let message = "there are no instances in it".to_owned();
        problems.push(Problem { line: 1, message });
    }
    problems.sort_by_key(|p| p.line);
    if problems.is_empty() {
        Ok(instances)
    } else {
        Err(problems)
    }
}

/// JSON lines; a line that is no JSON does not hide the next.
fn lines(text: &str, problems: &mut Vec<Problem>) -> Vec<(usize, Value)> {
    let mut values = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        if content.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(content) {
            Ok(value) => values.push((line, value)),
            Err(e) => problems.push(Problem {
                line,
                message: format!("it is not JSON: {}", reason(&e)),
            }),
        }
    }
    values
}

/// One array; values are read one by one to know where each begins.
fn array(text: &str, problems: &mut Vec<Problem>) -> Vec<(usize, Value)> {
    let mut values = Vec::new();
    let line_at = |offset: usize| text[..offset].matches('\n').count() + 1;
    let start = text.find('[').map_or(0, |i| i + 1);
    let mut at = start;
    loop {
        at += space(&text[at..]);
        if values.is_empty() && text[at..].starts_with(']') {
            break;
        }
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => values.push((line_at(at), value)),
            Some(Err(e)) => {
                let line = line_at(at) + e.line().saturating_sub(1);
                let message = format!("it is not JSON: {}", reason(&e));
                problems.push(Problem { line, message });
                return values;
            }
            None => {
                let message = "the array has no end".to_owned();
                problems.push(Problem {
                    line: line_at(at),
                    message,
                });
                return values;
            }
        }
        at += stream.byte_offset();
        at += space(&text[at..]);
        match text[at..].chars().next() {
            Some(',') => at += 1,
            Some(']') => break,
            other => {
                let message = match other {
                    Some(c) => format!("it is not JSON: expected `,` or `]`, found `{c}`"),
                    None => "the array has no end".to_owned(),
                };
                problems.push(Problem {
                    line: line_at(at),
                    message,
                });
                return values;
            }
        }
    }
    let rest = text.get(at + 1..).unwrap_or_default();
    if !rest.trim().is_empty() {
        let message = "there is something behind the array".to_owned();
        problems.push(Problem {
            line: line_at(at + 1 + space(rest)),
            message,
        });
    }
    values
}

fn space(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// What serde_json says, without the line that it counts itself.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} (column {})", error.column()),
        None => text,
    }
}

fn instance(value: Value) -> Result<Instance, String> {
    let Value::Object(fields) = &value else {
        return Err("it is not an object".to_owned());
    };
    let missing: Vec<&str> = REQUIRED
        .into_iter()
        .filter(|name| match fields.get(*name) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.trim().is_empty(),
            Some(_) => false,
        })
        .collect();
    if !missing.is_empty() {
        let id = fields
            .get("instance_id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let id = if id.is_empty() {
            String::new()
        } else {
            format!("`{id}` ")
        };
        return Err(format!("{id}lacks {}", missing.join(", ")));
    }
    serde_json::from_value(value).map_err(|e| e.to_string())
}

fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        List(Vec<String>),
        Text(String),
        Absent(()),
    }
    match Names::deserialize(deserializer) {
        Ok(Names::List(list)) => Ok(Some(list)),
        Ok(Names::Absent(())) => Ok(None),
        Ok(Names::Text(text)) if text.trim().is_empty() => Ok(None),
        Ok(Names::Text(text)) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|_| serde::de::Error::custom("a list of test names is not one")),
        Err(_) => Err(serde::de::Error::custom("a list of test names is not one")),
    }
}

#[cfg(test)]
mod tests;
