//! The reviewer: a model call that compares a submission with the issue, as in a pull request review.

mod brief;
mod printed;

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use testwright_agent_prompts::{Prompt, Review as ReviewPrompt, ReviewDoubt};
use testwright_tools::outcomes::report::{
    FailureClass, Frame, Outcome as TestOutcome, Place, TestReport, TestResult, belongs_to_test,
};
use testwright_tools::outcomes::text::shorten_message_to_lines;
use testwright_tools::python::Excerpt;
use testwright_tools::tool::Tool;
use testwright_tools::tools::ReviewContext;
use testwright_tools::tools::review_context::{Excerpts, SourceLine};
use testwright_tools::tools::submission::{Change, Submission};
use testwright_tools::visible;

use self::printed::printed_errors;
use super::fix_trials::places;
use super::{Flow, Run};
use crate::gate::{self, FixTrial, Review, ReviewVerdict, TestEvidence, Verdict};
use testwright_models::Message;

/// Maximum lines of a failure's message.
const MESSAGE_LINES: usize = 40;
const FRAMES: usize = 12;
/// Maximum characters of the reviewer's text.
const WORDS: usize = 1_500;
/// Maximum failing tests shown in full; the others are only named.
const MAX_FAILING_SHOWN: usize = 4;

/// A submission that the gate accepts.
pub(super) struct AcceptedSubmission<'a> {
    pub submission: &'a Submission,
    pub verdict: &'a Verdict,
    pub fixes: &'a [FixTrial],
    pub reason: Option<&'a str>,
}

impl Run {
    /// Asks for a review; `None` if the budget does not allow one.
    pub(super) async fn review(
        &mut self,
        reviewed: &AcceptedSubmission<'_>,
        deadline: Duration,
    ) -> Flow<Option<Review>> {
        let context = self.review_context(reviewed, deadline).await?;
        let content = self.review_prompt(reviewed, &context).render()?;
        let reply = self.side_reply(vec![Message::User { content }]).await?;
        Ok(reply.map(|reply| read_review(&reply.content)))
    }

    /// Returns the Python version that runs the tests, with the one that the issue names if it differs.
    pub(super) fn python(&self) -> String {
        let version = &self.session.environment().python_version;
        match self.issue.named_python() {
            Some(preferred_python) if preferred_python.version != *version => {
                format!("{version} (the issue names {})", preferred_python.version)
            }
            _ => version.clone(),
        }
    }

    async fn review_context(
        &self,
        reviewed: &AcceptedSubmission<'_>,
        deadline: Duration,
    ) -> Flow<Excerpts> {
        let tests = gate::contributed(reviewed.submission);
        // The code that fixes change is likelier to be at fault than the place where an exception arises.
        let mut fixes: Vec<&FixTrial> = reviewed.fixes.iter().collect();
        fixes.sort_by_key(|fix| !fix.makes_pass(&reviewed.verdict.failing));
        let mut lines: Vec<SourceLine> =
            (fixes.iter()).flat_map(|fix| places(&fix.patch)).collect();
        for failed in failing(reviewed) {
            // Frames below an assertion of the test are comparison helpers.
            let failures =
                (failed.failure.iter()).filter(|failure| failure.class != FailureClass::Assertion);
            let frames = failures.flat_map(|failure| failure.frames.iter().rev());
            let mut source = frames.filter(|frame| frame.place == Place::Source);
            lines.extend(source.next().map(|frame| SourceLine {
                path: frame.file.clone(),
                line: frame.line as usize,
            }));
        }
        let arguments = json!({
            "tests": tests.map(|test| test.id.as_str()).collect::<Vec<_>>(),
            "places": lines,
        });
        let called = self.session.call(ReviewContext::NAME, arguments, deadline);
        let answer = called.await?;
        // Without excerpts the reviewer sees less, but that is not an error.
        Ok(Excerpts::deserialize(&answer.data).unwrap_or_default())
    }

