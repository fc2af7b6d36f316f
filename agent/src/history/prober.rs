//! Runs the accepted tests on a commit, in the commit's own environment.

use std::time::Duration;

use serde_json::{Value, json};
use testwright_sandboxes::repository::{self, Files, Source, Tree};
use testwright_tools::outcomes::report::TestReport;
use testwright_tools::tool::Tool as _;
use testwright_tools::tools::{Restore, RunPytest};

use super::answer::{Answer, Verdict};
use super::judge::{first_line, judge};
use super::placement::{BaseTests, Placement};
use crate::check::encode_file;
use crate::gate::{self, TestEvidence, Verdict as GateVerdict};
use crate::session::Session;
use crate::setup::{RepositoryLocation, Setup, interrupted};
use testwright_config::error::{Error, Result};

/// Timeout of one call in the sandbox.
const CALL_TIMEOUT: Duration = Duration::from_secs(900);

/// Tests and the failures for which they were accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedTests {
    /// Tests, as a patch for `git apply`.
    pub patch: String,
    /// Failing tests on the base commit.
    pub failing: Vec<TestEvidence>,
}

impl AcceptedTests {
    /// Runs the tests of a patch, and takes those that fail as accepted for their present failures.
    ///
    /// # Errors
    ///
    /// Fails if the patch does not apply, none of its tests fails, or the environment or the sandbox fails.
    pub async fn from_patch(
        setup: &Setup<'_>,
        place: &RepositoryLocation,
        patch: String,
    ) -> Result<AcceptedTests> {
        let (source, environment, _) = setup.prepare_environment(place, None).await?;
        let applied = repository::apply(&source.tree()?, &Files::new(), &patch)?;
        let applied = applied.map_err(|reason| {
            Error::usage("apply the tests")
                .cause(reason)
                .hint("pass the commit that the patch is for with --commit")
        })?;
        let placement = Placement::unchanged(applied.files);
        let session = setup.session_in(&environment).await?;
        let check = or_interrupted(check(&session, &source, &placement)).await;
        let check = close(session, check).await?;
        let without_failure = |cause: String| {
            Error::usage("find a failing test in the patch")
                .cause(cause)
                .hint("pass a commit on which a test of the patch fails with --commit")
        };
        let verdict = check.map_err(without_failure)?;
        match verdict.failing.is_empty() {
            true => Err(without_failure(verdict.text())),
            false => Ok(AcceptedTests {
                patch,
                failing: verdict.failing,
            }),
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.failing.iter().map(|test| test.id.as_str())
    }
}

/// Asks commits of one repository.
pub(super) struct Prober<'a> {
    pub setup: &'a Setup<'a>,
    /// Folder or URL of the repository.
    pub location: &'a str,
    pub tests: &'a AcceptedTests,
    pub base: BaseTests,
}

impl<'a> Prober<'a> {
    /// Prepares the base commit, on which the tests were accepted.
    ///
    /// # Errors
    ///
    /// Fails if the commit or its environment cannot be prepared, or the patch does not apply to it.
    pub(super) async fn new(
        setup: &'a Setup<'a>,
        place: &'a RepositoryLocation,
        tests: &'a AcceptedTests,
    ) -> Result<(Prober<'a>, Source)> {
        let (source, _, _) = setup.prepare_environment(place, None).await?;
        let base = BaseTests::new(&source, &tests.patch, tests.ids())?;
        let base = base.map_err(|reason| {
            Error::usage("apply the accepted test to its own commit").cause(reason)
        })?;
        let prober = Prober {
            setup,
            location: &place.location,
            tests,
            base,
        };
        Ok((prober, source))
    }

    /// Runs the tests on a commit. A pass counts only if a second run passes, too.
    ///
    /// # Errors
    ///
    /// Fails if the machine or the sandbox fails, or an interrupt arrives.
    pub(super) async fn probe(&self, commit: &str) -> Result<Answer> {
        let place = RepositoryLocation {
            location: self.location.to_owned(),
            revision: Some(commit.to_owned()),
        };
        let (source, environment) = match self.setup.prepare_commit(&place).await? {
            Ok(prepared) => prepared,
            Err(unsuitable) => {
                return Ok(Answer {
                    is_external: unsuitable.is_external,
                    ..Answer::cannot_tell(without_environment(&unsuitable.error))
                });
            }
        };
        let tree = source.tree()?;
        let placement = match self.base.place(&tree)? {
            Ok(placement) => placement,
            Err(reason) => {
                let reason = format!("the test cannot be applied: {}", first_line(&reason));
                return Ok(Answer::cannot_tell(reason));
            }
        };
        let session = self.setup.session_in(&environment).await?;
        let answer = or_interrupted(self.ask_twice(&session, &tree, &placement)).await;
        close(session, answer).await
    }

