#![allow(clippy::unwrap_used)]

use crate::python::placebo::tests::{SEEDS, statement_rows, without_numbers};
use crate::python::{LineNumbers, placebo};

const OLD: &str = "import re\nfrom a import b\n\n_OLD = 1\n\n\ndef _gone():\n    return b\n\n\n\
                   def f(x):\n    'Doc.'\n    return x - 1\n";
const NEW: &str = "import os\nimport re\n\n\ndef f(x):\n    'Text.'\n    return g(x, y=re.I) + 2.5\n\n\ndef h(): os  # no coding:\n";

#[test]
fn fixed_code_gets_copies_of_removed_code() {
    for seed in SEEDS {
        let changed = placebo(NEW, Some(OLD), seed, LineNumbers::Kept).unwrap();
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
        let changed = placebo(OLD, Some(NEW), seed, LineNumbers::Moved).unwrap();
        for part in [
            "[] and [g(x, y=re.I) + 2.5, 'Text.']; return (lambda: x - 1)()",
            "\nimport colorsys as os\n",
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

#[test]
fn used_and_quoted_names_are_not_defined_again() {
    let changed = |own: &str, other: &str| {
        let changed = placebo(own, Some(other), 1, LineNumbers::Kept).unwrap();
        changed.contains("raise GeneratorExit")
    };
    let other = "from a import name\nname()\n";
    assert!(changed("x = a.name\nf(name=1)\n", other));
    // The issue may ask for an import of another module's name.
    assert!(!changed("x = 1\n", "from .name import name\nf(name=1)\n"));
    assert!(!changed("x = name\n", other));
    assert!(!changed("x = f('name')\n", other));
    assert!(!changed("x = 1\n", "from __future__ import name\nname\n"));
    // Frameworks would use it.
    for name in ["pytest_configure", "__path__", "setUpModule", "main"] {
        assert!(!changed("x = 1\n", &other.replace("name", name)), "{name}");
    }
    for own in [
        "x = 1\ndef __getattr__(a): pass\n",
        "x = 1\n__getattr__ = attach()\n",
        "from a import *\n",
        "globals().update(a)\n",
    ] {
        assert!(!changed(own, other), "{own}");
    }
}

#[test]
fn functions_with_declared_names_get_no_copies() {
    let own = "def f(x):\n    x = 1\n    global y\n    y = 2\n";
    let changed = placebo(own, Some("def f(x):\n    y = 3\n"), 1, LineNumbers::Kept).unwrap();
    assert!(!changed.contains("[] and ["), "{changed}");
}
