#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

fn imported(file: &str, imports: &[&str]) -> String {
    let statements: Vec<String> = imports.iter().map(|&s| s.to_owned()).collect();
    let bindings = read_imports(&statements).unwrap();
    add_imports(&Module::parse(file), &bindings, &|top| top == "own")
        .unwrap()
        .text
}

#[test]
fn imports_are_added_once() {
    let file = "#!/usr/bin/env python\n\"\"\"Docs.\"\"\"\nfrom __future__ import division\n\nimport a\nfrom b import (\n    c,\n)\n\ndef f():\n    import late\n";
    assert_eq!(imported(file, &["import a", "from b import c"]), file);
    assert_eq!(
        imported(file, &["from b import d, c", "import a.x"]),
        file.replace("    c,\n", "    c,\n    d,\n")
            .replace("import a\n", "import a\nimport a.x\n")
    );
    assert_eq!(
        imported(file, &["from __future__ import annotations"]),
        file.replace("import division\n", "import annotations, division\n")
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
fn conflicting_imports_are_refused() {
    let module = Module::parse("from a import x\ndef y(): pass\n");
    let add = |text: &str| {
        let bindings = read_imports(&[text.to_owned()]).unwrap();
        add_imports(&module, &bindings, &|_| false)
    };
    assert!(
        add("from b import x")
            .unwrap_err()
            .to_string()
            .contains("bound already")
    );
    assert!(
        add("from b import y")
            .unwrap_err()
            .to_string()
            .contains("defined in the file")
    );
    assert!(add("from b import x as z").is_ok());
    assert!(read_imports(&["x = 1".to_owned()]).is_err());
}

#[test]
fn names_join_statement_in_order() {
    for (file, import, expected) in [
        (
            "from a import b, d\n",
            "from a import c",
            "from a import b, c, d\n",
        ),
        (
            "from a import b, d  # noqa\n",
            "from a import e",
            "from a import b, d, e  # noqa\n",
        ),
        (
            "from a import (b, d)\n",
            "from a import A",
            "from a import (A, b, d)\n",
        ),
        (
            "from a import d, b\n",
            "from a import c",
            "from a import d, b, c\n",
        ),
        (
            "from a import (\n    b,\n    d\n)\n",
            "from a import e as f",
            "from a import (\n    b,\n    d,\n    e as f\n)\n",
        ),
        (
            "from a import MAX, Class, func\n",
            "from a import Base",
            "from a import MAX, Base, Class, func\n",
        ),
        (
            "from a import *\n",
            "from a import b",
            "from a import *\nfrom a import b\n",
        ),
    ] {
        assert_eq!(imported(file, &[import]), expected);
    }
    let long = format!("from a import {}\n", "b".repeat(60));
    assert_eq!(
        imported(&long, &["from a import ccccc"]),
        format!("{long}from a import ccccc\n")
    );
}

#[test]
fn statements_go_to_their_group() {
    let file = "\"\"\"D.\"\"\"\nimport os\nfrom re import match\n\nimport numpy as np\nimport pytest\n\nfrom own import thing\n\n\ndef f():\n    pass\n";
    for (import, before, after) in [
        ("import sys", "import os\n", "import os\nimport sys\n"),
        (
            "import pandas",
            "import pytest\n",
            "import pandas\nimport pytest\n",
        ),
        (
            "from own.core import x",
            "import thing\n",
            "import thing\nfrom own.core import x\n",
        ),
        (
            "from . import y",
            "import thing\n",
            "import thing\n\nfrom . import y\n",
        ),
        (
            "from __future__ import annotations",
            "\"\"\"D.\"\"\"\n",
            "\"\"\"D.\"\"\"\n\nfrom __future__ import annotations\n\n",
        ),
    ] {
        assert_eq!(
            imported(file, &[import]),
            file.replace(before, after),
            "{import}"
        );
    }
    let none = "import pytest\nfrom own import thing\n";
    assert_eq!(
        imported(none, &["import os"]),
        format!("import os\n\n{none}")
    );
    // Without an order, it goes after the last of the group.
    let file = "from re import match\nimport os\nfrom abc import x\n\nimport pytest\n";
    assert_eq!(
        imported(file, &["import sys"]),
        file.replace("import x\n", "import x\nimport sys\n")
    );
}

#[test]
fn name_from_parent_package_exists() {
    let module = Module::parse("from own import Thing\n");
    let add = |text: &str| {
        let bindings = read_imports(&[text.to_owned()]).unwrap();
        add_imports(&module, &bindings, &|top| top == "own")
    };
    let result = add("from own.core import Thing").unwrap();
    assert_eq!(result.text, module.text());
    assert_eq!(
        result.existing,
        [
            "`from own.core import Thing` was not added: the file already has `from own import Thing`."
        ]
    );
    assert!(add("from other import Thing").is_err());
}

#[test]
fn binding_is_replaced_alone() {
    let binding = |text: &str| read_imports(&[text.to_owned()]).unwrap().remove(0);
    let replaced = |file: &str, old: &str, new: &str| {
        let own = |top: &str| top == "own";
        replace_binding(&Module::parse(file), &binding(old), &binding(new), &own)
    };
    let foo = |file: &str| replaced(file, "from m import Foo", "from own.x import Foo");
    assert_eq!(foo("from m import FooBar\n"), None);
    assert_eq!(
        foo("from m import Foo  # why\n").unwrap(),
        "from own.x import Foo  # why\n"
    );
    assert_eq!(
        foo("from m import FooBar, Foo\n").unwrap(),
        "from m import FooBar\n\nfrom own.x import Foo\n"
    );
    assert_eq!(
        foo("from m import (\n    Foo,\n    b as c,\n)\nfrom own.x import d\n").unwrap(),
        "from m import (\n    b as c,\n)\nfrom own.x import Foo, d\n"
    );
    let inner =
        "def f():\n    from m import a, Foo\n    return Foo\n\n\ndef g():\n    from m import Foo\n";
    assert_eq!(
        foo(inner).unwrap(),
        "def f():\n    from m import a\n    from own.x import Foo\n    return Foo\n\n\ndef g():\n    from own.x import Foo\n"
    );
    assert_eq!(
        replaced(
            "from m import a as b\n",
            "from m import a as b",
            "from own import a as b"
        )
        .unwrap(),
        "from own import a as b\n"
    );
}
