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
    assert!(long.ends_with("```\nThe rest is omitted, because it is too long for a comment.\n"));
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
