#![allow(clippy::unwrap_used)]
use super::*;
use crate::clover::evaluation::answer_costs;

fn reply(problem: &str, end: ReplyEnd) -> StoredReply {
    StoredReply {
        problem: problem.to_owned(),
        approach: single_call(),
        model: "m".to_owned(),
        budget: Budget::Tokens(4),
        form: Form::Assertion,
        request_sha256: "r".to_owned(),
        end,
        text: "It is\n```python\nassert x == 1\n```\n".to_owned(),
        calls: 1,
        usage: Usage::default(),
        seconds: 1.5,
        shared: false,
    }
}

#[test]
fn equal_requests_share_successful_replies() {
    let folder = tempfile::tempdir().unwrap();
    let replies = open(folder.path()).unwrap();
    let failed = ReplyEnd::NoReply {
        reason: "busy".to_owned(),
    };
    replies.add(reply("a", failed)).unwrap();
    assert_eq!(to_request(&replies, "m", "r"), None);
    let of_agent = StoredReply {
        approach: "cover".to_owned(),
        ..reply("b", ReplyEnd::Complete)
    };
    assert_eq!(of_agent.answer().code, of_agent.text);
    replies.add(of_agent).unwrap();
    assert_eq!(to_request(&replies, "m", "r"), None);
    replies.add(reply("b", ReplyEnd::Complete)).unwrap();
    let stored_reply = to_request(&replies, "m", "r").unwrap();
    assert_eq!(stored_reply.problem, "b");
    assert_eq!(stored_reply.answer().code, "assert x == 1\n");
    drop(replies);
    assert_eq!(stored(folder.path()).unwrap().len(), 3);
}

#[test]
fn shared_reply_has_the_cost_of_its_original() {
    let folder = tempfile::tempdir().unwrap();
    let replies = open(folder.path()).unwrap();
    let original = StoredReply {
        calls: 2,
        ..reply("a", ReplyEnd::Complete)
    };
    let shared = StoredReply {
        shared: true,
        ..reply("b", ReplyEnd::Complete)
    };
    let reason = "busy".to_owned();
    let failed = reply("c", ReplyEnd::NoReply { reason });
    for reply in [failed, original, shared] {
        replies.add(reply).unwrap();
    }
    let costs = answer_costs(folder.path()).unwrap();
    let calls: Vec<u32> = costs.values().map(|cost| cost.calls).collect();
    assert_eq!(calls, [2, 2, 1]);
}
