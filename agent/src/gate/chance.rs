//! Tells refusals that a repeated run could lift from lasting ones.

use testwright_tools::outcomes::report::{Outcome, TestReport};
use testwright_tools::tools::submission::Submission;

use super::{Rule, Verdict};

/// Rules whose findings depend on the stability of tests.
const UNSTABLE: [Rule; 3] = [
    Rule::BreaksNothing,
    Rule::FailsAgain,
    Rule::HoldsWithPlacebo,
];

impl Verdict {
    /// Returns whether the findings could be due to chance: a test may be flaky, or a run did not end by itself.
    pub fn is_by_chance(&self, submission: &Submission) -> bool {
        let reruns = submission.reruns.iter().map(|rerun| &rerun.report);
        let mut reports = std::iter::once(&submission.old)
            .chain(reruns)
            .chain(&submission.before)
            .chain(&submission.changed_before);
        let mut findings = self.findings.iter();
        let mut failing = self.failing.iter();
        findings.any(|finding| UNSTABLE.contains(&finding.rule))
            || failing.any(|test| test.outcome == Outcome::Absent)
            || reports.any(is_incomplete)
    }
}

fn is_incomplete(report: &TestReport) -> bool {
    report.timed_out || report.rest_timed_out || report.runner_error.is_some()
}

#[cfg(test)]
mod tests {
    use super::super::decide;
    use super::super::tests::sound;
    use super::*;

    fn is_by_chance(change: impl FnOnce(&mut Submission)) -> bool {
        let mut submission = sound();
        change(&mut submission);
        let verdict = decide(&submission, "", &Ok(()));
        assert!(!verdict.accepted());
        verdict.is_by_chance(&submission)
    }

    #[test]
    fn flaky_and_incomplete_runs_are_by_chance() {
        let pass = |report: &mut TestReport| {
            for test in &mut report.tests {
                test.outcome = Outcome::Passed;
                test.failure = None;
            }
        };
        assert!(!is_by_chance(|s| pass(&mut s.old)));
        assert!(!is_by_chance(|s| s.contributed.clear()));
        assert!(is_by_chance(|s| pass(&mut s.reruns[0].report)));
        assert!(is_by_chance(|s| {
            pass(&mut s.old);
            s.old.timed_out = true;
        }));
    }
}
