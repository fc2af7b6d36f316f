#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

fn put(
    file: &str,
    code: &str,
    point: impl for<'a> Fn(&'a [Definition]) -> InsertionPoint<'a>,
) -> String {
    let module = Module::parse(file);
    let outline = module.outline();
    let edited = insert(&module, &Code::read(code).unwrap(), point(&outline));
    let lines: Vec<&str> = edited.text.lines().collect();
    assert!(
        lines[edited.first - 1]
            .trim_start()
            .starts_with(['@', 'd', 'c', '#']),
        "{edited:?}"
    );
    assert!(!lines[edited.last - 1].trim().is_empty());
    edited.text
}

#[test]
fn code_is_inserted_at_each_point() {
    let file = "import a\n\n\nclass A:\n    def f(self):\n        pass\n\n    x = 1\n\n\ndef g():\n    pass\n\n\nif __name__ == '__main__':\n    g()\n";
    let new = "def new():\n    return 1\n";
    assert_eq!(
        put(file, new, |_| InsertionPoint::End),
        file.replace("\n\nif __", "\n\ndef new():\n    return 1\n\n\nif __")
    );
    assert_eq!(
        put(file, new, |o| InsertionPoint::After(&o[0].children[0])),
        file.replace("    x = 1", "    def new():\n        return 1\n\n    x = 1")
    );
    let method = "    @property\n    def new(self):\n        return 1";
    assert_eq!(
        put(file, method, |o| InsertionPoint::In(&o[0])),
        file.replace(
            "x = 1\n",
            "x = 1\n\n    @property\n    def new(self):\n        return 1\n"
        )
    );
    let commented = "x = 1\n\n# Run.\nif __name__ == '__main__':\n    g()\n";
    assert_eq!(
        put(commented, new, |_| InsertionPoint::End),
        commented.replace("\n# Run", "\n\ndef new():\n    return 1\n\n\n# Run")
    );
    assert_eq!(put("", new, |_| InsertionPoint::End), new);
    assert_eq!(
        put("x = 1", new, |_| InsertionPoint::End),
        format!("x = 1\n\n\n{new}")
    );
}

#[test]
fn multiline_strings_are_not_indented() {
    let code = "def new(self):\n    x = '''\na\n  b'''\n    return x\n";
    let text = put("class A:\n    y = 1\n", code, |o| InsertionPoint::In(&o[0]));
    assert!(
        text.ends_with("    def new(self):\n        x = '''\na\n  b'''\n        return x\n"),
        "{text}"
    );
    let same = "    def new(self):\n        return '''\n    a\n'''\n";
    let text = put("class A:\n    y = 1\n", same, |o| InsertionPoint::In(&o[0]));
    assert!(text.ends_with(same), "{text}");
}

#[test]
fn docstrings_are_indented_with_function() {
    let code = "def new(self):\n    \"\"\"Docs.\n\n    More.\n    \"\"\"\n    return 1\n";
    let text = put("class A:\n    y = 1\n", code, |o| InsertionPoint::In(&o[0]));
    let expected = "    def new(self):\n        \"\"\"Docs.\n\n        More.\n        \"\"\"\n        return 1\n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn replacement_keeps_decorators_unless_given() {
    let file = "class A:\n    @old\n    def f(self):\n        pass\n    y = 1\n";
    let module = Module::parse(file);
    let code = Code::read("def f(self, x):\n    return x").unwrap();
    let edited = replace(&module, &module.find("A.f")[0], &code);
    assert_eq!(
        edited.text,
        "class A:\n    @old\n    def f(self, x):\n        return x\n    y = 1\n"
    );
    assert_eq!((edited.first, edited.last), (3, 4));
    let code = Code::read("# Newer.\n@new\ndef f(self, x):\n    return x").unwrap();
    let edited = replace(&module, &module.find("A.f")[0], &code);
    assert_eq!(
        edited.text,
        "class A:\n    # Newer.\n    @new\n    def f(self, x):\n        return x\n    y = 1\n"
    );
    assert_eq!((edited.first, edited.last), (2, 5));
}

#[test]
fn removal_includes_decorators() {
    let text = "import a\n\n\n@a.b\ndef f():\n    pass\n\n\nclass T:\n    def g(self):\n        pass\n\n    def h(self):\n        pass\n";
    let removed = |name: &str| {
        let module = Module::parse(text);
        remove(&module, &module.find(name)[0])
    };
    assert_eq!(
        removed("f"),
        "import a\n\n\nclass T:\n    def g(self):\n        pass\n\n    def h(self):\n        pass\n"
    );
    assert_eq!(
        removed("T.g"),
        "import a\n\n\n@a.b\ndef f():\n    pass\n\n\nclass T:\n    def h(self):\n        pass\n"
    );
    assert_eq!(
        removed("T.h"),
        "import a\n\n\n@a.b\ndef f():\n    pass\n\n\nclass T:\n    def g(self):\n        pass\n"
    );
    assert_eq!(removed("T"), "import a\n\n\n@a.b\ndef f():\n    pass\n");
    let module = Module::parse("if a:\n    x = 1\nelse:\n    # Old.\n    @b\n    def f(): 1\n");
    assert_eq!(
        remove(&module, &module.find("f")[0]),
        "if a:\n    x = 1\nelse:\n    # Old.\n    pass\n"
    );
}

