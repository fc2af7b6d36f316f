#![allow(clippy::unwrap_used)]
use super::*;

fn changed(statement: &str) -> Option<String> {
    let head = "def test_a(self, b):\n    ";
    let changed = change_to_fail(&format!("{head}{statement}\n"))?;
    assert_eq!(changed.tests, ["test_a"]);
    let body = changed.text.strip_prefix(head).unwrap();
    Some(body.trim_end().to_owned())
}

#[test]
fn expected_values_are_changed() {
    for (statement, expected) in [
        ("assert f(1) == 2", "assert f(1) == 70712483"),
        ("assert 2 == f(1), 'two'", "assert 70712483 == f(1), 'two'"),
        ("assert (f(1) == -2)", "assert (f(1) == 70712483)"),
        ("assert f() == True", "assert f() == False"),
        ("assert f() == 'a' 'b'", "assert f() == \"70712483\""),
        ("assert f() == b'a'", "assert f() == b\"70712483\""),
        ("assert f() == [1, 2]", "assert f() == [70712483]"),
        ("assert f() == (1, 2)", "assert f() == (70712483,)"),
        ("assert f() == {}", "assert f() == {70712483: 70712483}"),
        ("assert f() == {1}", "assert f() == {70712483}"),
        ("assert f() == b", "assert f() == object()"),
        (
            "self.assertEqual(f(), 2)",
            "self.assertEqual(f(), 70712483)",
        ),
        ("self.assertEqual(b, f())", "self.assertEqual(b, object())"),
    ] {
        assert_eq!(changed(statement).as_deref(), Some(expected));
    }
}

#[test]
fn other_tests_end_with_failure() {
    for statement in [
        "assert f()",
        "assert f() != 2",
        "assert 1 == f() == 1",
        "with pytest.raises(E): assert f() == 2",
        "with pytest.raises(E):\n        assert f() == 2",
        "for x in b: assert x == 2",
        "self.assertEqual(*b)",
        "self.assertIn(2, b)",
        "x = f() == 2",
    ] {
        let expected = format!("{statement}\n    assert False");
        assert_eq!(changed(statement), Some(expected));
    }
    for statement in ["return; assert f() == 2", "if b: return\n    assert b"] {
        assert_eq!(changed(statement), None, "{statement}");
    }
    let inline = change_to_fail("def test_a(): assert f()\n").unwrap();
    assert_eq!(inline.text, "def test_a(): assert f(); assert False\n");
}

#[test]
fn only_tests_are_changed() {
    let source = "class TestA:\n    def test_b(self):\n        assert f() == 1\n\n    \
                  def help(self):\n        assert f() == 1\n\n\n\
                  @pytest.mark.parametrize('x', [1])\ndef test_c(x):\n    assert f() == x\n\n\n\
                  @pytest.mark.xfail\ndef test_d():\n    assert f() == 1\n\n\n\
                  @forgiving\ndef test_e():\n    assert f() == 1\n";
    let changed = change_to_fail(source).unwrap();
    assert_eq!(changed.tests, ["TestA::test_b", "test_c"]);
    assert_eq!(changed.text.matches(NUMBER).count(), 1);
    assert_eq!(changed.text.matches("object()").count(), 1);
    assert_eq!(change_to_fail("def test_a(:\n    assert f() == 1\n"), None);
}
