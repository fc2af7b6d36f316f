//! Adds the adequacy and change coverage of a prediction to its result.

use testwright_tools::coverage::Coverage;

use super::GradingFailure;
use super::coverage::{
    AdequacyLines, ChangedTestCounts, CoverageError, LineCoverage, SideCoverage, adequacy,
    change_coverage,
};
use super::runs::{Grading, Runs};
use super::test_run_cache::RunRecord;
use crate::dataset::Instance;
use crate::result::InstanceResult;
use crate::verdict::Adequacy;

fn coverage(ran: &RunRecord) -> Option<&Coverage> {
    ran.answer.coverage.as_ref()
}

/// Returns the adequacy to report.
fn reported_adequacy(instance: &Instance, adequate: &AdequacyLines) -> Adequacy {
    match (adequate.covered.share(), &adequate.problem) {
        _ if Adequacy::is_omitted_for(&instance.repo) => Adequacy::LeftOut,
        (Some(share), None) => Adequacy::Share(share),
        // Without coverage the statements are unknown.
        (share, Some(_)) => Adequacy::AtLeast(share.unwrap_or_default()),
        (None, None) => Adequacy::LeftOut,
    }
}

impl Grading<'_> {
    /// Adds the figures from the runs of both sides.
    pub(super) fn add_coverage(&self, graded: &mut InstanceResult, runs: [&Runs; 2]) {
        let own = runs.map(|runs| coverage(&runs.own));
        let golden = self.baseline.golden_coverage();
        let adequacy = adequacy(&self.prepared.changed, own, golden);
        let reported = reported_adequacy(self.instance, &adequacy);
        graded.tdd = graded.tdd.clone().with_adequacy(reported);
        graded.adequacy_lines = Some(adequacy.covered.of);
        let blind = adequacy.problem.is_none() && adequacy.covered.share() == Some(0.0);
        if graded.strict.fail_to_pass && blind {
            let note =
                "the tests run none of the changed lines, so they may fail for another reason";
            graded.notes.push(note.to_owned());
        }
        graded.coverage_problem = adequacy.problem.map(|problem| problem.to_string());
        graded.change(self.delta(runs));
    }

    /// Grades a prediction that covers nothing, because it is missing or cannot be applied. The golden tests may be
    /// missing too.
    pub(super) async fn cover_nothing(
        &self,
        graded: &mut InstanceResult,
        reason: &str,
    ) -> Result<(), GradingFailure> {
        graded.strict.reason = reason.to_owned();
        let [old, new] = self.no_runs().await?;
        let golden = self.baseline.golden_coverage();
        let none = adequacy(&self.prepared.changed, [None; 2], golden);
        graded.adequacy_lines = self.baseline.golden.as_ref().map(|_| none.covered.of);
        graded.change(self.delta([&old, &new]));
        Ok(())
    }

    fn delta(&self, runs: [&Runs; 2]) -> Result<LineCoverage, CoverageError> {
        let golden = self.baseline.golden_coverage();
        let [then, now] = [0, 1].map(|at| {
            let runs = runs[at];
            let base = [runs.suite.as_ref(), Some(&runs.base)].into_iter();
            SideCoverage {
                base: base.flatten().filter_map(coverage).collect(),
                golden: golden[at],
                own: coverage(&runs.own),
                changed: runs.before.as_ref().and_then(|before| {
                    Some(ChangedTestCounts {
                        before: coverage(before)?,
                        after: coverage(runs.after())?,
                    })
                }),
            }
        });
        change_coverage(&self.prepared.changed, &then, &now)
    }
}

impl InstanceResult {
    /// Sets the change coverage. It has no value if no executable line changed, or if it could not be measured.
    fn change(&mut self, covered: Result<LineCoverage, CoverageError>) {
        match covered {
            Ok(covered) => {
                self.coverage_lines = Some(covered.of);
                self.coverage_delta = covered.share();
                if covered.of == 0 && self.coverage_problem.is_none() {
                    let why = "no changed line is a statement that the golden tests or the base suite run";
                    self.coverage_problem = Some(why.to_owned());
                }
            }
            Err(error) => self.coverage_problem = Some(error.to_string()),
        }
    }
}