#[test]
fn code_without_function_is_refused() {
    assert!(
        Code::read("x = 1\n")
            .unwrap_err()
            .to_string()
            .contains("no complete function")
    );
    assert!(
        Code::read("def f(:\n    pass\n")
            .unwrap_err()
            .to_string()
            .contains("does not parse")
    );
    let code = Code::read(
        "import a\nfrom b import (\n    c,\n    d as e,\n)\n\n\ndef f():\n    import z\n",
    )
    .unwrap();
    assert_eq!(code.imports.len(), 3);
    assert_eq!(code.indented(""), "def f():\n    import z\n");
    let shared = "import a; import b\nimport c; c.d = 1\n\ndef f(): pass\n";
    let code = Code::read(shared).unwrap();
    assert_eq!(code.imports.len(), 2);
    assert_eq!(code.indented(""), "import c; c.d = 1\n\ndef f(): pass\n");
}

#[test]
fn code_is_inserted_above_decorators_and_comments() {
    let file = "import a\n\nX = 1\n\n# About f.\n@a.b\ndef f():\n    pass\n";
    assert_eq!(
        put(file, "def new():\n    return 1\n", |o| {
            InsertionPoint::Before(&o[0])
        }),
        file.replace("\n\n# About", "\n\n\ndef new():\n    return 1\n\n\n# About")
    );
    assert!(
        put("def f():\n    pass\n", "def new(): 1", |o| {
            InsertionPoint::Before(&o[0])
        })
        .starts_with("def new")
    );
}

#[test]
fn code_is_inserted_below_header_comments() {
    let new = "def new():\n    return 1\n";
    let header = "#!/usr/bin/env python\n# License: MIT\n";
    let guard = "if __name__ == '__main__':\n    g()\n";
    assert_eq!(
        put(&format!("{header}{guard}"), new, |_| InsertionPoint::End),
        format!("{header}\n\n{new}\n\n{guard}")
    );
    let function = "def f():\n    pass\n";
    let file = format!("{header}{function}");
    assert_eq!(
        put(&file, new, |o| InsertionPoint::Before(&o[0])),
        format!("{header}\n\n{new}\n\n{function}")
    );
}

#[test]
fn code_adopts_tabs_of_neighbours() {
    let file = "class A:\n\tdef f(self):\n\t\tif 1:\n\t\t\tpass\n";
    let code = "def new(self):\n    if 1:\n        return f(1,\n                 2)\n";
    let new = "\tdef new(self):\n\t\tif 1:\n\t\t\treturn f(1,\n\t\t\t\t\t 2)\n";
    assert_eq!(
        put(file, code, |o| InsertionPoint::In(&o[0])),
        format!("{file}\n{new}")
    );
    let after = put(file, code, |o| InsertionPoint::After(&o[0].children[0]));
    assert_eq!(after, format!("{file}\n{new}"));
    // The reverse direction.
    let tabs = "\tdef new(self):\n\t\treturn 1";
    assert!(
        put("class A:\n    x = 1\n", tabs, |o| InsertionPoint::In(&o[0]))
            .ends_with("x = 1\n\n    def new(self):\n        return 1\n")
    );
    let module = Module::parse(file);
    let edited = replace(
        &module,
        &module.find("A.f")[0],
        &Code::read("def f(self):\n  return 2").unwrap(),
    );
    assert_eq!(edited.text, "class A:\n\tdef f(self):\n\t\treturn 2\n");
}

#[test]
fn line_ends_are_kept() {
    for (text, after, expected) in [
        ("a\r\nb\r\n", "a\nc\nd", "a\r\nc\r\nd"),
        ("a\rb\r", "a\nc\nb\n", "a\rc\rb\r"),
        ("a\nb\n", "a\r\nc\n", "a\nc\n"),
        ("a\r\nb\nc\n", "a\nb\nx\nc\n", "a\r\nb\nx\nc\n"),
        ("a\r\nb\nc\n", "a\ny\nb\nz\n", "a\r\ny\r\nb\nz\n"),
        ("a\r\nb\nc\r", "b\nc\nd", "b\nc\rd"),
        ("a\r\nb\r\r\n", "a\nb\n\n", "a\r\nb\r\r\n"),
        ("", "a\n", "a\n"),
    ] {
        let (plain, ends) = LineEnding::split(text);
        assert!(!plain.contains('\r'), "{text:?}");
        assert_eq!(ends.join(&plain), text);
        assert_eq!(ends.join(after), expected, "{text:?}");
    }
}
