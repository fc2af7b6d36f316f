//! Datasets in the format of SWE-bench and its derivatives (Lite, Verified, SWT-bench, TDD-Bench-Verified). Each
//! instance is an issue, and the file is JSON lines, a JSON array, or Parquet.
//!
//! Unknown fields are preserved.

mod formats;
mod python_literals;
mod selection;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use testwright_tools::tools::count;

use crate::records::{Content, File, Problem, RecordsError};
use crate::untrusted_text::{self, NameError};

pub(crate) use selection::Patterns;
pub use selection::{Selection, SelectionError, Shard, ShardError};

/// An issue and its repository at a base commit, with the golden patches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Instance {
    /// Id of the instance, unique in its dataset.
    pub instance_id: String,
    /// Repository as `owner/name`.
    pub repo: String,
    /// Commit of the old code.
    pub base_commit: String,
    /// The issue: title and body, without anything written after the fix.
    pub problem_statement: String,
    /// Comments written before the fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints_text: Option<String>,
    /// Date of the pull request with the fix, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Version of the repository, which identifies its environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Commit whose environment SWE-bench builds for the instance. It is preserved, but not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_setup_commit: Option<String>,
    /// The golden code patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The golden test patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_patch: Option<String>,
    /// Names of tests that fail without the golden patch and pass with it: a list, or a string with a list in JSON or
    /// Python syntax.
    #[serde(
        default,
        rename = "FAIL_TO_PASS",
        deserialize_with = "names",
        skip_serializing_if = "Option::is_none"
    )]
    pub fail_to_pass: Option<Vec<String>>,
    /// Names of tests that pass with and without the golden patch, in the same form as `FAIL_TO_PASS`.
    #[serde(
        default,
        rename = "PASS_TO_PASS",
        deserialize_with = "names",
        skip_serializing_if = "Option::is_none"
    )]
    pub pass_to_pass: Option<Vec<String>>,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

const REQUIRED: [&str; 4] = ["instance_id", "repo", "base_commit", "problem_statement"];

/// A dataset, as read from a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dataset {
    /// Path of the file.
    pub path: PathBuf,
    /// SHA-256 of the file, in hex; `None` if the records come from no file.
    pub sha256: Option<String>,
    /// Instances in the order of the file; ids are unique.
    pub instances: Vec<Instance>,
}

impl Dataset {
    /// Reads a dataset file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or contains invalid or duplicate instances, or none.
    pub fn read(path: &Path) -> Result<Dataset, RecordsError> {
        let (file, content) = File::read(path)?;
        let instances = parse(content, file.place).map_err(|problems| file.wrong(problems))?;
        Ok(Dataset {
            path: path.to_owned(),
            sha256: Some(file.sha256),
            instances,
        })
    }

    /// Builds a dataset from records without a file, named `name`. Problems refer to positions in the list.
    ///
    /// # Errors
    ///
    /// Fails if there are invalid or duplicate instances, or none.
    pub fn of_records(name: &str, records: Vec<Value>) -> Result<Dataset, RecordsError> {
        let (path, place) = (PathBuf::from(name), "instance");
        match parse(Content::Records((1..).zip(records).collect()), place) {
            Ok(instances) => Ok(Dataset {
                path,
                sha256: None,
                instances,
            }),
            Err(problems) => Err(RecordsError::Content {
                path,
                problems,
                place,
            }),
        }
    }

    /// Parses the bytes of a file, named `name`, to records that are not checked as instances.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be parsed, or a record is not an object.
    pub fn records_in(name: &str, bytes: Vec<u8>) -> Result<Vec<Map<String, Value>>, RecordsError> {
        let (file, content) = File::of_bytes(Path::new(name), bytes)?;
        let (mut records, mut problems) = (Vec::new(), Vec::new());
        content.each(&mut problems, &mut |_, value| match value {
            Value::Object(fields) => {
                records.push(fields);
                Ok(())
            }
            _ => Err(InstanceError::NotAnObject.into()),
        });
        match problems.is_empty() {
            true => Ok(records),
            false => Err(file.wrong(problems)),
        }
    }

    /// Checks that all instances have a code patch. Without one there is no new code, and every test would fail on it.
    ///
    /// # Errors
    ///
    /// Fails with the number of instances that have none, and the first of them.
    pub fn require_code_patches(&self) -> Result<(), RecordsError> {
        let lacks_patch = |instance: &&Instance| is_blank(instance.patch.as_deref());
        self.require(
            lacks_patch,
            "code patch in `patch`, so tests cannot be run on the new code",
        )
    }

    /// Checks that all instances have golden tests.
    ///
    /// # Errors
    ///
    /// Fails with the number of instances that have none, and the first of them.
    pub fn require_test_patches(&self) -> Result<(), RecordsError> {
        let lacks_patch = |instance: &&Instance| is_blank(instance.test_patch.as_deref());
        self.require(lacks_patch, "golden tests in `test_patch`")
    }

    /// Fails if an instance lacks something, which `what` names.
    fn require(
        &self,
        is_lacking: impl Fn(&&Instance) -> bool,
        what: &str,
    ) -> Result<(), RecordsError> {
        let lacking = self.instances.iter().filter(is_lacking);
        let lacking: Vec<&str> = lacking.map(|i| i.instance_id.as_str()).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let message = self.lacking_message(&lacking, what, 1);
        Err(RecordsError::unsuitable(&self.path, message))
    }

