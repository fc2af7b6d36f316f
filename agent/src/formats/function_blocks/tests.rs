#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const OLD: &str = "\
import pkg


def test_one():
    assert pkg.f(1) == 1


class TestAll:
    def test_two(self):
        assert pkg.f(2) == 2

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

#[test]
fn functions_are_inserted_and_rewritten() {
    let reply =
        "diff\ntests/test_a.py\ninsert\nEOF\ndef test_new():\n    assert pkg.f(4) == 4\nend diff\n";
    let (content, repairs) = new(reply);
    assert_eq!(
        content,
        format!("{OLD}\n\ndef test_new():\n    assert pkg.f(4) == 4\n")
    );
    assert!(repairs.is_empty());
    let (content, _) = new(&reply.replace("EOF", "5"));
    assert!(
        content.contains(
            "f(1) == 1\n\n\ndef test_new():\n    assert pkg.f(4) == 4\n\n\nclass TestAll"
        ),
        "{content}"
    );

    let method = "diff\ntests/test_a.py\nrewrite\n90\ndef test_three(self):\n    import os\n    assert pkg.f(3) == 4\nend diff";
    let (content, repairs) = new(method);
    assert!(
        content.ends_with(
            "    def test_three(self):\n        import os\n        assert pkg.f(3) == 4\n"
        ),
        "{content}"
    );
    assert!(repairs.is_empty());
    let added = "diff\ntests/test_a.py\ninsert\n9\n    def test_new(self):\n        assert pkg.f(4) == 4\nend diff";
    let (content, _) = new(added);
    assert!(content.contains("f(2) == 2\n\n    def test_new(self):\n        assert pkg.f(4) == 4\n\n    def test_three"), "{content}");
}

#[test]
fn sloppy_blocks_are_read() {
    let right = "diff\ntests/test_a.py\ninsert\nEOF\nimport os\n\ndef test_new():\n    assert os.sep\nend diff\n";
    let expected_content = new(right).0;
    assert!(
        expected_content.starts_with("import os\n")
            && expected_content.ends_with("def test_new():\n    assert os.sep\n"),
        "{expected_content}"
    );
    for (reply, repair) in [
        (format!("The test:\n```\n{right}```\nIt fails."), ""),
        (
            right
                .replacen("diff", "```diff", 1)
                .replace("end diff", "end diff\n```"),
            "",
        ),
        (right.replace('\n', "\r\n"), ""),
        (right.replace("end diff\n", ""), "not closed"),
        (right.replace("insert\n", "INSERT\n"), ""),
        (right.replace("insert\n", ""), "does not say `insert`"),
        (right.replace("EOF\n", ""), "does not say where"),
        (
            right.replace("insert", "rewrite"),
            "no `test_new` to rewrite",
        ),
        (right.replace("tests/test_a.py", "a/tests/test_a.py"), ""),
        (
            right.replace("tests/test_a.py", "test_a.py"),
            "is `tests/test_a.py`",
        ),
        (
            right
                .replace("EOF\n", "EOF\n```python\n")
                .replace("end diff", "```\nend diff"),
            "",
        ),
    ] {
        let (content, repairs) = new(&reply);
        assert_eq!(content, expected_content, "{reply}");
        let is_reported = repairs.iter().any(|message| message.contains(repair));
        assert!(repair.is_empty() || is_reported, "{repair}: {repairs:?}");
    }
    let like = "diff\ntests/test_a.py\nrewrite\n10\ndef test_thre(self):\n    assert 0\nend diff";
    let (content, repairs) = new(like);
    assert!(
        content.ends_with("f(2) == 2\n\n    def test_thre(self):\n        assert 0\n"),
        "{content}"
    );
    assert_eq!(
        repairs,
        ["`TestAll.test_three` is rewritten as `test_thre`"]
    );
    let statements = "diff\ntests/test_a.py\ninsert\nBOF\nimport os\nend diff";
    assert!(new(statements).0.starts_with("import os\nimport pkg\n"));
    let two = format!("{right}\n{}", right.replace("test_new", "test_other"));
    let (content, _) = new(&two);
    assert!(content.contains("def test_new") && content.contains("def test_other"));
}

