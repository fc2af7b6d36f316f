//! The request for a matrix, as clients send it and as the store keeps it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::allow_list::AllowList;
use crate::fields::{MAX_ISSUE_LEN, MAX_NAME_LEN, MAX_PATCH_LEN, check_count, check_name};
use crate::request::{allowed_repository, check_revision};
use crate::store::{JobStatus, Store, StoredRun};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// Maximum numbers of sets of tests and of candidate patches.
const MAX_TESTS: usize = 20;
const MAX_PATCHES: usize = 50;

/// A request to run tests on candidate patches.
#[derive(
    Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct MatrixRequest {
    /// Repository: a URL, or a folder on the server. Required unless a set of tests comes from a run. The server must
    /// allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Commit, tag or branch of the old code. Default: the commit of the first run, otherwise HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Issue that the patches should fix, to show with the matrix.
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

/// A set of tests: a patch, or the test of a run.
#[derive(
    Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct MatrixTests {
    /// Name of the set. Default: the id of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Patch for the old code that adds or changes tests, for `git apply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Id of an accepted run, instead of a patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A patch for the old code, for `git apply`.
#[derive(
    Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct NamedPatch {
    /// Name of the patch, unique in the request.
    pub name: String,
    /// Patch in the unified format.
    pub patch: String,
}

/// The complete and checked request, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixInput {
    /// Repository: a URL, or a folder on the server.
    pub repository: String,
    /// Commit, tag or branch of the old code; `None` for HEAD.
    pub commit: Option<String>,
    /// Issue that the patches should fix, if given.
    pub issue: Option<String>,
    /// Sets of tests, as patches.
    pub tests: Vec<NamedPatch>,
    /// Candidate code patches.
    pub patches: Vec<NamedPatch>,
}

fn refused(cause: impl std::fmt::Display) -> Error {
    Error::usage("read the request").cause(cause)
}

impl MatrixRequest {
    /// Checks the request and fills in tests and defaults from runs.
    ///
    /// # Errors
    ///
    /// Fails with a usage error if the request is invalid or a repository is not allowed, or if the database query fails.
    pub async fn resolve(
        &self,
        store: &Store,
        settings: &Settings,
        allowed: &AllowList,
    ) -> Result<MatrixInput> {
        check_count("sets of tests", self.tests.len(), MAX_TESTS)?;
        check_count("patches", self.patches.len(), MAX_PATCHES)?;
        let issue_len = self.issue.as_ref().map_or(0, String::len);
        if issue_len > MAX_ISSUE_LEN {
            return Err(refused(format!(
                "the issue has more than {MAX_ISSUE_LEN} bytes"
            )));
        }
        let (mut tests, mut first_run) = (Vec::new(), None);
        for tests_input in &self.tests {
            let (tests_patch, run) = tests_input.resolve(store).await?;
            tests.push(tests_patch);
            first_run = first_run.or(run);
        }
        check_all("tests", &tests)?;
        check_all("patches", &self.patches)?;
        let of_run = first_run.as_ref().map(|run| run.repository.as_str());
        let requested_repository = self.repository.as_deref().or(of_run);
        let repository = allowed_repository(
            self.issue.as_deref(),
            requested_repository,
            settings,
            allowed,
        )?;
        let commit = match &self.commit {
            Some(commit) => Some(commit.clone()),
            None => first_run.and_then(|run| {
                let record = run.record_value();
                record["commit"].as_str().map(str::to_owned)
            }),
        };
        commit.as_deref().map(check_revision).transpose()?;
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
                let run = store.run(id).await?;
                let run = run.ok_or_else(|| refused(format!("no run has the id {id:?}")))?;
                let patch = run
                    .patch
                    .clone()
                    .filter(|_| run.status == JobStatus::Accepted);
                let Some(patch) = patch else {
                    return Err(refused(format!(
                        "run {id} has no accepted test: its status is {}",
                        run.status.as_str()
                    )));
                };
                let name = self.name.clone().unwrap_or_else(|| id.clone());
                Ok((NamedPatch { name, patch }, Some(run)))
            }
            _ => Err(
                refused("a set of tests has neither a patch nor a run, or both")
                    .hint("set either `patch` or `run` for each item of `tests`"),
            ),
        }
    }
}

fn check_all(what: &str, all: &[NamedPatch]) -> Result<()> {
    let mut names = BTreeSet::new();
    for NamedPatch { name, patch } in all {
        check_name(what, name)?;
        if !(1..=MAX_NAME_LEN).contains(&name.chars().count()) {
            return Err(refused(format!(
                "a name in `{what}` is not a line of 1 to {MAX_NAME_LEN} characters"
            )));
        }
        if !names.insert(name) {
            return Err(refused(format!(
                "two items of `{what}` have the name {name:?}"
            )));
        }
        if patch.len() > MAX_PATCH_LEN || patch.contains('\0') {
            return Err(refused(format!(
                "{name:?} in `{what}` is not a text of at most {MAX_PATCH_LEN} bytes"
            )));
        }
    }
    Ok(())
}
