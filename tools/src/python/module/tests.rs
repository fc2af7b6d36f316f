#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::python::{contributed, edit, flatten, scopes, undefined_names};
use crate::workspace::Layout;

const FILE: &str = "from a import (b, c as d)\nimport e.f\n\n@b(\n    1,\n)\nclass TestA(B):\n    '''Döcs'''\n    x: int = 1\n\n    \
        def test_a(self, *y, z=lambda: 1):\n        match y:\n            case [p, *q] if p: return f'{p!r:>{q}}'\n        with a as (g, h): pass\n\n\
        if x:\n    async def f(): yield\nelse:\n    print >>f, 'x'\n";

#[test]
fn file_prefixes_cause_no_panic() {
    for at in (0..=FILE.len()).filter(|&at| FILE.is_char_boundary(at)) {
        let text = &FILE[..at];
        let module = Module::parse(text);
        let outline = module.outline();
        for definition in flatten(&outline) {
            assert!(definition.first <= definition.line && definition.line <= definition.last);
            let code = edit::Code::read("def new(): pass").unwrap();
            edit::insert(&module, &code, edit::InsertionPoint::After(definition));
            edit::insert(&module, &code, edit::InsertionPoint::In(definition));
            edit::replace(&module, definition, &code);
        }
        undefined_names(&module);
        scopes(text);
        module.imports();
        let _ = edit::Code::read(text);
        contributed("tests/test_a.py", Some(FILE), text, &Layout::default());
    }
}

#[test]
fn wrong_indentation_is_an_error() {
    for (text, line) in [
        ("def f():\n\nx = 1\n", 1),
        ("if a:\n    x\nelse:\n    # none\n", 3),
        ("x = 1\n    y = 2\n", 2),
        ("if a:\n    x\n  y\n", 3),
        ("if a:\n\tx\n        y\n", 3),
        ("if a:\n    x\n  else:\n    y\n", 3),
        ("@a\n  def f(): pass\n", 2),
    ] {
        let errors = Module::parse(text).errors();
        let lines: Vec<usize> = errors.iter().map(|error| error.line).collect();
        assert_eq!(lines, [line], "{text}");
    }
    for text in [
        "x = 1; \\\n  y = 2\n",
        "if a: b\nelse: c\n",
        "\x0cdef f():\n    '''a\nb'''; x\n  # c\n    y\n",
        "with \\\n  a:\n    pass\n",
        "if a:\n    x\n\\\n    y\n",
    ] {
        assert_eq!(Module::parse(text).errors(), [], "{text}");
    }
}

#[test]
fn only_new_errors_count() {
    let old = Module::parse("print 'a' if\nx = 1\n");
    let moved = Module::parse("y = 2\nprint 'a' if\nx = 1\n");
    let worse = Module::parse("print 'a' if\nx = 1\ndef f(:\n    pass\n");
    assert!(!old.errors().is_empty());
    assert_eq!(moved.new_errors(Some(&old)), []);
    assert!(!worse.new_errors(Some(&old)).is_empty());
    assert_eq!(Module::parse("def f(:\n    pass\n").errors()[0].line, 1);
}