#[test]
fn line_above_all_functions() {
    let reply =
        "diff\ntests/test_a.py\ninsert\n1\ndef test_new():\n    assert pkg.f(4) == 4\nend diff\n";
    let (content, repairs) = new(reply);
    let expected_content = OLD.replace(
        "def test_one",
        "def test_new():\n    assert pkg.f(4) == 4\n\n\ndef test_one",
    );
    assert_eq!((content, repairs), (expected_content.clone(), vec![]));
    let (content, repairs) = new(&reply.replace("\n1\n", "\nBOF\n"));
    assert_eq!(content, expected_content);
    assert!(
        repairs[0].contains("inserted above its first function"),
        "{repairs:?}"
    );
    let method = reply
        .replace("test_new()", "test_new(self)")
        .replace("\n1\n", "\nBOF\n");
    let (content, repairs) = new(&method);
    assert!(
        content.ends_with("    def test_new(self):\n        assert pkg.f(4) == 4\n"),
        "{content}"
    );
    assert!(
        repairs[0].contains("inserted in its first class"),
        "{repairs:?}"
    );
    let old = BTreeMap::from([("tests/test_a.py".to_owned(), "import pkg\n".to_owned())]);
    let proposed = read(&reply.replace("\n1\n", "\nBOF\n"), &old).unwrap();
    assert!(proposed.repairs[0].contains("inserted at its end"));
}

#[test]
fn fences_in_a_docstring_are_code() {
    let code = "def test_new():\n    \"\"\"As in\n\n    ```\n    f(4)\n    ```\n    \"\"\"\n    assert pkg.f(4) == 4\n";
    let reply = format!("diff\ntests/test_a.py\ninsert\nEOF\n```python\n{code}```\nend diff\n");
    let (content, repairs) = new(&reply);
    assert_eq!((content, repairs), (format!("{OLD}\n\n{code}"), vec![]));
    // The code is in two fenced pieces.
    let two = reply.replace("    assert pkg.f", "```\n```python\n    assert pkg.f");
    let (content, repairs) = new(&two.replace("    ```\n", ""));
    assert!(
        content.ends_with("    \"\"\"\n    assert pkg.f(4) == 4\n"),
        "{content}"
    );
    assert_eq!(repairs, ["fences in the code of a block are omitted"]);
}

#[test]
fn new_files_and_errors() {
    let new_file =
        "diff\ntests/test_b.py\ninsert\nBOF\nimport pkg\n\n\ndef test_b():\n    pass\nend diff";
    let proposed = read(new_file, &old()).unwrap();
    let content = Some("import pkg\n\n\ndef test_b():\n    pass\n".to_owned());
    assert_eq!(proposed.files["tests/test_b.py"], content);
    for (reply, why) in [
        ("No test can show it.", "no `diff` block"),
        ("diff\n../x.py\ninsert\nEOF\nx = 1\nend diff", "not a path"),
        (
            "diff\ntests/test_a.py\nrewrite\n4\ndef test_one(:\nend diff",
            "does not parse",
        ),
        (
            "diff\ntests/test_a.py\nrewrite\n4\nx = 1\nend diff",
            "no complete function",
        ),
    ] {
        let error = read(reply, &old()).unwrap_err().0;
        assert!(error.contains(why), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Rewriting a function with the same text changes nothing, whatever line is given.
    #[test]
    fn identical_rewrite_changes_nothing(line in 0usize..40) {
        let reply = format!("diff\ntests/test_a.py\nrewrite\n{line}\n    def test_two(self):\n        assert pkg.f(2) == 2\nend diff");
        prop_assert_eq!(new(&reply).0, OLD);
    }

    /// Any text is either applied or rejected.
    #[test]
    fn any_text_is_read_or_refused(reply in "(diff\n)?(tests/test_a.py|x.py|)\n?(insert|rewrite|)\n?([0-9]{0,3}|BOF|EOF)\n?((def |    |class )?[a-z(:'\"]{0,6}\r?\n){0,6}(end diff)?") {
        let _ = read(&reply, &old());
    }
}
