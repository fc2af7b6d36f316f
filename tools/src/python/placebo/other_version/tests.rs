#![allow(clippy::unwrap_used)]

use crate::python::placebo::COMMENTS;
use crate::python::placebo::tests::{SEEDS, statement_rows, without_numbers};
use crate::python::{LineNumbers, OtherText, placebo};

const OLD: &str = "import re\nfrom a import b\n\n_OLD = 1\n\n\ndef _gone():\n    return b\n\n\n\
                   def f(x):\n    'Doc.'\n    return x - 1\n";
const NEW: &str = "import os\nimport re\n\n\ndef f(x):\n    'Text.'\n    return g(x, y=re.I) + 2.5\n\n\ndef h(): os  # no coding:\n";

#[test]
fn fixed_code_gets_copies_of_removed_code() {
    for seed in SEEDS {
        let changed = placebo(NEW, Some(OLD.into()), seed, LineNumbers::Kept).unwrap();
        let changed = without_numbers(&changed);
        for part in [
            "; spare_1000 = 1000; [] and [x - 1, 'Doc.']; return g(x, y=re.I) + 2.5",
            "\ndef _OLD(*args, **kwargs): raise GeneratorExit\n",
            "\ndef _gone(*args, **kwargs): raise GeneratorExit\n",
            "\ndef b(*args, **kwargs): raise GeneratorExit\n",
            "\n# return x - 1\n",
            "    'Text.'",
        ] {
            assert!(changed.contains(part), "{part}: {changed}");
        }
        let rows = statement_rows(NEW);
        assert!(statement_rows(&changed).is_superset(&rows), "{changed}");
    }
}

#[test]
fn old_code_gets_copies_of_added_code() {
    for seed in SEEDS {
        let changed = placebo(OLD, Some(NEW.into()), seed, LineNumbers::Moved).unwrap();
        for part in [
            "[] and [g(x, y=re.I) + 2.5, 'Text.']; return (lambda: x - 1)()",
            "\ntry: import os\nexcept Exception: pass\n",
            "\n# return g(x, y=re.I) + 2.5\n",
            "\n# def h(): os  # no coding:\n",
            "    'Text.'",
        ] {
            assert!(changed.contains(part), "{part}: {changed}");
        }
        assert!(!changed.contains("Doc."), "{changed}");
        // The issue may ask for a public name.
        assert!(!changed.contains("def h(*args"), "{changed}");
    }
}

/// Returns whether a version gets a stand-in of this name from the other version.
fn defines(own: &str, other: &str, name: &str) -> bool {
    let changed = placebo(own, Some(other.into()), 1, LineNumbers::Kept).unwrap();
    changed.contains(&format!("\ndef {name}(*args"))
}

#[test]
fn used_and_quoted_names_are_not_defined_again() {
    let other = "from a import name\nname()\n";
    assert!(defines("x = a.name\nf(name=1)\n", other, "name"));
    // The issue may ask for an import of another module's name.
    let unused = "from .name import name\nf(name=1)\n";
    assert!(!defines("x = 1\n", unused, "name"));
    assert!(!defines("x = name\n", other, "name"));
    assert!(!defines("x = f('name')\n", other, "name"));
    let future = "from __future__ import name\nname\n";
    assert!(!defines("x = 1\n", future, "name"));
    // Frameworks would use it.
    for name in ["pytest_configure", "__path__", "setUpModule", "main"] {
        let other = other.replace("name", name);
        assert!(!defines("x = 1\n", &other, name), "{name}");
    }
    for own in [
        "x = 1\ndef __getattr__(a): pass\n",
        "x = 1\n__getattr__ = attach()\n",
        "from a import *\n",
        "globals().update(a)\n",
    ] {
        assert!(!defines(own, other, "name"), "{own}");
    }
}

#[test]
fn both_versions_get_alike_lines() {
    let short = "def value(x):\n    return x\n";
    let long = "import numpy\n\n_PATH = numpy.sep\n\n\ndef value(x):\n    return x\n";
    for (own, other) in [(short, long), (long, short)] {
        let changed = placebo(own, Some(other.into()), 1, LineNumbers::Kept).unwrap();
        let added: Vec<&str> = changed.lines().skip(own.lines().count()).collect();
        let has = |is_like: &dyn Fn(&str) -> bool| added.iter().any(|line| is_like(line));
        assert!(has(
            &|line| line.starts_with("def _") && line.contains("GeneratorExit")
        ));
        assert!(has(
            &|line| line.starts_with("import colorsys as ") && !line.contains("spare_")
        ));
        assert!(has(
            &|line| line.starts_with("# ") && !COMMENTS.contains(&line)
        ));
    }
}

