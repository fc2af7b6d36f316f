use super::*;

/// Returns each exception with its code or functions.
fn expected(prose: &str) -> Vec<(String, Vec<String>)> {
    let all = expected_exceptions(prose).into_iter();
    all.map(|e| {
        (
            e.exception.unwrap_or_default(),
            [e.code, e.functions].concat(),
        )
    })
    .collect()
}

fn one(exception: &str, code: &[&str]) -> Vec<(String, Vec<String>)> {
    let code = code.iter().map(|c| (*c).to_owned()).collect();
    vec![(exception.to_owned(), code)]
}

#[test]
fn code_before_verb_should_raise() {
    for sentence in [
        "`x.pop(-15)` should raise `IndexError`.",
        "`x.pop(-15)` must throw an IndexError, as lists do.",
        "Here x.pop(-15) ought to raise `IndexError` and leave the set alone.",
        "I expected `x.pop(-15)` to raise `IndexError`, as lists do, and the set to stay as it was.",
        "I would expect that `x.pop(-15)` raises `IndexError`.",
        "`x.pop(-15)` returns `4`, but it should fail with an `IndexError`.",
        "`x.pop(-15)` is expected to `raise IndexError` like `[].pop(-15)`.",
        "Like `[].pop(-15)`, `x.pop(-15)` should raise an `IndexError`.",
        "`x.pop(-15)` returns `4`. It should raise `IndexError`.",
        "`pop` should raise `IndexError` for `x.pop(-15)`.",
        "`x.pop(-15)` should raise `IndexError` instead of `4`.",
    ] {
        assert_eq!(
            expected(sentence),
            one("IndexError", &["x.pop(-15)"]),
            "{sentence}"
        );
    }
}

#[test]
fn code_after_exception_should_raise() {
    for sentence in [
        "I would expect `IndexError` from `x.pop(-15)`.",
        "An `IndexError` should be raised by `x.pop(-15)`.",
        "I expected an `IndexError` when calling `x.pop(-15)`, not a value.",
        "I expect IndexError to be raised by `x.pop(-15)`.",
        "When `x.pop(-15)` is called, `IndexError` should be raised.",
    ] {
        assert_eq!(
            expected(sentence),
            one("IndexError", &["x.pop(-15)"]),
            "{sentence}"
        );
    }
}

#[test]
fn several_expressions_share_an_exception() {
    assert_eq!(
        expected("I expected `x[-10]` and `x.pop(-15)` to raise `IndexError`, as lists do."),
        one("IndexError", &["x[-10]", "x.pop(-15)"])
    );
    assert_eq!(
        expected("`f(1)` should raise ValueError and `f('a')` should raise `TypeError`."),
        [one("ValueError", &["f(1)"]), one("TypeError", &["f('a')"])].concat()
    );
}

#[test]
fn sentence_may_name_no_code() {
    assert_eq!(
        expected("I expected an `IndexError`."),
        one("IndexError", &[])
    );
    assert_eq!(
        expected("low should raise a ValueError for None"),
        one("ValueError", &[])
    );
    assert_eq!(expected("`low()` should fail."), one("", &["low()"]));
}

#[test]
fn other_sentences_expect_no_exception() {
    for sentence in [
        "`x.pop(-15)` should not raise `IndexError`.",
        "I did not expect `x.pop(-15)` to raise `IndexError`.",
        "As expected, `x.pop(-15)` raises `IndexError`.",
        "I expected `4`, but `x.pop(-15)` raises `IndexError`.",
        "`x.pop(-15)` raises an unexpected `IndexError`.",
        "I expected no `IndexError` to be raised.",
        "`x.pop(-15)` should return `4`.",
        "This should raise the limit.",
    ] {
        assert!(
            expected(sentence).is_empty(),
            "{sentence}: {:?}",
            expected(sentence)
        );
    }
}