    /// Says that instances have none of something, and names at most `named` of them.
    pub fn lacking_message(&self, ids: &[&str], what: &str, named: usize) -> String {
        let total = count(self.instances.len(), "instance");
        let has = if ids.len() == 1 { "has" } else { "have" };
        let examples = ids[..ids.len().min(named)].join(", ");
        let more = if ids.len() > named { ", …" } else { "" };
        format!("{} of {total} {has} no {what}: {examples}{more}", ids.len())
    }

    /// Returns the instance with this id.
    pub fn get(&self, instance_id: &str) -> Option<&Instance> {
        self.instances.iter().find(|i| i.instance_id == instance_id)
    }
}

fn is_blank(text: Option<&str>) -> bool {
    text.unwrap_or_default().trim().is_empty()
}

fn parse(content: Content, place: &str) -> Result<Vec<Instance>, Vec<Problem>> {
    let mut problems = Vec::new();
    let values = content.records(&mut problems);
    let mut instances: Vec<Instance> = Vec::new();
    let mut first_lines: BTreeMap<String, usize> = BTreeMap::new();
    for (line, value) in values {
        match instance(value) {
            Ok(instance) => {
                let id = &instance.instance_id;
                if let Some(first) = first_lines.get(id) {
                    let message = format!("duplicate instance_id `{id}`, first in {place} {first}");
                    problems.push(Problem { line, message });
                } else {
                    first_lines.insert(id.clone(), line);
                }
                instances.push(instance);
            }
            Err(error) => problems.push(Problem::new(line, error)),
        }
    }
    if instances.is_empty() && problems.is_empty() {
        let message = "the file contains no instances".to_owned();
        problems.push(Problem { line: 0, message });
    }
    problems.sort_by_key(|p| p.line);
    if problems.is_empty() {
        Ok(instances)
    } else {
        Err(problems)
    }
}

/// An error in a record of a dataset.
#[derive(Debug, thiserror::Error)]
enum InstanceError {
    #[error("the record is not a JSON object")]
    NotAnObject,
    #[error("{}missing fields: {}", if .id.is_empty() { String::new() } else { format!("`{id}`: ") }, .fields.join(", "))]
    Lacks {
        id: String,
        fields: Vec<&'static str>,
    },
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    // An invalid id cannot be quoted.
    #[error("`instance_id` {0}")]
    Id(#[source] NameError),
    #[error("`{id}`: {source}")]
    Field { id: String, source: FieldError },
}

#[derive(Debug, thiserror::Error)]
enum FieldError {
    #[error("`repo` is not OWNER/NAME")]
    Repository,
    #[error("`base_commit` is not the hash of a commit")]
    Commit,
    #[error("`{0}` has more than {MAX_TESTS} tests")]
    TooManyTests(&'static str),
    #[error("`{0}` contains a name longer than {max} KiB", max = MAX_TEST_NAME_BYTES >> 10)]
    LongTest(&'static str),
}

fn instance(value: Value) -> Result<Instance, InstanceError> {
    let Value::Object(mut fields) = value else {
        return Err(InstanceError::NotAnObject);
    };
    formats::adapt(&mut fields);
    let missing: Vec<&'static str> = REQUIRED
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
        return Err(InstanceError::Lacks {
            id: id.to_owned(),
            fields: missing,
        });
    }
    let instance: Instance = serde_json::from_value(Value::Object(fields))?;
    untrusted_text::check_name(&instance.instance_id).map_err(InstanceError::Id)?;
    instance.check().map_err(|source| InstanceError::Field {
        id: instance.instance_id.clone(),
        source,
    })?;
    Ok(instance)
}

/// Maximum number of test names in a list, and maximum bytes of a name.
const MAX_TESTS: usize = 100_000;
const MAX_TEST_NAME_BYTES: usize = 64 << 10;

impl Instance {
    /// Checks the fields that become paths, addresses, image names and arguments of git.
    fn check(&self) -> Result<(), FieldError> {
        if !is_repository(&self.repo) {
            return Err(FieldError::Repository);
        }
        if !is_hash(&self.base_commit) {
            return Err(FieldError::Commit);
        }
        for (name, list) in [
            ("FAIL_TO_PASS", &self.fail_to_pass),
            ("PASS_TO_PASS", &self.pass_to_pass),
        ] {
            let list = list.as_deref().unwrap_or_default();
            if list.len() > MAX_TESTS {
                return Err(FieldError::TooManyTests(name));
            }
            if list.iter().any(|test| test.len() > MAX_TEST_NAME_BYTES) {
                return Err(FieldError::LongTest(name));
            }
        }
        Ok(())
    }
}

/// Returns whether the text is `owner/name` in the characters that forges allow, and safe as a folder name and an
/// argument.
pub fn is_repository(repo: &str) -> bool {
    let is_fit = |part: &str| {
        !part.is_empty()
            && part.len() <= 100
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    repo.split_once('/')
        .is_some_and(|(owner, name)| is_fit(owner) && is_fit(name))
}

/// Returns whether the text is a full or abbreviated SHA-1 or SHA-256 hash. Branch names are refused because they move,
/// and other revision syntax because git would interpret it.
fn is_hash(commit: &str) -> bool {
    (4..=64).contains(&commit.len()) && commit.bytes().all(|b| b.is_ascii_hexdigit())
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
            .ok()
            .or_else(|| python_literals::python_list(&text))
            .map(Some)
            .ok_or_else(|| serde::de::Error::custom("invalid list of test names")),
        Err(_) => Err(serde::de::Error::custom("invalid list of test names")),
    }
}

#[cfg(test)]
mod tests;
