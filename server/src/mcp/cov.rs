//! `cov`: the lines of a repository that test files run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::cases::{CaseCoverage, FileLines, cov};
use testwright_tools::coverage::ranges;

use super::cases::{CaseInput, CaseVerdict, cases, open_place, options, unless_cancelled};
use super::service_tool::{CallError, Effects, Service, ServiceCall};
use crate::fields::check_path;

/// Maximum number of files per case in the text.
const MAX_SHOWN_FILES: usize = 12;

pub(super) struct Cov;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CovArgs {
    /// Repository: a URL, or a folder on the server. The server must allow it.
    repository: Option<String>,
    /// Commit, tag or branch. Default: HEAD.
    commit: Option<String>,
    /// Test files. They run independently of each other.
    cases: Vec<CaseInput>,
    /// Whether to return the lines of each test. Default: false.
    #[serde(default)]
    contexts: bool,
    /// Files of the repository to report. Default: all.
    #[serde(default)]
    files: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Covered {
    /// Cases, in the order of the request.
    cases: Vec<CoveredCase>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CoveredCase {
    #[serde(flatten)]
    verdict: CaseVerdict,
    /// Files with executed lines, by path, without the case's own file. In a missing file, nothing ran.
    files: BTreeMap<String, CoveredFile>,
    /// Lines that each test ran, such as `3-5,9`, by node id and path.
    contexts: BTreeMap<String, BTreeMap<String, String>>,
    /// Reason why more lines may have run.
    problem: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CoveredFile {
    /// Executed statements, by their first lines: `3-5,9`.
    hit: String,
    /// Missed statements, in the same format.
    missed: String,
    /// Share of executed statements, from 0 to 1.
    rate: f64,
}

#[async_trait::async_trait]
impl Service for Cov {
    type Args = CovArgs;
    type Output = Covered;

    const NAME: &'static str = "cov";
    const TITLE: &'static str = "Measure line coverage";
    const DESCRIPTION: &'static str = "Runs test files on the current code of a Python repository, many in one call, and reports which lines of which files \
                               each of them runs and misses, whatever its outcome. The repository stays unchanged.";
    const EFFECTS: Effects = Effects::Reads;

    async fn run(call: &ServiceCall<'_>, args: CovArgs) -> Result<(String, Covered), CallError> {
        let cases = cases(&args.cases)?;
        for file in &args.files {
            check_path("files", file)?;
        }
        let options = options(None, args.contexts);
        let (repository, commit) = (args.repository.as_deref(), args.commit.as_deref());
        let (place, _room) = open_place(call, repository, commit).await?;
        let covered = unless_cancelled(call, cov(&place, &cases, &options)).await?;
        let covered: Vec<CoveredCase> = (covered.iter())
            .map(|case| CoveredCase::from_coverage(case, &args.files))
            .collect();
        let text: Vec<String> = covered.iter().map(CoveredCase::text).collect();
        Ok((text.join("\n"), Covered { cases: covered }))
    }
}

impl CoveredCase {
    fn from_coverage(case: &CaseCoverage, requested_paths: &[String]) -> CoveredCase {
        let is_requested =
            |path: &String| requested_paths.is_empty() || requested_paths.contains(path);
        let files = case.files.iter().filter(|(path, _)| is_requested(path));
        let contexts = case.contexts.iter().map(|(test, lines)| {
            let lines = lines.iter().filter(|(path, _)| is_requested(path));
            let lines =
                lines.map(|(path, lines)| (path.clone(), ranges(lines.iter().copied()).join(",")));
            (test.clone(), lines.collect())
        });
        CoveredCase {
            verdict: CaseVerdict::from_verification(&case.verification),
            files: files
                .map(|(path, lines)| (path.clone(), CoveredFile::from_lines(lines)))
                .collect(),
            contexts: contexts.collect(),
            problem: case.problem.clone(),
        }
    }

    /// Formats the coverage as text for a model.
    fn text(&self) -> String {
        let mut text = self.verdict.line();
        if let Some(problem) = &self.problem {
            text.push_str(&format!("\n  more lines may have run: {problem}"));
        }
        for (path, lines) in self.files.iter().take(MAX_SHOWN_FILES) {
            let rate = lines.rate * 100.0;
            text.push_str(&format!("\n  {path}: {rate:.0} %"));
            if !lines.missed.is_empty() {
                text.push_str(&format!(", missed {}", lines.missed));
            }
        }
        if self.files.len() > MAX_SHOWN_FILES {
            let more = self.files.len() - MAX_SHOWN_FILES;
            text.push_str(&format!("\n  {more} more files; choose files with `files`"));
        }
        text
    }
}

impl CoveredFile {
    fn from_lines(lines: &FileLines) -> CoveredFile {
        CoveredFile {
            hit: ranges(lines.hit.iter().copied()).join(","),
            missed: ranges(lines.missed.iter().copied()).join(","),
            rate: lines.rate(),
        }
    }
}