    /// Asks again with whole test files if the patch gives no verdict: imports may be missing, or its test may stand in
    /// another place, such as a class with another name.
    async fn ask_twice(
        &self,
        session: &Session,
        tree: &Tree,
        placement: &Placement,
    ) -> Result<Answer> {
        let answer = self.ask(session, placement).await?;
        let is_certain = answer.verdict != Verdict::CannotTell || answer.is_external;
        if is_certain || !placement.renamed.is_empty() {
            return Ok(answer);
        }
        let Some(whole) = self.base.place_whole_files(tree)? else {
            return Ok(answer);
        };
        let second = self.ask(session, &whole).await?;
        Ok(match second.verdict {
            Verdict::CannotTell => answer,
            _ => second,
        })
    }

    async fn ask(&self, session: &Session, placement: &Placement) -> Result<Answer> {
        if let Err(reason) = write_files(session, placement).await? {
            let reason = format!("the test cannot be written: {reason}");
            return Ok(Answer::cannot_tell(reason));
        }
        let first = self.run(session, placement).await?;
        if first.verdict != Verdict::Passes {
            return Ok(first);
        }
        let second = self.run(session, placement).await?;
        Ok(match second.verdict {
            Verdict::Passes => second,
            verdict => {
                let (verdict, reason) = (verdict.as_str(), &second.reason);
                Answer {
                    is_external: second.is_external,
                    ..Answer::cannot_tell(format!("it passed once, then: {verdict} {reason}"))
                }
            }
        })
    }

    async fn run(&self, session: &Session, placement: &Placement) -> Result<Answer> {
        let ids: Vec<String> = self.tests.ids().map(|id| placement.id(id)).collect();
        let arguments = json!({ "tests": ids });
        let called = session.call(RunPytest::NAME, arguments, CALL_TIMEOUT);
        let answer = called.await?;
        if answer.refused || answer.ended {
            let reason = format!("the tests did not run: {}", first_line(&answer.text));
            return Ok(Answer {
                // The machine may have been out of memory.
                is_external: answer.ended,
                ..Answer::cannot_tell(reason)
            });
        }
        let report: TestReport = serde_json::from_value(answer.data).map_err(|error| {
            Error::infrastructure("read the outcomes of the tests").cause(error)
        })?;
        Ok(judge(&report, &self.tests.failing, placement))
    }
}

/// Lets the gate run the tests of a patch. The inner error says why they cannot run.
async fn check(
    session: &Session,
    source: &Source,
    placement: &Placement,
) -> Result<std::result::Result<GateVerdict, String>> {
    if let Err(reason) = write_files(session, placement).await? {
        return Ok(Err(reason));
    }
    let check = gate::check_submission(session, source, "", &json!({}), CALL_TIMEOUT).await;
    Ok(match check {
        Ok((_, verdict)) => Ok(verdict),
        Err(error) => Err(error.refusal()?),
    })
}

async fn or_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        done = work => done,
        () = interrupted() => Err(Error::interrupted()),
    }
}

/// Closes a session after its work, which may have failed.
async fn close<T>(session: Session, done: Result<T>) -> Result<T> {
    let closed = session.close().await;
    let done = done?;
    closed?;
    Ok(done)
}

/// Writes the files of the tests. The inner error says why they cannot be written.
async fn write_files(
    session: &Session,
    placement: &Placement,
) -> Result<std::result::Result<(), String>> {
    let files: Vec<Value> = placement.files.iter().map(encode_file).collect();
    let arguments = json!({ "files": files });
    let answer = session.call(Restore::NAME, arguments, CALL_TIMEOUT).await?;
    Ok(match answer.refused {
        true => Err(first_line(&answer.text)),
        false => Ok(()),
    })
}

fn without_environment(error: &Error) -> String {
    let cause = error.cause.as_deref().unwrap_or_default();
    format!("could not {}: {}", error.message, first_line(cause))
}
