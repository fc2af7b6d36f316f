#![allow(clippy::unwrap_used)]
use super::*;
use crate::clover::extract::isolated_tests;
use crate::clover::problem::golden;
use testwright_tools::workspace::Layout;

fn find_blanks(body: &str) -> (Vec<Blank>, Counts) {
    let text = format!("import a\n\ndef test_x(b):\n{body}\n\ndef late(): pass\n");
    let tests = isolated_tests(
        "test_a.py",
        &text,
        &Layout::default(),
        &mut Counts::default(),
    );
    let mut counts = Counts::default();
    (blanks(&tests[0], &mut counts), counts)
}

#[test]
fn assertion_becomes_the_last_line() {
    let (blanks, _) = find_blanks(
        "    with a:\n        assert a.x(b) == 'one', 'why'\n    assert not b\n    b()",
    );
    let pairs: Vec<(String, String)> = blanks
        .iter()
        .map(|blank| {
            (
                blank.reference().to_owned(),
                golden(&blank.text, &blank.question),
            )
        })
        .collect();
    assert_eq!(pairs.len(), 3);
    assert_eq!(pairs[1].0, "'one'");
    assert_eq!(
        pairs[1].1,
        "import a\n\ndef test_x(b):\n    with a:\n        assert a.x(b) == 'one', 'why'\n\ndef late(): pass\n"
    );
    assert_eq!(pairs[2].0, "b");
    assert!(pairs[2].1.contains("    assert not b\n\ndef late"));
}

#[test]
fn trivial_and_copied_assertions_are_rejected() {
    let (blanks, counts) = find_blanks(
        "    assert True\n    assert 1 == 2\n    assert b == b\n    assert 1 < b < 3\n    assert a == b\n    assert (a) == b, 'again'\n    def f():\n        assert b",
    );
    assert_eq!(blanks.len(), 2);
    assert_eq!(counts.dropped[&DropReason::TrivialAssertion], 5);
    assert_eq!(counts.dropped[&DropReason::ChainedComparison], 1);
    assert_eq!(counts.dropped[&DropReason::InContext], 2);
    assert_eq!(counts.dropped[&DropReason::NestedAssertion], 1);
    assert_eq!(counts.found, 11);
}

#[test]
fn common_references_are_left_out() {
    let (mut blanks, _) = find_blanks("    assert b == 200\n    assert b.x == 3");
    for n in 0..200 {
        let mut other = blanks[0].clone();
        other.question = Question::Assertion {
            prefix: String::new(),
            reference: format!("r{}", n.max(2)),
            suffix: String::new(),
        };
        blanks.push(other);
    }
    let mut counts = Counts::default();
    let remaining_blanks = without_common(blanks, &mut counts);
    assert_eq!(counts.dropped[&DropReason::CommonReference], 3);
    assert_eq!(remaining_blanks.len(), 201);
}
