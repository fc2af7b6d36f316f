#![allow(clippy::unwrap_used)]
use super::*;

const OLD: &str = "import pkg\n\n\ndef test_one():\n    assert pkg.f(1)\n\n\ndef test_two():\n    assert pkg.f(2)\n";

fn target(mode: WriteMode, function: &str) -> Action {
    Action {
        mode,
        name: FunctionName {
            path: "t.py".to_owned(),
            function: function.to_owned(),
        },
    }
}

#[test]
fn functions_go_where_reply_says() {
    let reply =
        "after: `test_one`\n```python\nimport os\n\ndef test_new():\n    assert os.sep\n```";
    let text = insert_function(reply, OLD, &target(WriteMode::Write, "test_new")).unwrap();
    assert!(text.starts_with("import os\n"), "{text}");
    assert!(
        text.contains("f(1)\n\n\ndef test_new():\n    assert os.sep\n\n\ndef test_two"),
        "{text}"
    );
    let end = insert_function(
        &reply.replace("`test_one`", "END"),
        OLD,
        &target(WriteMode::Write, ""),
    )
    .unwrap();
    assert!(
        end.ends_with("def test_new():\n    assert os.sep\n"),
        "{end}"
    );
    let modified = "```\ndef test_two():\n    assert pkg.f(3)\n```";
    let text = insert_function(modified, OLD, &target(WriteMode::Modify, "test_two")).unwrap();
    assert_eq!(text, OLD.replace("f(2)", "f(3)"));
    // A method goes into its class, whichever form the reply has.
    let old = "class TestAll:\n    def test_one(self):\n        pass\n\n    def test_two(self):\n        pass\n";
    let method = "```\n    def test_new(self):\n        pass\n```";
    let first = "    def test_one(self):\n        pass\n\n    def test_new(self):\n        pass\n";
    for name in ["test_one", "TestAll.test_one", "t.py::TestAll.test_one"] {
        let reply = format!("after: {name}\n{method}");
        let text = insert_function(&reply, old, &target(WriteMode::Write, "")).unwrap();
        assert!(text.contains(first), "{text}");
    }
    let last = insert_function(method, old, &target(WriteMode::Write, "TestAll.test_new")).unwrap();
    assert!(
        last.ends_with("\n\n    def test_new(self):\n        pass\n"),
        "{last}"
    );
    // A function without an object stays outside of the class.
    let function = "```\ndef test_new():\n    pass\n```";
    for reply in [function.to_owned(), format!("after: test_one\n{function}")] {
        let text =
            insert_function(&reply, old, &target(WriteMode::Write, "TestAll.test_new")).unwrap();
        assert!(
            text.ends_with("\n\n\ndef test_new():\n    pass\n"),
            "{text}"
        );
    }
    assert!(insert_function("I cannot.", OLD, &target(WriteMode::Write, "")).is_err());
    assert!(insert_function(modified, OLD, &target(WriteMode::Modify, "test_gone")).is_err());
}
