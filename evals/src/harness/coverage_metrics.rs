//! Adds the adequacy and change coverage of a prediction to its result.

use testwright_tools::coverage::Coverage;

use super::coverage::{
    AdequacyLines, ChangedTestCounts, CoverageError, LineCoverage, SideCoverage, adequacy,
    change_coverage,
};
use super::instance::PreparedInstance;
use super::runs::{BaselineRuns, Runs};
use super::test_run_cache::RunRecord;
use crate::dataset::Instance;
use crate::result::InstanceResult;
use crate::verdict::Adequacy;

fn coverage(ran: &RunRecord) -> Option<&Coverage> {
    ran.answer.coverage.as_ref()
}

fn delta(
    prepared: &PreparedInstance,
    baseline: &BaselineRuns,
    runs: [&Runs; 2],
) -> Result<LineCoverage, CoverageError> {
    let golden = baseline.golden_coverage();
    let [then, now] = [0, 1].map(|at| {
        let runs = runs[at];
        SideCoverage {
            base: [runs.suite.as_ref(), Some(&runs.base)]
                .into_iter()
                .flatten()
                .filter_map(coverage)
                .collect(),
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
    change_coverage(&prepared.changed, &then, &now)
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

impl InstanceResult {
    /// Adds the figures from the runs of both sides.
    pub(super) fn add_coverage(
        &mut self,
        instance: &Instance,
        prepared: &PreparedInstance,
        baseline: &BaselineRuns,
        runs: [&Runs; 2],
    ) {
        let own = runs.map(|runs| coverage(&runs.own));
        let adequacy = adequacy(&prepared.changed, own, baseline.golden_coverage());
        self.tdd = self
            .tdd
            .clone()
            .with_adequacy(reported_adequacy(instance, &adequacy));
        self.adequacy_lines = Some(adequacy.covered.of);
        let blind = adequacy.problem.is_none() && adequacy.covered.share() == Some(0.0);
        if self.strict.fail_to_pass && blind {
            let note =
                "the tests run none of the changed lines, so they may fail for another reason";
            self.notes.push(note.to_owned());
        }
        self.coverage_problem = adequacy.problem.map(|problem| problem.to_string());
        self.change(delta(prepared, baseline, runs));
    }

    /// Adds the figures for a missing prediction, which covers nothing. The golden tests may be missing too.
    pub(super) fn cover_nothing(
        &mut self,
        prepared: &PreparedInstance,
        baseline: &BaselineRuns,
        [old, new]: &[Runs; 2],
    ) {
        let none = adequacy(&prepared.changed, [None; 2], baseline.golden_coverage());
        self.adequacy_lines = baseline.golden.as_ref().map(|_| none.covered.of);
        self.change(delta(prepared, baseline, [old, new]));
    }

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
