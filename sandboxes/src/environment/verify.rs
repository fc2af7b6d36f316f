//! Verification of a new environment.
//!
//! Some test files from all over the repository are collected, and some of their tests run as the tools will run them:
//! without network, as the tools' user. Packages that they lack are installed if their names are beyond doubt. It also
//! searches the installed packages for a copy of the code under test, which would run instead.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Environment;
use super::build::Build;
use super::missing;
use super::project_tests;
use super::smoke_test::{self, Request, SmokeTestReport};
use super::steps::{self, Steps};
use crate::error::{ErrorKind, SandboxError};
use crate::recipe;
use crate::repository::Tree;
use crate::sandbox::{Command, Limits, Result, Sandbox, output};

/// Number of files to try first, and again if none of those can be collected.
const FILES: usize = 8;
/// Number of tests to run of each file.
const PER_FILE: usize = 2;
/// Maximum seconds for running the tests.
const SECONDS: u64 = 5;
/// Maximum rounds of installing missing packages, because each round can reveal further ones.
const ROUNDS: usize = 4;

const STEP: &str = "try some tests";

impl Build<'_> {
    /// Tries the environment and completes it.
    pub(super) async fn verify(&self, environment: &mut Environment) -> Result<()> {
        let tree = self.source.tree()?;
        let mut bytes = self.backend.saved_bytes(&environment.saved).await?;
        let mut tried = BTreeSet::new();
        for round in 0..=ROUNDS {
            let sandbox = self
                .backend
                .start(&environment.tool_spec(Limits::default(), "verify"))
                .await?;
            let looked = self
                .try_tests(sandbox.as_ref(), environment, &tree, round == 0)
                .await;
            let stopped = sandbox.stop().await;
            let looked = looked?;
            stopped?;
            let Some(report) = looked else { break };
            let missing = match self.plan.guessed && round < ROUNDS {
                true => self.missing(&report, &environment.packages, &tree, &mut tried)?,
                false => Vec::new(),
            };
            if missing.is_empty() {
                environment.notes.extend(self.assess_report(&report)?);
                break;
            }
            bytes += self.install_missing(environment, &missing).await?;
        }
        environment.bytes = bytes;
        Ok(())
    }

    /// Tries some tests. Returns `None` if there is nothing that pytest could run.
    async fn try_tests(
        &self,
        sandbox: &dyn Sandbox,
        environment: &mut Environment,
        tree: &Tree,
        first: bool,
    ) -> Result<Option<SmokeTestReport>> {
        let python = environment.python_in(&sandbox.info().paths);
        let python = python.to_string_lossy().into_owned();
        if first {
            let (version, copies) = installed(sandbox, &python, tree).await?;
            environment.python_version = version;
            environment.notes.extend(copies);
        }
        let kind = &self.recipe.runner.kind;
        if kind != "pytest" {
            let note = format!("the tests run with {kind}, so none was tried");
            environment.notes.push(note);
            return Ok(None);
        }
        let steps = Steps {
            sandbox,
            log: self.log,
            progress: self.progress,
            env: environment.env.clone(),
            deadline: self.settings.trial_deadline,
            egress: None,
        };
        match self.try_files(&steps, &python, tree).await {
            Ok(report) => Ok(Some(report)),
            // Slow tests do not make an environment invalid.
            Err(error) if error.kind == ErrorKind::Build => {
                let seconds = self.settings.trial_deadline.as_secs();
                environment.notes.push(format!(
                    "the trial of a few tests timed out after {seconds} s"
                ));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn try_files(
        &self,
        steps: &Steps<'_>,
        python: &str,
        tree: &Tree,
    ) -> Result<SmokeTestReport> {
        let all = recipe::test_files(tree)?;
        let request = |files: Vec<String>| {
            let mut options = self.recipe.runner.options.clone();
            // Existing bytecode can then be used.
            options.push("--assert=plain".to_owned());
            Request {
                files,
                options,
                // Only a guessed recipe is completed with missing packages.
                per_file: if self.plan.guessed { PER_FILE } else { 0 },
                seconds: Some(SECONDS),
                ..Request::default()
            }
        };
        let mut some = request(spread(&all, FILES, 0));
        if self.plan.guessed {
            some.fixtures = missing::fixtures();
            some.scanned.clone_from(&all);
        }
        let projects = &self.recipe.projects;
        let report = project_tests::run(steps, STEP, python, &some, projects, tree).await?;
        if !report.collected.is_empty() || report.stopped || all.len() < 2 {
            return Ok(report);
        }
        // A single file can end the process, and some files may contain no tests.
        let crashed = !report.ended && report.printed.code > 128;
        let others = match crashed {
            true => spread(&all, FILES / 2, 0),
            false => spread(&all, FILES, 1),
        };
        let others: Vec<Vec<String>> = match crashed {
            true => others.into_iter().map(|file| vec![file]).collect(),
            false => vec![others],
        };
        let mut broken = report.broken;
        for files in others.into_iter().filter(|files| !files.is_empty()) {
            let step = format!("{STEP} of {}", files[0]);
            let request = request(files);
            let other = project_tests::run(steps, &step, python, &request, projects, tree).await?;
            broken.extend(other.broken);
            if !other.collected.is_empty() {
                return Ok(SmokeTestReport {
                    collected: other.collected,
                    tests: other.tests,
                    broken,
                    ..report
                });
            }
        }
        Ok(SmokeTestReport { broken, ..report })
    }

    /// Returns a note, or an error if nothing can be collected.
    fn assess_report(&self, report: &SmokeTestReport) -> Result<Option<String>> {
        let code = report.printed.code;
        if !report.collected.is_empty() {
            if !report.ended && !report.stopped && code > 128 {
                return Ok(Some(format!(
                    "some tests crash the process that runs them (exit code {code})"
                )));
            }
            return Ok(broken_files(report));
        }
        if report.stopped {
            return Ok(Some(format!(
                "no test file was collected within {SECONDS} s, so none was tried"
            )));
        }
        // pytest exits with code 5 if it finds no tests.
        if code == 5 || (report.ended && report.broken.is_empty() && code == 0) {
            let note = "pytest found no tests in the test files that were tried";
            return Ok(Some(note.to_owned()));
        }
        let mut printed = report.printed_lines();
        if let Some(broken) = report.broken.last() {
            printed.text = format!("{}\n{}: {}", printed.text, broken.file, broken.text);
        }
        Err(steps::failed(self.log, STEP, &printed))
    }
}

/// Returns `count` of `all`, evenly spread, starting at position `shift`.
fn spread(all: &[String], count: usize, shift: usize) -> Vec<String> {
    let step = (all.len() / count).max(1);
    let chosen = all.iter().skip(shift).step_by(step).take(count);
    chosen.cloned().collect()
}

/// Describes the files that cannot be collected, with the reason for the first.
fn broken_files(report: &SmokeTestReport) -> Option<String> {
    let (first, rest) = report.broken.split_first()?;
    let tried = report.collected.len() + report.broken.len();
    let files = match rest.len() {
        0 => first.file.clone(),
        1 => format!("{} and {}", first.file, rest[0].file),
        more => format!("{} and {more} others", first.file),
    };
    let reason = smoke_test::reason(&first.text);
    Some(format!(
        "of {tried} test files that were tried, {} cannot be collected: {files} ({reason})",
        report.broken.len()
    ))
}

/// Returns the interpreter's version, and notes on packages of the repository that are also installed as copies.
async fn installed(
    sandbox: &dyn Sandbox,
    python: &str,
    tree: &Tree,
) -> Result<(String, Vec<String>)> {
    let code = "import os, sys, sysconfig\n\
                print('%d.%d' % sys.version_info[:2])\n\
                for p in sorted({sysconfig.get_paths()[k] for k in ('purelib', 'platlib')}):\n    print('\\n'.join(sorted(os.listdir(p))))";
    let output = output(
        sandbox,
        &Command::new([python, "-c", code]),
        Duration::from_secs(120),
    )
    .await?;
    if output.code != 0 {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(SandboxError::new(
            ErrorKind::Build,
            format!(
                "build the environment: the interpreter does not run\n    {}",
                text.trim()
            ),
        ));
    }
    let installed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = installed.lines();
    let version = lines.next().unwrap_or_default().to_owned();
    let installed: BTreeSet<&str> = lines.collect();
    let mut packages = BTreeSet::new();
    for path in tree.paths() {
        let path = path
            .strip_prefix("src/")
            .or(path.strip_prefix("lib/"))
            .unwrap_or(path);
        if let Some((folder, "__init__.py")) = path.split_once('/') {
            packages.insert(folder.to_owned());
        }
    }
    let copies = packages
        .into_iter()
        .filter(|p| {
            !["tests", "test", "docs", "examples"].contains(&p.as_str())
                && installed.contains(p.as_str())
        })
        .map(|p| {
            format!(
                "the installed packages contain a copy of `{p}`, which is not the code under test"
            )
        });
    Ok((version, copies.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_is_spread_evenly() {
        let all: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(spread(&all, 4, 0), ["0", "25", "50", "75"]);
        assert_eq!(spread(&all, 4, 1), ["1", "26", "51", "76"]);
        assert_eq!(spread(&all[..3], 4, 0), ["0", "1", "2"]);
        assert_eq!(spread(&[], 4, 1), [""; 0]);
    }
}
