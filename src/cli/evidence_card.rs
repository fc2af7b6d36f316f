//! The evidence card and the patch, for people.

use anstyle::{AnsiColor, Style};
use testwright_tools::outcomes::report::Outcome as TestOutcome;

use super::output::{Text, single_line};
use crate::agent::Outcome;
use crate::gate::{Evidence, FixTrial, Review, ReviewVerdict};

const BOLD: Style = Style::new().bold();
const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

const PLAIN: Style = Style::new();

/// What is printed at the end of a run. Styles are taken out by the stream where it is not a terminal.
pub fn render(outcome: &Outcome) -> Text {
    let mut text = Text::default();
    match outcome {
        Outcome::Accepted { patch, evidence } => {
            text = of(evidence);
            text.push(PLAIN, "\n");
            coloured(patch, &mut text);
        }
        Outcome::Abstained { tried, .. } => {
            text.push(RED, single_line(&outcome.summary()))
                .push(PLAIN, "\n");
            for line in tried {
                text.push(DIM, "  tried ")
                    .push(PLAIN, single_line(line))
                    .push(PLAIN, "\n");
            }
        }
        other => {
            text.push(RED, single_line(&other.summary()))
                .push(PLAIN, "\n");
        }
    }
    text
}

/// The card alone.
pub fn of(evidence: &Evidence) -> Text {
    let mut text = Text::default();
    text.push(GREEN.bold(), "A test was accepted.")
        .push(PLAIN, "\n");
    let mut row = |name: &str, value: &str| {
        for (i, line) in value.lines().enumerate() {
            let name = if i == 0 { name } else { "" };
            text.push(PLAIN, "  ")
                .push(DIM, format!("{name:<10}"))
                .push(PLAIN, format!(" {}\n", single_line(line)));
        }
    };
    for test in &evidence.tests {
        row("test", &test.id);
        row("fails", &format!("{}{}", test.line(), test.limits()));
        if let Some(stand_in) = &test.stand_in {
            row("through", &format!("{stand_in}, the test's own stand-in"));
        }
    }
    for id in &evidence.passing {
        row("passes", &format!("{id} (on the old code already)"));
    }
    if let Some(sentence) = &evidence.issue_sentence {
        row("issue", &format!("“{sentence}”"));
    }
    if let Some(reason) = &evidence.reason {
        row("reason", reason);
    }
    row("reruns", &evidence.reruns.join("\n"));
    for fix in &evidence.fixes {
        row("fix tried", &fix_tried(fix));
    }
    if let Some(review) = &evidence.review {
        row("reviewer", &opinion(review));
    }
    // Worth a line where it is not the one that the issue names.
    if let Some(python) = evidence
        .python
        .as_deref()
        .filter(|python| python.contains('('))
    {
        row("python", python);
    }
    for dropped in &evidence.dropped {
        row("left out", dropped);
    }
    row("spent", &spent(evidence));
    text
}

fn fix_tried(fix: &FixTrial) -> String {
    if let Some(crash) = &fix.crash {
        return format!("the edit itself is wrong: {crash}");
    }
    let is_passed = |(_, outcome): &&(String, TestOutcome)| *outcome == TestOutcome::Passed;
    let passed = fix.outcomes.iter().filter(is_passed).count();
    let tests = match fix.on_submitted_tests {
        true => "submitted tests",
        false => "tests of an earlier form",
    };
    let breaks = match fix.breaks.len() {
        0 => String::new(),
        1 => "; it breaks 1 existing test".to_owned(),
        many => format!("; it breaks {many} existing tests"),
    };
    format!(
        "{passed} of {} {tests} pass with it{breaks}",
        fix.outcomes.len()
    )
}

/// What the reviewer thinks; the reasons where there are doubts.
fn opinion(review: &Review) -> String {
    let mut text = match review.verdict {
        ReviewVerdict::Yes => "fails for the issue's reason".to_owned(),
        ReviewVerdict::No => format!("doubts it: {}", review.reason),
        ReviewVerdict::Unsure => format!("unsure: {}", review.reason),
        ReviewVerdict::Unreadable => "gave an answer that cannot be read".to_owned(),
    };
    for beyond in &review.beyond {
        text.push_str(&format!("\nbeyond the issue: {beyond}"));
    }
    text
}

fn spent(evidence: &Evidence) -> String {
    let mut parts = vec![format!("{} steps", evidence.steps)];
    let tokens = evidence
        .prompt_tokens
        .saturating_add(evidence.completion_tokens);
    if tokens > 0 {
        parts.push(format!(
            "{tokens} tokens ({} cached)",
            evidence.cached_tokens
        ));
    }
    if let Some(dollars) = evidence.dollars {
        parts.push(format!("${dollars:.3}"));
    }
    parts.push(format!("{:.1} s", evidence.seconds));
    parts.join(", ")
}

fn coloured(patch: &str, text: &mut Text) {
    for line in patch.lines() {
        let style = match line.as_bytes().first() {
            _ if line.starts_with("+++")
                || line.starts_with("---")
                || line.starts_with("diff ") =>
            {
                BOLD
            }
            Some(b'+') => GREEN,
            Some(b'-') => RED,
            Some(b'@') => CYAN,
            _ => PLAIN,
        };
        text.push(style, single_line(line)).push(PLAIN, "\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::TestEvidence;
    use testwright_tools::outcomes::report::{FailureClass, Phase};

    #[test]
    fn the_card_shows_what_speaks_for_the_test() {
        let outcome = Outcome::Accepted {
            patch: "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b\x1b[2J\n".into(),
            evidence: Box::new(Evidence {
                tests: vec![TestEvidence {
                    id: "t.py::test_it".into(),
                    outcome: TestOutcome::Failed,
                    phase: Phase::Call,
                    class: FailureClass::Assertion,
                    exception: "AssertionError".into(),
                    message: "assert 1 == 2\n  more".into(),
                    frame: None,
                    missing_name: None,
                    executed: vec!["a.py".into()],
                    unreached: vec![(7, 7), (9, 12)],
                    stand_in: None,
                }],
                issue_sentence: Some("f(1) returns 1.".into()),
                reruns: vec!["hash seed 1, order given: 1 failed again".into()],
                fixes: vec![FixTrial {
                    outcomes: vec![("t.py::test_it".into(), TestOutcome::Passed)],
                    on_submitted_tests: true,
                    breaks: vec!["t.py::test_old".into()],
                    ..FixTrial::default()
                }],
                review: Some(Review {
                    verdict: ReviewVerdict::Unsure,
                    reason: "Hard to say.".into(),
                    beyond: vec!["the order of keys".into()],
                }),
                python: Some("3.11 (the issue names 3.14)".into()),
                steps: 7,
                prompt_tokens: 900,
                cached_tokens: 450,
                completion_tokens: 100,
                dollars: Some(0.0123),
                seconds: 4.25,
                ..Evidence::default()
            }),
        };
        insta::assert_snapshot!(render(&outcome).plain());
    }
}