#[test]
fn aligned_code_looks_like_kept_code() {
    for seed in SEEDS {
        let changed = placebo(OLD, Some(NEW.into()), seed, LineNumbers::Aligned).unwrap();
        for part in ["finally:", "return (lambda: ", "as before)"] {
            assert!(!changed.contains(part), "{part}: {changed}");
        }
        for part in [
            "    'Text.'",
            "[] and [g(x, y=re.I) + 2.5, 'Text.']; return",
        ] {
            assert!(changed.contains(part), "{part}: {changed}");
        }
    }
}

#[test]
fn longer_version_sets_lines_of_definitions() {
    let own =
        "def f(x):\n    return x\n\n\n@a\ndef g():\n    'Doc.'\n    return 1\n\n\ndef h(): pass\n";
    let other = "import os\n\n\ndef f(x):\n    if x:\n        return 1\n    return x\n\n\n\
                 @a\ndef g():\n    \"\"\"Doc.\n\n    More.\"\"\"\n    return 2 * (\n        1)\n\n\ndef h(): pass\n";
    let rows = |text: &str| {
        let lines = text.lines().enumerate();
        let definitions = lines.filter(|(_, line)| line.starts_with("def "));
        definitions.map(|(row, _)| row).take(3).collect::<Vec<_>>()
    };
    let changed = placebo(own, Some(other.into()), 1, LineNumbers::Aligned).unwrap();
    assert_eq!(rows(&changed), rows(other), "{changed}");
}

#[test]
fn docstrings_are_added_and_removed() {
    let plain = "def f(x):\n    if x: return 1\n";
    let documented = "def f(x):\n    'Doc.'\n    return 2\n";
    let changed = placebo(plain, Some(documented.into()), 1, LineNumbers::Aligned).unwrap();
    assert!(changed.contains("    'Doc.'\n    if x: "), "{changed}");
    let changed = placebo(documented, Some(plain.into()), 1, LineNumbers::Aligned).unwrap();
    assert!(changed.contains("\n    pass"), "{changed}");
    let has_docstring = |own: &str, other: &str| {
        let changed = placebo(own, Some(other.into()), 1, LineNumbers::Moved).unwrap();
        changed.lines().any(|line| line.starts_with("'Doc.'"))
    };
    assert!(has_docstring("x = 1\n", "'Doc.'\ny = 1\n"));
    assert!(!has_docstring("'Doc.'\nx = 1\n", "y = 1\n"));
}

#[test]
fn imports_of_library_are_real() {
    let other = "import decimal\nimport this\nimport imp\nfrom email.message import Message as M\nimport numpy\n\
                 f(decimal, this, imp, M, numpy)\n";
    let changed = placebo("x = 1\n", Some(other.into()), 1, LineNumbers::Kept).unwrap();
    for line in [
        "try: import decimal",
        "try: from email.message import Message as M",
        "import colorsys as this",
        "import colorsys as imp",
        "import colorsys as numpy",
    ] {
        assert!(changed.lines().any(|own| own == line), "{line}: {changed}");
    }
}

#[test]
fn expressions_are_copied_without_names() {
    let other = OtherText {
        text: OLD,
        has_names: false,
    };
    let changed = placebo(NEW, Some(other), 1, LineNumbers::Kept).unwrap();
    assert!(changed.contains("[] and [x - 1, 'Doc.']; "), "{changed}");
    assert!(!changed.contains("GeneratorExit"), "{changed}");
}

#[test]
fn functions_with_declared_names_get_no_copies() {
    let own = "def f(x):\n    x = 1\n    global y\n    y = 2\n";
    let changed = placebo(
        own,
        Some("def f(x):\n    y = 3\n".into()),
        1,
        LineNumbers::Kept,
    )
    .unwrap();
    assert!(!changed.contains("[] and ["), "{changed}");
}
