#![allow(clippy::unwrap_used)]
use super::*;

const ISSUE: &str = "Slugs lose digits\n\nI use the library daily. Calling slugify('Version 2') returns 'version'. \
                     I expected 'version-2' there.\n\nThanks for e.g. the docs!";

#[test]
fn matching_sentence_is_found() {
    let sentence = best_sentence(
        ISSUE,
        "AssertionError: assert 'version' == 'version-2' where slugify('Version 2')",
    );
    assert_eq!(
        sentence.unwrap(),
        "Calling slugify('Version 2') returns 'version'."
    );
}

#[test]
fn wrapped_sentence_is_found_whole() {
    let issue = "# Bug\nThis raises a TypeError, as the check at\nline 792 compares None.\n\n- first item\n  goes on\n\
                 ```\nx = None\ny = 2\n```\nLast words here.";
    assert_eq!(
        best_sentence(issue, "TypeError compares None").unwrap(),
        "This raises a TypeError, as the check at line 792 compares None."
    );
    let texts: Vec<String> = sentences(issue).into_iter().map(|part| part.text).collect();
    assert_eq!(
        texts[1..],
        ["- first item goes on", "x = None", "Last words here."]
    );
}

#[test]
fn prose_comes_before_similar_code() {
    let issue = "slugify with max_length can end in a separator\n\n```python\n>>> slugify(\"How to\", max_length=7)\n\
                 'how-to-'\n```\n";
    let failure = "assert slugify(\"How to\", max_length=7) == \"how-to\"";
    assert_eq!(
        best_sentence(issue, failure).unwrap(),
        "slugify with max_length can end in a separator"
    );
    let failure = "KeyError: 'how'";
    assert_eq!(best_sentence(issue, failure).unwrap(), "'how-to-'");
}

#[test]
fn imports_and_values_are_not_evidence() {
    let issue = "Negative index fails\n\n>>> from boltons.setutils import IndexedSet\n>>> x = IndexedSet(range(8))\n\
                 >>> 4 in x\nFalse\n";
    let failure = "AssertionError: assert False from boltons.setutils IndexedSet";
    assert_eq!(
        best_sentence(issue, failure).unwrap(),
        ">>> x = IndexedSet(range(8))"
    );
    assert_eq!(best_sentence(issue, "assert False"), None);
    let failure = "ImportError: cannot import name IndexedSet from boltons.setutils";
    assert!(best_sentence(issue, failure).unwrap().contains("import"));
    for (code, expected) in [
        (">>> import a.b as c, d", true),
        ("`from a import (b, c as d)`", true),
        ("In [1]: from . import *  # all", true),
        ("import of `a` fails", false),
        ("from a import b; b()", false),
        ("imports = 3", false),
    ] {
        assert_eq!(is_import(without_prompt(code)), expected, "{code}");
    }
}

#[test]
fn common_words_and_versions_are_not_evidence() {
    let issue = "Slugs end with a hyphen\n\nI use slugs for files, and this is not right: it gives 127 of 128.\n\n\
                 The code is assert slugify(x).\n\nslugs 0.3.0, Python 3.11\n";
    let constant = "AssertionError test_a.py::test_not_this\ndef test_not_this():\n";
    for code in [
        "    assert False",
        "    return self.python.version",
        "    import slugs\n    assert False",
        "    from slugs import slugify as slug\n    assert 127 == 2",
    ] {
        assert_eq!(
            best_sentence(issue, &format!("{constant}{code}")),
            None,
            "{code}"
        );
    }
    for (code, expected) in [
        ("    assert slugs.cut()", "Slugs end with a hyphen"),
        (
            "    assert 127 == 128",
            "I use slugs for files, and this is not right: it gives 127 of 128.",
        ),
        ("    assert slugify(1)", "The code is assert slugify(x)."),
    ] {
        let sentence = best_sentence(issue, &format!("{constant}{code}"));
        assert_eq!(sentence.as_deref(), Some(expected), "{code}");
    }
    for (text, expected) in [
        ("slugs==0.3.0", true),
        ("Python version: 3.9", true),
        ("numpy 1.26.4 and Python 3.12", true),
        ("It fails since slugs 0.3.0", false),
        ("Expected 0.5, got 0.25", false),
        ("python 3", false),
        ("f(1) = 1.2.3", false),
    ] {
        assert_eq!(is_version_list(text), expected, "{text}");
    }
}

#[test]
fn quotations_come_from_issue() {
    let quoted = |reason| quoted_sentence(ISSUE, reason);
    let expected = "I expected 'version-2' there.";
    for reason in [
        "The issue says \"I expected 'version-2' there.\" and “library daily”.",
        "It says “I expected\n 'version-2' there.”, which fails.",
    ] {
        assert_eq!(quoted(reason).as_deref(), Some(expected), "{reason}");
    }
    assert_eq!(quoted("\"I expected nothing of the kind\""), None);
    assert_eq!(quoted("it's \"daily\""), None);
    assert_eq!(
        quoted("Calling slugify('Version 2') returns 'version'.").as_deref(),
        Some("Calling slugify('Version 2') returns 'version'.")
    );
    let short = |text| longest_quotation(ISSUE, text, 4);
    assert_eq!(
        short("assert 'version' == 'other'").as_deref(),
        Some("version")
    );
    assert_eq!(short("assert 'x' the docs 'y'"), None);
}

#[test]
fn unrelated_failure_has_no_sentence() {
    assert_eq!(best_sentence(ISSUE, "zzz qqq"), None);
    assert_eq!(best_sentence("", "anything"), None);
}
