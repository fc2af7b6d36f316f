//! The evidence card and the patch, for people.

use anstyle::{AnsiColor, Style};
use testwright_tools::outcomes::report::Outcome as TestOutcome;

use super::output::{Text, single_line};
use crate::agent::Outcome;
use crate::gate::{Evidence, ReviewVerdict};

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
        row("fails", &test.line());
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
        let passed = fix
            .outcomes
            .iter()
            .filter(|(_, outcome)| *outcome == TestOutcome::Passed)
            .count();
        row(
            "fix tried",
            &format!("{passed} of {} tests pass with it", fix.outcomes.len()),
        );
    }
    if let Some(review) = &evidence.review {
        let verdict = match review.verdict {
            ReviewVerdict::Yes => "fails for the issue's reason",
            ReviewVerdict::No => "doubts it",
            ReviewVerdict::Unsure => "unsure",
        };
        row("reviewer", verdict);
    }
    for dropped in &evidence.dropped {
        row("left out", dropped);
    }
    row("spent", &spent(evidence));
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
    use crate::gate::{FixTrial, TestEvidence};
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
                }],
                issue_sentence: Some("f(1) returns 1.".into()),
                reruns: vec!["hash seed 1, order given: 1 failed again".into()],
                fixes: vec![FixTrial {
                    patch: String::new(),
                    outcomes: vec![("t.py::test_it".into(), TestOutcome::Passed)],
                }],
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