    fn review_prompt(&self, reviewed: &AcceptedSubmission<'_>, context: &Excerpts) -> ReviewPrompt {
        // The line with its outcome just above already names it.
        let is_single = reviewed.submission.contributed.len() == 1
            && reviewed.verdict.failing.len() == 1
            && reviewed.verdict.failing[0].id == reviewed.submission.contributed[0].id;
        let failures: Vec<String> = brief::group_parameter_failures(&reviewed.verdict.failing)
            .into_iter()
            .take(MAX_FAILING_SHOWN)
            .map(|(test, others)| {
                let text = failure(reviewed.submission, test) + &others;
                match is_single {
                    true => text,
                    false => format!("{}\n{text}", test.id),
                }
            })
            .collect();
        let patches: Vec<&str> = (reviewed.fixes.iter())
            .map(|fix| fix.patch.as_str())
            .collect();
        let functions = brief::exclude_shown_in_patches(context.functions.clone(), &patches);
        let fixes: Vec<String> = (reviewed.fixes.iter().enumerate())
            .map(|(at, fix)| candidate_fix(at + 1, fix, &reviewed.verdict.failing, &functions))
            .collect();
        // Only the parts from untrusted text need escaping.
        let visible = |text: &str| visible(text).into_owned();
        ReviewPrompt {
            issue: visible(&self.issue.brief_text()),
            python: self.python(),
            change: visible(&brief::shorten_test_patch(&reviewed.submission.patch)),
            used_code: visible(&excerpts(&context.used)),
            outcomes: visible(&outcomes(reviewed.submission, reviewed.verdict)),
            failure: visible(&failures.join("\n\n")),
            code_under_test: visible(&excerpts(&functions)),
            fixes: visible(&fixes.join("\n\n")),
            reason: visible(reviewed.reason.unwrap_or_default()),
        }
    }
}

/// Returns the results of the failing contributed tests that are shown.
fn failing<'a>(reviewed: &'a AcceptedSubmission<'_>) -> impl Iterator<Item = &'a TestResult> {
    let tests = reviewed.verdict.failing.iter().take(MAX_FAILING_SHOWN);
    tests.filter_map(|test| result(&reviewed.submission.old, &test.id))
}

fn result<'a>(report: &'a TestReport, id: &str) -> Option<&'a TestResult> {
    report.tests.iter().find(|test| test.id == id)
}

/// Formats excerpts; consecutive single lines of a file, such as imports, share one header.
fn excerpts(all: &[Excerpt]) -> String {
    let is_line = |excerpt: &Excerpt| !excerpt.source.contains('\n');
    let one_head = |a: &Excerpt, b: &Excerpt| a.path == b.path && is_line(a) && is_line(b);
    let mut parts = Vec::new();
    for group in all.chunk_by(one_head) {
        let [first, ..] = group else { continue };
        let sources: Vec<&str> = group.iter().map(|e| e.source.as_str()).collect();
        let sources = sources.join("\n");
        parts.push(format!("# {}:{}\n{sources}", first.path, first.line));
    }
    parts.join("\n\n")
}

/// Formats one line per contributed test: its outcome now, and before the change.
fn outcomes(submission: &Submission, verdict: &Verdict) -> String {
    let mut lines = Vec::new();
    for test in &submission.contributed {
        let of = |report: &TestReport| -> Vec<TestOutcome> {
            let results = report.tests.iter();
            let own = results.filter(|result| belongs_to_test(&result.id, &test.id));
            own.map(|result| result.outcome).collect()
        };
        let mut failing = verdict.failing.iter();
        let is_failing = failing.any(|failing| belongs_to_test(&failing.id, &test.id));
        let now = match of(&submission.old).as_slice() {
            now @ [_, _, ..] => count(now, ["passes", "fails"]),
            _ if is_failing => "fails".to_owned(),
            [outcome] => words(*outcome)[0].to_owned(),
            [] => "did not run".to_owned(),
        };
        let then = submission.changed_before.as_ref().map(of);
        let changed = |then: &str| format!("changed; before the change it {then}");
        let before = match (test.change, then.as_deref().unwrap_or_default()) {
            (Change::Added, _) => "new".to_owned(),
            (Change::Deleted, _) => "deleted".to_owned(),
            (Change::Modified, []) => "changed".to_owned(),
            (Change::Modified, [outcome]) => changed(words(*outcome)[1]),
            (Change::Modified, then) => changed(&count(then, ["passed", "failed"])),
        };
        lines.push(format!("- {} {now} ({before})", test.id));
    }
    lines.extend(verdict.notes.iter().map(|note| format!("Note: {note}.")));
    lines.join("\n")
}

