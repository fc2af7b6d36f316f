#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use proptest::prelude::*;
use similar::TextDiff;

use super::*;

const OLD: &str = "\
import pkg


def test_one():
    assert pkg.f(1) == 1


def test_two():
    assert pkg.f(2) == 2


class TestAll:
    def test_three(self):
        assert pkg.f(3) == 3
";

fn old() -> BTreeMap<String, String> {
    BTreeMap::from([("tests/test_a.py".to_owned(), OLD.to_owned())])
}

fn new(reply: &str) -> (String, Vec<String>) {
    let proposed = read(reply, &old()).unwrap();
    let content = proposed.files["tests/test_a.py"].clone().unwrap();
    (content, proposed.repairs)
}

fn after_two(added: &str) -> String {
    OLD.replace("f(2) == 2\n", &format!("f(2) == 2\n{added}"))
}

const ADDED: &str = "\n\ndef test_new():\n    assert pkg.f(4) == 4\n";

/// The same change, as it is written in all sorts of ways.
#[test]
fn diffs_are_read_as_models_write_them() {
    let hunk = " def test_two():\n     assert pkg.f(2) == 2\n+\n+\n+def test_new():\n+    assert pkg.f(4) == 4\n";
    let header = "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n";
    let right = format!("{header}@@ -8,2 +8,6 @@\n{hunk}");
    let (content, repairs) = new(&right);
    assert_eq!((content, repairs), (after_two(ADDED), vec![]));
    let git = "diff --git a/tests/test_a.py b/tests/test_a.py\nindex 1..2 100644\n";
    for (reply, repair) in [
        (format!("{git}{right}"), ""),
        (
            format!("Here it is:\n```diff\n{right}```\nIt fails today.\n"),
            "",
        ),
        (right.replace('\n', "\r\n"), "CRLF"),
        (
            right.replace("-8,2 +8,6", "-80,3 +1,99"),
            "numbers of a hunk are wrong",
        ),
        (right.replace(" -8,2 +8,6 @@", ""), "no line numbers"),
        (
            right.replace(" -8,2 +8,6 @@", " def test_two():"),
            "no line numbers",
        ),
        (
            right
                .replace("a/tests", "tests")
                .replace("b/tests", "tests"),
            "",
        ),
        (right.replace("/tests/", "/"), "is `tests/test_a.py`"),
        (
            right.replace("--- a/tests/test_a.py\n", ""),
            "lacks its first line",
        ),
        (right.replace("\n def", "\ndef"), "no sign"),
        (
            right.replace("f(2) == 2", "f(2) == 2   "),
            "line ends differ",
        ),
        (format!("{right}\nThis test fails on the old code.\n"), ""),
        (
            right.replace(" def test_two", " # not there\n def test_two"),
            "edge is wrong",
        ),
    ] {
        let (content, repairs) = new(&reply);
        assert_eq!(content, after_two(ADDED), "{reply}");
        let is_told = repairs.iter().any(|told| told.contains(repair));
        assert!(repair.is_empty() || is_told, "{repair}: {repairs:?}");
    }
}

#[test]
fn added_lines_take_the_indentation_of_what_is_there() {
    let reply = "+++ tests/test_a.py\n@@\n def test_three(self):\n     assert pkg.f(3) == 3\n+    assert pkg.f(4) == 4\n";
    let (content, repairs) = new(reply);
    let wanted = "        assert pkg.f(3) == 3\n        assert pkg.f(4) == 4\n";
    assert!(content.ends_with(wanted), "{content}");
    assert!(repairs.iter().any(|told| told.contains("indentation")));
    let deeper = "+++ tests/test_a.py\n@@\n     def test_one():\n-        assert pkg.f(1) == 1\n+        assert pkg.f(1) == 2\n";
    assert_eq!(new(deeper).0, OLD.replace("f(1) == 1", "f(1) == 2"));
}

#[test]
fn files_come_go_and_are_told_from_those_that_are_missing() {
    let made =
        "--- /dev/null\n+++ b/tests/test_b.py\n@@ -0,0 +1,2 @@\n+def test_b():\n+    assert 0\n";
    let proposed = read(made, &old()).unwrap();
    let content = Some("def test_b():\n    assert 0\n".to_owned());
    assert_eq!(proposed.files["tests/test_b.py"], content);
    assert!(proposed.repairs.is_empty());
    let unsaid = read(&made.replace("/dev/null", "a/tests/test_b.py"), &old()).unwrap();
    assert_eq!((unsaid.files.len(), unsaid.repairs.len()), (1, 1));
    let gone = "--- a/tests/test_a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import pkg\n";
    assert_eq!(read(gone, &old()).unwrap().files["tests/test_a.py"], None);
    for (reply, why) in [
        ("I cannot do that.", "no diff"),
        ("", "no diff"),
        (
            "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n",
            "no file `x.py`",
        ),
        (
            "--- a/../x.py\n+++ b/../x.py\n@@ -1 +1 @@\n-a\n+b\n",
            "no path",
        ),
        (
            "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1 +1 @@\n-nothing like it\n+b\n",
            "`nothing like it`",
        ),
    ] {
        let error = read(reply, &old()).unwrap_err().0;
        assert!(error.contains(why), "{error}");
    }
}

/// Two files of few different lines, so that hunks fit in several places.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof!["[a-c]", "    [a-c]", Just(String::new()), "[-+ @]{1,3}x"];
    prop::collection::vec(line, 1..14).prop_map(|lines| format!("{}\n", lines.join("\n")))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A diff that is right is read as git reads it.
    #[test]
    fn right_diffs_do_what_they_say(before in text(), after in text()) {
        if before == after {
            return Ok(());
        }
        let diff = TextDiff::from_lines(&before, &after);
        let written = diff.unified_diff().header("a/a.py", "b/a.py").to_string();
        let old = BTreeMap::from([("a.py".to_owned(), before.clone())]);
        let proposed = read(&written, &old).unwrap();
        prop_assert_eq!(proposed.files["a.py"].as_deref(), Some(after.as_str()), "{}", written);
    }

    /// Whatever a model writes, it is read or refused.
    #[test]
    fn any_text_is_read_or_refused(reply in "(--- a/a.py\n)?(\\+\\+\\+ b/a.py\n)?(@@ -[0-9]{1,3} @@\n)?([-+ \\\\a]{0,3}[a-c]?\r?\n){0,8}", before in text()) {
        let old = BTreeMap::from([("a.py".to_owned(), before)]);
        let _ = read(&reply, &old);
    }
}
