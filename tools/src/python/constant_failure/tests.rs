use super::*;

/// Returns the line for a test with this body, of which the last line failed.
fn failing_line(body: &str) -> Option<usize> {
    let source = format!("def test_a(self):\n    {}\n", body.replace('\n', "\n    "));
    constant_failure(&source, 11, Some(10 + source.lines().count()))
}

#[test]
fn constant_failures_are_found() {
    for (body, line) in [
        ("assert False", 12),
        ("x.pop(2); assert False, x", 12),
        ("assert 0\nassert f()", 12),
        ("x = f()\nassert None", 13),
        ("assert not True", 12),
        ("assert (not (1)), 'why'", 12),
        ("assert ''", 12),
        ("assert f() and False", 12),
        ("assert 1 == 2", 12),
        ("assert [1] == [\n    2\n]", 12),
        ("f()\nraise AssertionError", 13),
        ("raise AssertionError(f'{f()}')", 12),
        ("pytest.fail('no')", 12),
        ("self.fail()", 12),
        ("self.assertTrue(False, f())", 12),
        ("self.assertEqual(1, 2)", 12),
        ("with pytest.raises(E):\n    f()\nassert False", 14),
        ("def g():\n    return 1\nf(g)\nassert False", 15),
    ] {
        assert_eq!(failing_line(body), Some(line), "{body}");
    }
    let marked = "@pytest.mark.slow\n@mock.patch.object(a, 'b')\ndef test_a():\n    assert False\n";
    assert_eq!(constant_failure(marked, 1, None), Some(4));
}

#[test]
fn failures_that_depend_on_code_are_left_out() {
    for body in [
        "assert f()",
        "assert f() == 1",
        "assert not f()",
        "assert f'{x}' == 'a'",
        "assert f() or False",
        "assert not (f() and False)",
        "self.assertEqual(f(), 2)",
        "self.assertTemplateUsed('a', 'b')",
        "raise ValueError('a')",
        "if f():\n    assert False",
        "for x in f():\n    assert not True",
        "try:\n    f()\nexcept E:\n    pytest.fail('raised')",
        "try:\n    f()\n    self.fail('nothing raised')\nexcept E:\n    pass",
        "try:\n    f()\nexcept E:\n    return\nassert False",
        "with pytest.raises(E):\n    f()\n    pytest.fail('no')",
        "def g():\n    assert False\nf(g)",
        "f(lambda: pytest.fail('called'))",
        "yield f\nassert False",
    ] {
        assert_eq!(failing_line(body), None, "{body}");
    }
    for decorator in ["raises(E)", "pytest.mark.xfail(raises=E)", "dispatch.fails"] {
        let source = format!("@{decorator}\ndef test_a():\n    f()\n    assert False\n");
        assert_eq!(constant_failure(&source, 1, Some(4)), None, "{decorator}");
    }
}

/// A class may have helpers with these names, which fail in another line.
#[test]
fn helpers_count_only_where_they_fail() {
    let source = "def test_a(self):\n    self.fail('1 +')\n    self.assertEqual('a', 'b')\n";
    assert_eq!(constant_failure(source, 1, None), None);
    assert_eq!(constant_failure(source, 1, Some(9)), None);
    assert_eq!(constant_failure(source, 1, Some(3)), Some(3));
}
