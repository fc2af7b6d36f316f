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
fn code_goes_after_a_function_into_a_class_and_to_the_end() {
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
    assert_eq!(put("", new, |_| InsertionPoint::End), new);
    assert_eq!(
        put("x = 1", new, |_| InsertionPoint::End),
        format!("x = 1\n\n\n{new}")
    );
}

#[test]
fn strings_over_several_lines_are_not_indented() {
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
fn a_definition_is_replaced_with_its_decorators() {
    let file = "class A:\n    @old\n    def f(self):\n        pass\n    y = 1\n";
    let module = Module::parse(file);
    let code = Code::read("def f(self, x):\n    return x").unwrap();
    let edited = replace(&module, &module.find("A.f")[0], &code);
    assert_eq!(
        edited.text,
        "class A:\n    def f(self, x):\n        return x\n    y = 1\n"
    );
    assert_eq!((edited.first, edited.last), (2, 3));
}

#[test]
fn code_that_is_no_function_is_refused() {
    assert!(
        Code::read("x = 1\n")
            .unwrap_err()
            .contains("no complete function")
    );
    assert!(
        Code::read("def f(:\n    pass\n")
            .unwrap_err()
            .contains("does not parse")
    );
    let code = Code::read(
        "import a\nfrom b import (\n    c,\n    d as e,\n)\n\n\ndef f():\n    import z\n",
    )
    .unwrap();
    assert_eq!(code.imports.len(), 3);
    assert_eq!(code.indented(0), "def f():\n    import z\n");
}

fn imported(file: &str, imports: &[&str]) -> String {
    let wanted: Vec<String> = imports.iter().map(|&s| s.to_owned()).collect();
    add_imports(&Module::parse(file), &read_imports(&wanted).unwrap())
        .unwrap()
        .0
}

#[test]
fn imports_go_below_existing_ones_once() {
    let file = "#!/usr/bin/env python\n\"\"\"Docs.\"\"\"\nfrom __future__ import division\n\nimport a\nfrom b import (\n    c,\n)\n\ndef f():\n    import late\n";
    assert_eq!(imported(file, &["import a", "from b import c"]), file);
    assert_eq!(
        imported(file, &["from b import d, c", "import a.x"]),
        file.replace("    c,\n)\n", "    c,\n)\nfrom b import d\nimport a.x\n")
    );
    assert_eq!(
        imported(file, &["from __future__ import annotations"]),
        file.replace(
            "division\n",
            "division\nfrom __future__ import annotations\n"
        )
    );
    assert_eq!(
        imported("\"\"\"Docs.\"\"\"\nx = 1\n", &["import a"]),
        "\"\"\"Docs.\"\"\"\n\nimport a\n\nx = 1\n"
    );
    assert_eq!(
        imported("x = 1\n", &["import a", "import a"]),
        "import a\n\nx = 1\n"
    );
    assert_eq!(
        imported(
            "\"\"\"D.\"\"\"\nx = 1\n",
            &["import a", "from __future__ import b"]
        ),
        "\"\"\"D.\"\"\"\n\nfrom __future__ import b\n\nimport a\n\nx = 1\n"
    );
}

#[test]
fn imports_that_take_a_name_are_refused() {
    let module = Module::parse("from a import x\ndef y(): pass\n");
    let add = |text: &str| add_imports(&module, &read_imports(&[text.to_owned()]).unwrap());
    assert!(
        add("from b import x")
            .unwrap_err()
            .contains("bound already")
    );
    assert!(
        add("from b import y")
            .unwrap_err()
            .contains("defined in the file")
    );
    assert!(add("from b import x as z").is_ok());
    assert!(read_imports(&["x = 1".to_owned()]).is_err());
}

#[test]
fn line_ends_are_kept() {
    let (text, lines) = Lines::split("a\r\nb\r\n");
    assert_eq!((text.as_str(), lines), ("a\nb\n", Lines::CrLf));
    assert_eq!(lines.join("a\nc\n"), "a\r\nc\r\n");
    assert_eq!(Lines::split("a\r\nb\n").1, Lines::Lf);
    assert_eq!(Lines::split("a\r\nb\r\r\n").1, Lines::Lf);
}
