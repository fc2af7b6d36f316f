use testwright_sandboxes::repository::{File, FileKind};

use super::*;

#[test]
fn only_code_of_patch_counts() {
    let layout = Layout::default();
    let reason = |path: &str| reason_to_leave_out(path, None, Some(""), &layout);
    for (path, part) in [
        ("pkg/core.py", None),
        ("setup.py", None),
        ("docs/index.rst", None),
        ("pkg/_fast.pyx", None),
        ("pkg/latest.py", None),
        ("pyproject.toml", None),
        ("conftest.py", Some("test support")),
        ("pkg/conftest.py", Some("test support")),
        ("tests/test_core.py", Some("part of the tests")),
        ("tests/data.json", Some("part of the tests")),
        ("test_new.py", Some("part of the tests")),
        ("pytest.ini", Some("settings")),
        ("sub/.pytest.toml", Some("settings")),
        (".coveragerc", Some("settings")),
        ("sitecustomize.py", Some("Python starts")),
        ("src/usercustomize.py", Some("Python starts")),
        ("hook.pth", Some("Python starts")),
        ("pkg/core.pyc", Some("bytecode")),
        ("pkg/core.pyo", Some("bytecode")),
        ("pkg/__pycache__/core.cpython-311.pyc.1", Some("bytecode")),
        ("pkg/core.so", Some("extension module")),
        ("pkg/core.cp311-win_amd64.pyd", Some("extension module")),
        ("pkg/core.dll", Some("extension module")),
        ("pkg/core.dylib", Some("extension module")),
    ] {
        match (part, reason(path)) {
            (None, None) => {}
            (Some(part), Some(reason)) if reason.contains(part) => {}
            (_, reason) => panic!("{path}: {reason:?}"),
        }
    }
}

#[test]
fn modules_in_root_replace_libraries() {
    for (path, module) in [
        ("iniconfig.py", Some("iniconfig")),
        ("argparse.py", Some("argparse")),
        ("packaging/__init__.py", Some("packaging")),
        ("packaging/build.py", None),
        ("pkg/argparse.py", None),
        ("src/argparse.py", None),
        ("test/__init__.py", None),
        ("__init__.py", None),
        ("_version.py", None),
        ("parser.py", None),
        ("profile/__init__.py", None),
        ("setup.py", None),
    ] {
        assert_eq!(replaced_library(path), module, "{path}");
    }
}

#[test]
fn links_to_packages_replace_libraries() {
    for (kind, module) in [(FileKind::Link, Some("iniconfig")), (FileKind::Plain, None)] {
        let content = b"pkg/config".to_vec();
        let path = module_path("iniconfig", &File { content, kind });
        assert_eq!(replaced_library(&path), module);
    }
}

#[test]
fn settings_count_unless_they_change_pytest() {
    let layout = Layout::default();
    for (path, before, after, is_code) in [
        (
            "setup.cfg",
            "[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n",
            "[metadata]\nname = b\n[tool:pytest]\naddopts = -q\n",
            true,
        ),
        (
            "setup.cfg",
            "[tool:pytest]\naddopts = -q\n",
            "[tool:pytest]\naddopts = -q\n  -p forging\n",
            false,
        ),
        (
            "setup.cfg",
            "[options.entry_points]\nconsole_scripts = a\n",
            "[options.entry_points]\npytest11 =\n  a = pkg.a\n",
            false,
        ),
        ("tox.ini", "", "[pytest]\naddopts = -p forging\n", false),
        ("tox.ini", "", "[tox]\nenvlist = py311\n", true),
        (
            "pyproject.toml",
            "[project]\ndependencies = [\n  \"pytest>=7\",\n]\n",
            "[project]\ndependencies = [\n  \"pytest>=8\",\n]\n",
            true,
        ),
        (
            "pyproject.toml",
            "",
            "  [tool.pytest.ini_options]\naddopts = \"-p forging\"\n",
            false,
        ),
        (
            "pyproject.toml",
            "",
            "[tool]\npytest.ini_options.addopts = \"-p forging\"\n",
            false,
        ),
        (
            "pyproject.toml",
            "",
            "[tool.\"pyt\\u0065st\".ini_options]\naddopts = \"-p forging\"\n",
            false,
        ),
    ] {
        let reason = reason_to_leave_out(path, Some(before), Some(after), &layout);
        assert_eq!(reason.is_none(), is_code, "{path}: {after}");
    }
}

#[test]
fn modules_with_assertions_are_found() {
    for path in [
        "xarray/testing.py",
        "pkg/_testing.py",
        "sympy/utilities/pytest.py",
    ] {
        assert!(is_assertion_module(path), "{path}");
    }
    for path in ["pkg/core.py", "pkg/contesting.py", "testing/core.py"] {
        assert!(!is_assertion_module(path), "{path}");
    }
}

#[test]
fn constant_comparison_is_suspicious() {
    let class = |body: &str| format!("class A(int):\n    def __eq__(self, other):\n{body}");
    for (code, is_suspicious) in [
        (class("        return True\n"), true),
        (
            class("        \"\"\"Compares.\"\"\"\n        return not False  # always\n"),
            true,
        ),
        (class("        return (1 == 1)\n"), true),
        (class("        return self.x == other.x\n"), false),
        (class("        return NotImplemented\n"), false),
        (class("        print(other)\n        return True\n"), false),
        (
            "class A(int):\n    __eq__ = lambda self, other: True\n".to_owned(),
            true,
        ),
        (
            "A = type('A', (int,), {'__eq__': lambda a, b: True})\n".to_owned(),
            true,
        ),
        (
            "class A(int):\n    __eq__ = lambda a, b: a is b\n".to_owned(),
            false,
        ),
        ("def equal(a, b):\n    return True\n".to_owned(), false),
    ] {
        let suspicions = suspicions("a.py", "", &code);
        assert_eq!(!suspicions.is_empty(), is_suspicious, "{code}");
    }
    let code = class("        return True\n");
    assert_eq!(
        suspicions("pkg/a.py", "", &code),
        ["pkg/a.py:2: `__eq__` always returns the same"]
    );
    // Code that the patch moves is not suspicious.
    assert!(suspicions("a.py", &code, &format!("x = 1\n\n\n{code}")).is_empty());
}
