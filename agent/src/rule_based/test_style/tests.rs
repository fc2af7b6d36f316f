use super::*;

fn style(text: &str, class: Option<&str>, columns: Option<usize>) -> TestStyle {
    TestStyle::read(text, class, columns)
}

#[test]
fn quotes_follow_the_file() {
    let single = style("x = 'a', 'b', \"c\"\n", None, None);
    let code = "def test_a():\n    x = \"b\", \"it's\", 'a', f\"{x['a']}\"\n";
    assert_eq!(
        single.format(code),
        "def test_a():\n    x = 'b', \"it's\", 'a', f\"{x['a']}\"\n"
    );
    let double = style("x = \"a\"\n", None, None);
    let code = "def test_a():\n    assert f(b'a', '\\'x\\\\', 'a\"', '') == 'x'\n";
    assert_eq!(
        double.format(code),
        "def test_a():\n    assert f(b\"a\", \"'x\\\\\", 'a\"', \"\") == \"x\"\n"
    );
    let unknown = style("x = 1\n", None, None);
    assert_eq!(unknown.format(code), code);
}

#[test]
fn unittest_classes_get_their_assertions() {
    let text = "class TestA(TestCase):\n    def test_a(self):\n        self.assertTrue(1)\n";
    let found = style(text, Some("TestA"), None);
    assert!(found.is_unittest && found.in_class);
    assert!(!style(text, None, None).is_unittest);
    assert!(
        !style(
            "class TestA:\n    def test_a(self):\n        assert 1\n",
            Some("TestA"),
            None
        )
        .is_unittest
    );
    let code = "def test_b(self):\n    assert f(1) == [1]\n    assert not f(2)\n    assert f(3) is None\n    \
                with pytest.raises(KeyError) as raised:\n        f(4)\n    assert str(raised.value) != 'a'\n    \
                def g():\n        assert 1\n    assert 1 < 2\n";
    assert_eq!(
        found.format(code),
        "def test_b(self):\n    self.assertEqual(f(1), [1])\n    self.assertFalse(f(2))\n    self.assertIsNone(f(3))\n    \
         with self.assertRaises(KeyError) as raised:\n        f(4)\n    self.assertNotEqual(str(raised.exception), 'a')\n    \
         def g():\n        assert 1\n    assert 1 < 2\n"
    );
}

#[test]
fn long_lines_are_wrapped_like_black() {
    let narrow = style("x = \"a\"\n", None, Some(30));
    let code = "def test_a():\n    result = function(1, \"a, b\", name=3)\n    \
                result = function(first_argument, [1, 2], name=3)\n    \
                assert function(1) == some_value\n    value = first + second + third\n    \
                assert result == [1, 2, 3, 4, 5]\n    for x in first(a, b, c_name):\n        pass\n";
    assert_eq!(
        narrow.format(code),
        "def test_a():\n    result = function(\n        1, \"a, b\", name=3\n    )\n    \
         result = function(\n        first_argument,\n        [1, 2],\n        name=3,\n    )\n    \
         assert (\n        function(1)\n        == some_value\n    )\n    value = (\n        first + second + third\n    )\n    \
         assert result == [\n        1, 2, 3, 4, 5\n    ]\n    \
         for x in first(\n        a, b, c_name\n    ):\n        pass\n"
    );
    // Without a formatter, the longest line of the file counts.
    let wide = style(&format!("x = 1  # {}\n", "a".repeat(100)), None, None);
    let code = format!("def test_a():\n    assert f({})\n", "1, ".repeat(25));
    assert_eq!(wide.format(&code), code);
}

#[test]
fn long_strings_are_not_wrapped() {
    let narrow = style("x = 1\n", None, Some(20));
    let code = "def test_a():\n    x = '''\n    f(a, b, c, d, e, f, g, h, i)\n    '''\n";
    assert_eq!(narrow.format(code), code);
}