fn count(outcomes: &[TestOutcome], [passes, fails]: [&str; 2]) -> String {
    let number = |wanted: TestOutcome| outcomes.iter().filter(|o| **o == wanted).count();
    let (passed, skipped) = (number(TestOutcome::Passed), number(TestOutcome::Skipped));
    let ran = outcomes.len() - skipped;
    let skipped = match skipped {
        0 => String::new(),
        skipped => format!(" ({skipped} more skipped)"),
    };
    let failed = number(TestOutcome::Failed) + number(TestOutcome::Error);
    match failed == ran && ran > 0 {
        true => format!("{fails} for all {ran} parameter sets{skipped}"),
        false => format!("{passes} for {passed} of {ran} parameter sets{skipped}"),
    }
}

/// Describes an outcome now, and an outcome before the change.
fn words(outcome: TestOutcome) -> [&'static str; 2] {
    match outcome {
        TestOutcome::Passed => ["passes", "passed"],
        TestOutcome::Failed | TestOutcome::Error => ["fails", "failed"],
        TestOutcome::Skipped => ["is skipped", "was skipped"],
        TestOutcome::Xfailed => ["fails as expected", "failed as expected"],
        TestOutcome::Xpassed => ["passes against expectation", "passed against expectation"],
        TestOutcome::Absent => ["did not end"; 2],
    }
}

/// Describes a failure in full, starting with the test's own line.
fn failure(submission: &Submission, test: &TestEvidence) -> String {
    let mut out = format!("{} {}", test.origin(), test.exception);
    if !test.message.is_empty() {
        out += &format!(
            ": {}",
            shorten_message_to_lines(&test.message, MESSAGE_LINES)
        );
    }
    let test_result = result(&submission.old, &test.id);
    let failure = test_result.and_then(|test_result| test_result.failure.as_ref());
    let frames = failure.into_iter().flat_map(|f| f.frames_of_interest());
    let repository: Vec<&Frame> = frames
        .filter(|frame| frame.place != Place::External)
        .collect();
    // A single frame is the test's own line, which is named above and part of the change.
    if repository.len() > 1 {
        out += "\nThe calls, from the test inwards:";
        let more = repository.len().saturating_sub(FRAMES);
        for (at, frame) in repository.iter().enumerate() {
            // The first and the last frames say most.
            if at == FRAMES / 2 && more > 0 {
                out += &format!("\n  … {more} more");
            }
            if at >= FRAMES / 2 && at < FRAMES / 2 + more {
                continue;
            }
            let Frame {
                file,
                line,
                function,
                code,
                ..
            } = frame;
            out += &format!("\n  {file}:{line} in {function}: {code}");
        }
    }
    if let Some(test_double) = &test.test_double {
        out += &format!(
            "\nIt was raised by {test_double}, which is the test's own code and stands in for something real."
        );
    }
    if let Some(printed) = test_result.and_then(printed_errors) {
        out += &format!("\nPrinted in the test, or by a program that it started:\n{printed}");
    }
    let limits = test.limits();
    if let Some(lines) = limits.strip_prefix("; not reached") {
        out += &format!("\nNot reached{lines}.");
    }
    out
}

