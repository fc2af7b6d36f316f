//! Texts of comments and pull requests. Text from users and models is put into code blocks, where it cannot create
//! mentions, links or HTML.

use testwright_tools::visible;

use crate::store::{JobStatus, StoredRun};
use testwright_agent::agent::Outcome;
use testwright_agent::gate::{Evidence, evidence_rows};

/// Maximum characters of a code block; GitHub allows 65,536 in a comment.
const MAX_BLOCK_LEN: usize = 24_000;

/// The number of the pull request, or why it was not opened.
pub(super) type PullRequestResult = Result<u64, String>;

/// Formats the answer to an issue.
pub(super) fn format_answer(
    run: &StoredRun,
    outcome: Option<&Outcome>,
    opened: Option<&PullRequestResult>,
    command: &str,
) -> String {
    let mut text = match (run.status, outcome) {
        (JobStatus::Accepted, Some(Outcome::Accepted { patch, evidence })) => {
            accepted(run, patch, evidence, opened, command)
        }
        (JobStatus::Cancelled, _) => "The run was cancelled before it finished.\n".to_owned(),
        (JobStatus::Refused, Some(Outcome::Withheld { .. })) => {
            "testwright wrote a test, but does not propose it: the evidence that it reproduces the issue is too weak.\n".to_owned()
        }
        (JobStatus::Refused, Some(Outcome::Refused { findings, .. })) => format!(
            "testwright wrote a test, but does not propose it, because the checks found these problems:\n\n{}",
            code_block("text", &findings.join("\n"))
        ),
        (JobStatus::Nothing, Some(outcome)) => format!(
            "testwright could not write a test that fails for the reason stated in this issue.\n\n{}",
            code_block("text", &outcome.summary())
        ),
        _ => "testwright could not finish: its server or the model service failed. This says nothing about the issue.\n"
            .to_owned(),
    };
    text.push_str(&format!("\nRun `{}`\n", run.id));
    text
}

fn accepted(
    run: &StoredRun,
    patch: &str,
    evidence: &Evidence,
    opened: Option<&PullRequestResult>,
    command: &str,
) -> String {
    let commit = run.record_value()["commit"].as_str().map(short_commit);
    let at = commit.map_or_else(String::new, |commit| format!(" (commit {commit})"));
    let more = match opened {
        Some(Ok(number)) => format!(
            "Draft pull request #{number} adds it, marked as expected to fail until the issue is fixed."
        ),
        Some(Err(why)) => format!("No pull request was opened: {why}."),
        None => format!("To get it as a draft pull request, comment `{command} pr`."),
    };
    format!(
        "testwright wrote a test that fails on the current code{at} for the reason stated in this issue.\n\n{}\n{}\n{more}\n",
        code_block("diff", patch),
        evidence_block(evidence)
    )
}

/// Formats the evidence for a test.
pub(super) fn evidence_block(evidence: &Evidence) -> String {
    let mut lines = String::new();
    for (name, value) in evidence_rows(evidence) {
        for (i, line) in value.lines().enumerate() {
            let name = if i == 0 { name } else { "" };
            lines.push_str(&format!("{name:<10} {line}\n"));
        }
    }
    format!("Evidence:\n\n{}", code_block("text", &lines))
}

/// Formats a code block that its text cannot close.
pub(super) fn code_block(language: &str, text: &str) -> String {
    let visible_text = visible(text.trim_end());
    let (body, cut) = match visible_text.char_indices().nth(MAX_BLOCK_LEN) {
        Some((end, _)) => (
            &visible_text[..end],
            "The rest is omitted, because it is too long for a comment.\n",
        ),
        None => (visible_text.as_ref(), ""),
    };
    let runs = body.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or_default().max(2) + 1);
    format!("{fence}{language}\n{body}\n{fence}\n{cut}")
}

/// Shortens the hash of a commit; any other text is omitted.
pub(super) fn short_commit(commit: &str) -> String {
    let digits = commit.chars().take(12);
    digits.filter(char::is_ascii_hexdigit).collect()
}

#[cfg(test)]
mod tests;
