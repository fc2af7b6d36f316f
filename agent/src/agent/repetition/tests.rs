use serde_json::json;
use testwright_models::{MalformedCall, ToolCall};

use super::*;

fn call(pattern: &str) -> Reply {
    Reply {
        calls: vec![ToolCall::new("a", "search", json!({ "pattern": pattern }))],
        ..Reply::default()
    }
}

fn unreadable(text: &str, finish: Finish) -> Reply {
    Reply {
        malformed: vec![MalformedCall {
            id: None,
            name: None,
            text: text.to_owned(),
            problem: "no JSON".to_owned(),
            extra: Default::default(),
        }],
        finish,
        ..Reply::default()
    }
}

/// Returns the numbers of the replies after which the model is told, and the run ends.
fn told_and_ended(steps: impl IntoIterator<Item = (Reply, String)>) -> (Vec<usize>, usize) {
    let mut repetition = Repetition::default();
    let mut told = Vec::new();
    for (at, (reply, answer)) in steps.into_iter().enumerate() {
        match repetition.add(&reply, &[&answer]) {
            Advice::GoOn => {}
            Advice::Tell { .. } => told.push(at + 1),
            Advice::End(_) => return (told, at + 1),
        }
    }
    (told, 0)
}

#[test]
fn repeated_calls_end_after_one_warning() {
    let answer = |n: i32| {
        format!(
            "none at 0x{n:x} in 0.{n} s, 10:00:{n:02},123, /tmp/pytest-of-root/pytest-{n}/x, tmpabcd_1{n:02}"
        )
    };
    let same = (0..20).map(|n| (call("x"), answer(n)));
    assert_eq!(told_and_ended(same), (vec![3], 6));
    let in_turn = (0..20).map(|n| (call(["x", "y"][n % 2]), "none".to_owned()));
    assert_eq!(told_and_ended(in_turn), (vec![4], 7));
    let three = (0..20).map(|n| (call(["x", "y", "z"][n % 3]), "none".to_owned()));
    assert_eq!(told_and_ended(three), (vec![5], 8));
}

#[test]
fn unreadable_calls_end_after_one_warning() {
    let same = (0..20).map(|_| (unreadable("{", Finish::Stop), String::new()));
    assert_eq!(told_and_ended(same), (vec![3], 6));
    // The text differs each time.
    let cut = (0..20).map(|n| (unreadable(&"x".repeat(n), Finish::Length), String::new()));
    assert_eq!(told_and_ended(cut), (vec![3], 6));
}

#[test]
fn known_calls_do_not_hide_unreadable_ones() {
    let mut repetition = Repetition::default();
    let ended = (0..40).find(|n| {
        let reply = match n % 2 {
            0 => unreadable(&"x".repeat(*n), Finish::Stop),
            _ => call("x"),
        };
        matches!(repetition.add(&reply, &["none"]), Advice::End(_))
    });
    assert!(ended.is_some_and(|n| n < 16), "{ended:?}");
}

#[test]
fn progress_is_not_interrupted() {
    let other_answers = (0..20).map(|n| (call("x"), n.to_string()));
    assert_eq!(told_and_ended(other_answers), (vec![], 0));
    let other_calls = (0..20).map(|n| (call(&n.to_string()), "none".to_owned()));
    assert_eq!(told_and_ended(other_calls), (vec![], 0));
    // Edits between equal runs of tests.
    let edits = (0..20).map(|n| match n % 2 {
        0 => (call("run"), "1 failed".to_owned()),
        _ => (call(&format!("edit {n}")), "edited".to_owned()),
    });
    assert_eq!(told_and_ended(edits), (vec![], 0));
    let mut repetition = Repetition::default();
    for _ in 0..20 {
        assert_eq!(repetition.add(&call("x"), &["none"]), Advice::GoOn);
        repetition.forget();
    }
}

#[test]
fn reason_names_the_cause() {
    let mut repetition = Repetition::default();
    let mut last = Advice::GoOn;
    for n in 0..6 {
        last = repetition.add(&unreadable(&"x".repeat(n), Finish::Length), &[]);
    }
    let expected = "the last 6 replies made no progress, although the model was told: each reached its token limit in the middle of a tool call; raise `max-tokens` in [model]";
    assert_eq!(last, Advice::End(expected.to_owned()));
}