/// Describes a candidate fix. `excerpts` is the code under test that the reviewer also sees.
fn candidate_fix(
    number: usize,
    fix: &FixTrial,
    failing: &[TestEvidence],
    excerpts: &[Excerpt],
) -> String {
    let on = match fix.on_submitted_tests {
        true => "the tests as they are submitted",
        false => "an earlier form of the tests",
    };
    let mut out = format!("Candidate fix {number}, tried on {on}: ");
    if let Some((clause, details)) = fix.crash_text() {
        out += &format!("{clause} ({details}), so this says nothing of the tests.");
    } else if fix.makes_pass(failing) {
        out.push_str("with it all of them pass.");
    } else {
        let did_run = |test: &&TestEvidence| fix.outcomes.iter().any(|(id, _)| *id == test.id);
        let (ran, did_not): (Vec<_>, Vec<_>) = failing.iter().partition(did_run);
        if !fix.failures.is_empty() {
            out.push_str("with it these still fail:");
            for line in brief::folded(&fix.failures) {
                out += &format!("\n- {line}");
            }
        } else if did_not.is_empty() {
            out.push_str("with it not all of them pass.");
        } else if !ran.is_empty() {
            out.push_str("with it those that ran pass.");
        } else {
            out.push_str("with it none of them ran.");
        }
        if !did_not.is_empty() {
            let ids: Vec<&str> = did_not.iter().map(|test| test.id.as_str()).collect();
            out += &format!("\nIt was not tried on {}.", ids.join(", "));
        }
    }
    if fix.crash.is_none() {
        match (fix.breaks.len(), fix.existing_run) {
            (0, 0) => {}
            (0, 1) => out.push_str("\nThe one existing test beside them does not break."),
            (0, ran) => {
                out += &format!(
                    "\nIt breaks none of {ran} existing tests of the same files that do not fail anyway."
                );
            }
            _ => out.push_str("\nIt breaks existing tests of the same files:"),
        }
        for line in brief::folded(&fix.breaks) {
            out += &format!("\n- {line}");
        }
    }
    let has_excerpt = |path: &str| excerpts.iter().any(|excerpt| excerpt.path == path);
    let mut files = fix
        .patch
        .lines()
        .filter_map(|line| line.strip_prefix("--- a/"));
    let patch = match !excerpts.is_empty() && files.all(has_excerpt) {
        true => brief::changed_lines_only(&fix.patch),
        false => brief::without_headers(&fix.patch),
    };
    out += &format!("\n{patch}");
    out
}

/// Returns the message to the author; `None` if there is nothing to report.
pub(super) fn doubt_message(review: &Review) -> Option<ReviewDoubt> {
    let opinion = match review.verdict {
        ReviewVerdict::No => "doubts that the tests fail for the reason that the issue states",
        ReviewVerdict::Unsure => {
            "is not sure that the tests fail for the reason that the issue states"
        }
        ReviewVerdict::Yes if !review.extra_requirements.is_empty() => {
            "agrees that the tests fail for the reason that the issue states, but finds that they ask for more than it does"
        }
        ReviewVerdict::Yes | ReviewVerdict::Unreadable => return None,
    };
    Some(ReviewDoubt {
        opinion: opinion.to_owned(),
        reason: review.reason.clone(),
        beyond: review.extra_requirements.clone(),
    })
}

/// Parses a review. The first of the three words is the verdict; an unreadable review raises no doubt.
fn read_review(text: &str) -> Review {
    let words = || {
        text.split(|c: char| !c.is_ascii_alphabetic())
            .filter(|word| !word.is_empty())
    };
    let first = words().next().map(str::to_ascii_uppercase);
    // After the first word, accept only the requested spelling.
    let verdict = (first.iter().map(String::as_str).chain(words()))
        .find_map(|word| match word {
            "YES" => Some(ReviewVerdict::Yes),
            "NO" => Some(ReviewVerdict::No),
            "UNSURE" => Some(ReviewVerdict::Unsure),
            _ => None,
        })
        .unwrap_or(ReviewVerdict::Unreadable);
    let marks = ['*', '#', '-', '`', ' ', '_'];
    let is_beyond = |line: &&str| line.trim_start_matches(marks).starts_with("BEYOND");
    let (extra_requirements, reason): (Vec<&str>, Vec<&str>) =
        text.trim().lines().partition(is_beyond);
    let extra_requirements = extra_requirements
        .into_iter()
        .map(|line| line.trim_start_matches(marks).trim_start_matches("BEYOND"))
        .map(|line| line.trim_start_matches(['*', ':', ' ']).trim())
        .filter(|line| !line.is_empty() && !is_none(line))
        .map(|line| line.chars().take(WORDS / 3).collect())
        .collect();
    let reason = reason
        .join("\n")
        .trim_start_matches(['*', '#'])
        .trim_start_matches("YES")
        .trim_start_matches("NO")
        .trim_start_matches("UNSURE")
        .trim_start_matches(['*', '.', ',', ':', ' ', '\n'])
        .trim_end()
        .chars()
        .take(WORDS)
        .collect();
    Review {
        verdict,
        reason,
        extra_requirements,
    }
}

/// Returns whether a line only says `none`, as models write when they fill in a form.
fn is_none(line: &str) -> bool {
    let plain = line
        .trim_matches(|c: char| !c.is_ascii_alphabetic())
        .to_ascii_lowercase();
    matches!(plain.as_str(), "" | "none" | "nothing" | "no" | "n/a")
}

#[cfg(test)]
mod tests;
