#![allow(clippy::unwrap_used)]
use super::*;
use crate::clover::blanks::{blanks, trivial};
use crate::clover::extract::isolated_tests;
use crate::clover::problem::tests::problem;
use crate::clover::rejections::Counts;
use testwright_tools::workspace::Layout;

const FILE: &str = "\
import a

class TestA:
    def test_x(self, b):
        c = a.make()
        assert c.size(b) == 12, 'size'
        assert not c.closed

def late(): pass
";

fn blank(at: usize) -> Problem {
    let tests = isolated_tests(
        "test_a.py",
        FILE,
        &Layout::default(),
        &mut Counts::default(),
    );
    let blank = blanks(&tests[0], &mut Counts::default()).remove(at);
    problem("test_a.py", "TestA::test_x", blank.text, blank.question)
}

fn target() -> Problem {
    let tests = isolated_tests(
        "test_a.py",
        FILE,
        &Layout::default(),
        &mut Counts::default(),
    );
    let question = Question::Target {
        path: "a.py".to_owned(),
        qualified_name: "make".to_owned(),
        is_class: false,
    };
    problem(
        "test_a.py",
        "TestA::test_x",
        tests[0].text.clone(),
        question,
    )
}

fn filled(at: usize, form: Form, code: &str) -> Result<(String, bool), RejectedAnswer> {
    let usable = read(&blank(at), form, code)?;
    let filled = usable.filled.unwrap();
    assert!(
        usable.source.contains(&filled.assertion),
        "{}",
        usable.source
    );
    assert!(usable.source.ends_with("\n\ndef late(): pass\n"));
    Ok((filled.assertion, filled.is_exact))
}

#[test]
fn blanks_are_filled_in_both_forms() {
    let golden = "assert c.size(b) == 12, 'size'";
    for (form, code, exact) in [
        (Form::Operand, "12", true),
        (Form::Operand, " `12`\n", true),
        (Form::Assertion, "assert c.size( b ) == 12, \"size\"", true),
        (
            Form::Assertion,
            "        assert (c.size(b) == 12), 'size'\n",
            true,
        ),
        (
            Form::Assertion,
            "c = a.make()\nassert c\nassert c.size(b) == 12, 'size'\n",
            true,
        ),
    ] {
        assert_eq!(
            filled(1, form, code),
            Ok((golden.to_owned(), exact)),
            "{code}"
        );
    }
    let other = filled(1, Form::Assertion, "assert (c.size(b) == 3 *\n  4), 'size'").unwrap();
    assert_eq!(
        other,
        ("assert c.size(b) == (3 *\n  4), 'size'".to_owned(), false)
    );
    assert_eq!(
        filled(2, Form::Operand, "c.closed"),
        Ok(("assert not c.closed".to_owned(), true))
    );
}

#[test]
fn only_the_blank_may_change() {
    for (at, form, code) in [
        (1, Form::Assertion, "assert True"),
        (1, Form::Assertion, "assert c.size(b) == c.size(b)"),
        (1, Form::Assertion, "assert c.size(b) >= 0, 'size'"),
        (1, Form::Operand, "12 or True"),
        (1, Form::Operand, "12, 'other'"),
        (1, Form::Operand, "12\nimport os"),
        (2, Form::Assertion, "assert c.closed"),
    ] {
        assert_eq!(filled(at, form, code), Err(wrong_assertion()), "{code}");
    }
    for (form, code) in [
        (Form::Operand, "I think it is twelve"),
        (Form::Assertion, "I think it is 12"),
        (Form::Assertion, "\n"),
    ] {
        assert!(
            matches!(filled(1, form, code), Err(RejectedAnswer::Gibberish(_))),
            "{code}"
        );
    }
    let constant = read(&blank(2), Form::Operand, "False")
        .unwrap()
        .filled
        .unwrap();
    assert!(trivial(&constant.comparison).is_some());
}

#[test]
fn test_files_are_completed_if_partial() {
    let problem = target();
    let full = read(&problem, Form::Full, FILE).unwrap();
    assert_eq!(full.source, FILE);
    for part in [
        "c = a.make()\nassert c",
        "    c = a.make()\n    assert c\n",
        "def test_x(self, b):\n    c = a.make()\n    assert c\n",
        "class TestA:\n    def test_x(self, b):\n        c = a.make()\n        assert c\n",
    ] {
        let source = read(&problem, Form::Part, part).unwrap().source;
        let expected = "    def test_x(self, b):\n        c = a.make()\n        assert c\n\ndef late(): pass\n";
        assert!(source.ends_with(expected), "{part}: {source}");
    }
}

#[test]
fn unusable_test_file_is_refused() {
    let problem = target();
    let refused = |code: &str| match read(&problem, Form::Full, code) {
        Err(RejectedAnswer::Refused(why)) => why,
        other => format!("{other:?}"),
    };
    assert_eq!(
        refused("def test_y(): pass\n"),
        "the answer does not contain the test TestA::test_x"
    );
    assert!(
        refused("class TestA:\n    def test_x(self:\n        pass\n")
            .starts_with("the answer does not parse")
    );
    assert!(refused(&format!("import coverage\n{FILE}")).contains("uses `coverage`"));
    let gibberish = read(&problem, Form::Full, "the the the 1. ] the");
    assert!(matches!(gibberish, Err(RejectedAnswer::Gibberish(_))));
}
