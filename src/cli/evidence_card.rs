//! Formats the evidence card and the patch for people.

use anstyle::{AnsiColor, Style};

use super::output::{Text, escape_line};
use testwright_agent::agent::Outcome;
use testwright_agent::gate::{self, Evidence};

const BOLD: Style = Style::new().bold();
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
pub(super) const RED: Style = AnsiColor::Red.on_default();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();
pub(super) const PLAIN: Style = Style::new();

/// Formats the result of a run. The output stream removes the styles if it is not a terminal.
pub(super) fn render(outcome: &Outcome) -> Text {
    let mut text = Text::default();
    match outcome {
        Outcome::Accepted { patch, evidence } => {
            text = render_card(evidence);
            text.push(PLAIN, "\n");
            coloured(patch, &mut text);
        }
        Outcome::Withheld { evidence, .. } => {
            text.push(RED, escape_line(&outcome.summary()))
                .push(PLAIN, "\n");
            if let Some(evidence) = evidence {
                rows(evidence, &mut text);
            }
        }
        Outcome::Abstained { calls, .. } => {
            text.push(RED, escape_line(&outcome.summary()))
                .push(PLAIN, "\n");
            for line in calls {
                text.push(DIM, "  tried ")
                    .push(PLAIN, escape_line(line))
                    .push(PLAIN, "\n");
            }
        }
        other => {
            text.push(RED, escape_line(&other.summary()))
                .push(PLAIN, "\n");
        }
    }
    text
}

/// Formats the evidence card without the patch.
pub(super) fn render_card(evidence: &Evidence) -> Text {
    let mut text = Text::default();
    text.push(GREEN.bold(), "A test was accepted.")
        .push(PLAIN, "\n");
    rows(evidence, &mut text);
    text
}

fn rows(evidence: &Evidence, text: &mut Text) {
    push_rows(&gate::evidence_rows(evidence), text);
}

/// Formats names and texts as indented rows. A text may have several lines.
pub(super) fn push_rows(rows: &[(&str, String)], text: &mut Text) {
    for (name, value) in rows {
        for (i, line) in value.lines().enumerate() {
            let name = if i == 0 { *name } else { "" };
            text.push(PLAIN, "  ")
                .push(DIM, format!("{name:<10}"))
                .push(PLAIN, format!(" {}\n", escape_line(line)));
        }
    }
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
        text.push(style, escape_line(line)).push(PLAIN, "\n");
    }
}

#[cfg(test)]
mod tests;
