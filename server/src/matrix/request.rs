//! What a matrix is asked for, as clients send it and as the store keeps it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::allow_list::AllowList;
use crate::fields::check_name;
use crate::request::{allowed_repository, check_revision};
use crate::store::{JobStatus, RunId, Store, StoredRun};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// Sets of tests, candidate patches, and bytes of each.
const MAX_TESTS: usize = 20;
const MAX_PATCHES: usize = 50;
const MAX_PATCH_LEN: usize = 1 << 20;
/// Characters of a name, and bytes of an issue.
const MAX_NAME_LEN: usize = 100;
const MAX_ISSUE_LEN: usize = 1 << 20;

/// Candidate patches are to be tried with tests.
#[derive(
    Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct MatrixRequest {
    /// The repository: a URL, or a folder of the server; needed where no test is that of a run. The server's list says which
    /// are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The old code: a commit, tag or branch. Default: that of the first run, else HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What the patches are to fix, for whoever looks at the matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1_048_576)]
    pub issue: Option<String>,
    /// Sets of tests, up to 20.
    #[schema(min_items = 1, max_items = 20)]
    pub tests: Vec<MatrixTests>,
    /// Candidate code patches, up to 50.
    #[schema(min_items = 1, max_items = 50)]
    pub patches: Vec<NamedPatch>,
}

/// Tests as a patch, or those of a run.
#[derive(
    Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct MatrixTests {
    /// Default: the id of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Adds or changes tests of the old code, for `git apply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Id of an accepted run, in place of a patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A patch of the old code, for `git apply`.
#[derive(
    Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct NamedPatch {
    pub name: String,
    pub patch: String,
}

/// What is stored: complete, and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixInput {
    pub repository: String,
    pub commit: Option<String>,
    pub issue: Option<String>,
    pub tests: Vec<NamedPatch>,
    pub patches: Vec<NamedPatch>,
}

fn refused(cause: impl std::fmt::Display) -> Error {
    Error::usage("read what is to be tried").cause(cause)
}

impl MatrixRequest {
    /// What is worked on, where it can be.
    pub async fn resolve(
        &self,
        store: &Store,
        settings: &Settings,
        allowed: &AllowList,
    ) -> Result<MatrixInput> {
        if !(1..=MAX_TESTS).contains(&self.tests.len()) {
            return Err(refused(format!(
                "there are {} sets of tests, and 1 to {MAX_TESTS} are tried",
                self.tests.len()
            )));
        }
        if !(1..=MAX_PATCHES).contains(&self.patches.len()) {
            return Err(refused(format!(
                "there are {} patches, and 1 to {MAX_PATCHES} are tried",
                self.patches.len()
            )));
        }
        if self
            .issue
            .as_ref()
            .is_some_and(|issue| issue.len() > MAX_ISSUE_LEN)
        {
            return Err(refused(format!(
                "the issue has more than {MAX_ISSUE_LEN} bytes"
            )));
        }
        let (mut tests, mut first_run) = (Vec::new(), None);
        for given in &self.tests {
            let (named, run) = given.resolve(store).await?;
            tests.push(named);
            first_run = first_run.or(run);
        }
        check_all("tests", &tests)?;
        check_all("patches", &self.patches)?;
        let of_run = first_run.as_ref().map(|run| run.repository.as_str());
        let named = self.repository.as_deref().or(of_run);
        let repository = allowed_repository(self.issue.as_deref(), named, settings, allowed)?;
        let commit = match &self.commit {
            Some(commit) => Some(commit.clone()),
            None => first_run.and_then(|run| {
                let record = run.record_value();
                record["commit"].as_str().map(str::to_owned)
            }),
        };
        if let Some(commit) = &commit {
            check_revision(commit)?;
        }
        Ok(MatrixInput {
            repository,
            commit,
            issue: self.issue.clone(),
            tests,
            patches: self.patches.clone(),
        })
    }
}

impl MatrixTests {
    async fn resolve(&self, store: &Store) -> Result<(NamedPatch, Option<StoredRun>)> {
        match (&self.patch, &self.run) {
            (Some(patch), None) => {
                let name = self.name.clone();
                let name = name.ok_or_else(|| refused("a set of tests has no name"))?;
                let patch = patch.clone();
                Ok((NamedPatch { name, patch }, None))
            }
            (None, Some(id)) => {
                check_name("tests", id)?;
                let found = match RunId::parse(id) {
                    Some(id) => store.run(&id).await?,
                    None => None,
                };
                let run = found.ok_or_else(|| refused(format!("there is no run {id:?}")))?;
                let patch = run
                    .patch
                    .clone()
                    .filter(|_| run.status == JobStatus::Accepted);
                let Some(patch) = patch else {
                    return Err(refused(format!(
                        "run {id} has no accepted test: it is {}",
                        run.status.as_str()
                    )));
                };
                let name = self.name.clone().unwrap_or_else(|| id.clone());
                Ok((NamedPatch { name, patch }, Some(run)))
            }
            _ => Err(refused(
                "a set of tests is a patch or a run, and one of them is neither or both",
            )
            .hint("give each of `tests` either `patch` or `run`")),
        }
    }
}

fn check_all(what: &str, all: &[NamedPatch]) -> Result<()> {
    let mut names = BTreeSet::new();
    for NamedPatch { name, patch } in all {
        check_name(what, name)?;
        if !(1..=MAX_NAME_LEN).contains(&name.chars().count()) {
            return Err(refused(format!(
                "a name of the {what} is not a line of 1 to {MAX_NAME_LEN} characters"
            )));
        }
        if !names.insert(name) {
            return Err(refused(format!("two of the {what} are called {name:?}")));
        }
        if patch.len() > MAX_PATCH_LEN || patch.contains('\0') {
            return Err(refused(format!(
                "{name:?} of the {what} is not a text of at most {MAX_PATCH_LEN} bytes"
            )));
        }
    }
    Ok(())
}
