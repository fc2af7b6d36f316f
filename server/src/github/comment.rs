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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::store::JobId;

    #[test]
    fn block_text_cannot_close_block() {
        let hostile = "```\n@everyone <img src=x>\n`````\n<!-- -->\u{202e}";
        let block = code_block("diff", hostile);
        assert_eq!(
            block,
            "``````diff\n```\n@everyone <img src=x>\n`````\n<!-- -->\\u{202e}\n``````\n"
        );
        assert_eq!(code_block("text", "a"), "```text\na\n```\n");
        let long = code_block("text", &"ä".repeat(MAX_BLOCK_LEN + 1));
        assert!(
            long.ends_with("```\nThe rest is omitted, because it is too long for a comment.\n")
        );
        assert_eq!(long.matches('ä').count(), MAX_BLOCK_LEN);
    }

    fn run(status: JobStatus, record: &Outcome) -> StoredRun {
        let mut record = serde_json::to_value(record).unwrap();
        record["commit"] = "0123456789abcdef".into();
        StoredRun {
            id: JobId::parse("0000000000000000000").unwrap(),
            created_at: 0,
            started_at: None,
            ended_at: None,
            status,
            request: String::new(),
            title: String::new(),
            repository: String::new(),
            approach: String::new(),
            model: String::new(),
            attempt: 1,
            cancel: false,
            patch: None,
            record: Some(record.to_string()),
            owner: String::new(),
            batch: String::new(),
            traceparent: None,
            returns: 0,
            earlier_returns: 0,
            return_reason: None,
            not_before: 0,
        }
    }

    #[test]
    fn answers_keep_untrusted_text_in_blocks() {
        let hostile = "@team ``` <b> #1 https://example.org";
        let evidence = Evidence {
            issue_sentence: Some(hostile.to_owned()),
            ..Evidence::default()
        };
        let accepted = Outcome::Accepted {
            patch: format!("+{hostile}\n"),
            evidence: Box::new(evidence),
        };
        let refused = Outcome::Refused {
            patch: hostile.to_owned(),
            findings: vec![hostile.to_owned()],
        };
        let nothing = Outcome::Nothing {
            reason: hostile.to_owned(),
        };
        let machine = Outcome::Infrastructure {
            message: "the secret folder is full".to_owned(),
            hint: None,
            shortage: None,
        };
        let why = "this is a dry run".to_owned();
        let mut answers = String::new();
        for (status, outcome, opened) in [
            (JobStatus::Accepted, &accepted, None),
            (JobStatus::Accepted, &accepted, Some(Ok(5))),
            (JobStatus::Accepted, &accepted, Some(Err(why))),
            (JobStatus::Refused, &refused, None),
            (JobStatus::Nothing, &nothing, None),
            (JobStatus::Infrastructure, &machine, None),
            (JobStatus::Cancelled, &machine, None),
        ] {
            let run = run(status, outcome);
            let text = format_answer(&run, Some(outcome), opened.as_ref(), "/testwright");
            assert!(!text.contains("secret folder"));
            answers.push_str(&format!("{text}--\n"));
        }
        let mut fence = None;
        for line in answers.lines() {
            match &fence {
                None if line.starts_with("```") => {
                    fence = Some(line.trim_end_matches(char::is_alphabetic).to_owned());
                }
                None => assert!(!line.contains("@team"), "{line}"),
                Some(end) if line == end => fence = None,
                Some(_) => {}
            }
        }
        insta::assert_snapshot!(answers);
    }

    #[test]
    fn short_commit_drops_other_text() {
        assert_eq!(short_commit("0123456789abcdef"), "0123456789ab");
        assert_eq!(short_commit("@team `x`"), "ea");
    }
}
