#![allow(clippy::unwrap_used)]
use super::*;
use crate::trajectory::FileState;
use testwright_models::{Message, ToolResult};

fn reply(purpose: Purpose, content: &str) -> Event {
    Event::Reply {
        purpose,
        request: String::new(),
        messages: vec![],
        reply: Reply {
            content: content.into(),
            ..Reply::default()
        },
        seconds: 0.0,
    }
}

fn answer(id: &str) -> Event {
    Event::Answer(RecordedAnswer {
        tool: "search".into(),
        result: ToolResult {
            id: id.into(),
            content: String::new(),
        },
        refused: false,
        data: serde_json::Value::Null,
        seconds: 0.0,
    })
}

fn state(path: &str, content: Option<&str>, base: bool) -> Event {
    Event::State {
        files: vec![FileState {
            path: path.into(),
            content: content.map(str::to_owned),
            base,
        }],
        omitted: Vec::new(),
    }
}

#[test]
fn events_are_ordered_without_messages() {
    let message = Event::Message {
        message: Message::User {
            content: "x".into(),
        },
    };
    let mut replay = Replay::resume(vec![
        message,
        reply(Purpose::Step, "one"),
        answer("a"),
        answer("b"),
    ]);
    assert!(replay.answer("a").is_none());
    assert_eq!(replay.reply(Purpose::Step).unwrap().reply.content, "one");
    assert!(replay.answer("b").is_none(), "a comes first");
    assert!(replay.answer("a").is_some());
    assert!(replay.answer("b").is_some());
    assert!(replay.is_over());
}

#[test]
fn review_before_answer_is_skipped() {
    let mut full_replay = Replay::resume(vec![reply(Purpose::Review, "YES"), answer("a")]);
    assert!(full_replay.answer("a").is_some());
    let mut torn = Replay::resume(vec![reply(Purpose::Review, "YES")]);
    assert!(torn.take_side_replies("a").is_empty());
    assert!(torn.answer("a").is_none());
    assert_eq!(torn.reply(Purpose::Review).unwrap().reply.content, "YES");
}

#[test]
fn review_before_answer_is_returned_once() {
    let mut replay = Replay::resume(vec![reply(Purpose::Review, "YES"), answer("a")]);
    assert!(replay.take_side_replies("b").is_empty());
    let replies = replay.take_side_replies("a");
    let contents: Vec<&str> = replies.iter().map(|(r, _)| r.content.as_str()).collect();
    assert_eq!(contents, ["YES"]);
    assert!(replay.take_side_replies("a").is_empty());
    assert!(replay.answer("a").is_some());
}

#[test]
fn missing_reply_is_replayed() {
    let missing = |purpose| Event::NoReply {
        purpose,
        cause: NoReplyCause::TimeUp {
            call_started: false,
        },
    };
    let mut full_replay = Replay::resume(vec![missing(Purpose::Review), answer("a")]);
    assert!(full_replay.answer("a").is_some(), "a review on the way");
    let mut torn = Replay::resume(vec![missing(Purpose::Review)]);
    assert!(!torn.is_over());
    assert_eq!(torn.no_reply(Purpose::Step), None);
    assert!(torn.no_reply(Purpose::Review).is_some());
    assert!(torn.is_over());
    let mut step = Replay::resume(vec![missing(Purpose::Step), answer("a")]);
    assert!(step.answer("a").is_none());
}

#[test]
fn draft_end_is_replayed() {
    let ended = Event::DraftEnded {
        number: 1,
        limit: None,
        reason: Some("the tool server ended".to_owned()),
    };
    let mut replay = Replay::resume(vec![reply(Purpose::Step, "one"), ended, answer("b")]);
    assert_eq!(replay.draft_outcome(), None, "a reply comes first");
    assert!(replay.reply(Purpose::Step).is_some());
    assert!(matches!(
        replay.draft_outcome(),
        Some(Outcome::Nothing { reason }) if reason == "the tool server ended"
    ));
    assert!(replay.draft_ended());
    assert_eq!(replay.draft_outcome(), None);
}

#[test]
fn abandoned_recording_keeps_state() {
    let mut replay = Replay::resume(vec![
        state("a.py", Some("MQ=="), false),
        answer("a"),
        state("a.py", Some("Mg=="), false),
        reply(Purpose::Prompt, "one"),
    ]);
    assert!(replay.has_answer("a") && !replay.has_answer("b"));
    assert!(!replay.has_reply(""), "an answer comes first");
    assert_eq!(replay.abandon().len(), 3);
    assert!(replay.is_over());
    assert_eq!(replay.take_state()["a.py"].as_deref(), Some("MQ=="));
}

#[test]
fn file_state_accumulates_changes() {
    let mut replay = Replay::resume(vec![
        state("a.py", Some("MQ=="), false),
        state("b.py", None, false),
        state("a.py", Some("Mg=="), false),
        state("c.py", Some("Mw=="), false),
        state("c.py", None, true),
    ]);
    assert!(replay.is_over());
    let state = replay.take_state();
    let expected: Contents = [("a.py", Some("Mg==")), ("b.py", None)]
        .map(|(path, content)| (path.to_owned(), content.map(str::to_owned)))
        .into();
    assert_eq!(state, expected);
}
