//! Tests of recipes that follow from tox, from the commands of CI, and from the files of pip-tools and conda.

use super::*;

const SETUP: (&str, &str) = ("setup.py", "setup(name='x')");

#[test]
fn tox_installs_files_and_lines_of_its_environment() {
    let tox = "[tox]\nenvlist = py{38,39,310}-unit, lint\n[testenv]\ndeps =\n    -r{toxinidir}/needs/unit.txt\n    unit: -r \
               {tox_root}/needs/more.txt\n    py310: trio\n    py38: dataclasses\n    lint: flake8\n    .[fast]\n";
    let files = [
        (
            "setup.py",
            "setup(name='x', extras_require={'fast': ['mock']})",
        ),
        ("needs/unit.txt", "pytest\n"),
        ("needs/more.txt", "attrs\n"),
        ("tox.ini", tox),
    ];
    let (recipe, origin) = detected(DAY, &files);
    assert_eq!(recipe.python.as_deref(), Some("3.10"));
    assert_eq!(recipe.requirements, ["trio", "pytest"]);
    assert_eq!(
        recipe.requirements_files,
        ["needs/unit.txt", "needs/more.txt"]
    );
    assert_eq!(recipe.install.unwrap(), ["-e", ".[fast]"]);
    assert_eq!(origin, "detected from tox.ini");
}

#[test]
fn requirements_file_brings_others_of_tox() {
    let tox = "[testenv]\ndeps =\n    -r{toxinidir}/requirements/default.txt\n    -r{toxinidir}/requirements/test.txt\n";
    let files = [
        SETUP,
        ("requirements/default.txt", "attrs\n"),
        ("requirements/test.txt", "pytest\n"),
        ("tox.ini", tox),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert_eq!(
        recipe.requirements_files,
        ["requirements/default.txt", "requirements/test.txt"]
    );
}

#[test]
fn test_extras_of_tox_replace_the_usual_one() {
    let setup = "setup(name='x', extras_require={'test': [], 'test_all': [], 'fast': []})";
    for (tox, target) in [
        ("deps = .[test_all]\n", ".[test_all]"),
        ("extras = test, fast\n", ".[fast,test]"),
        ("extras = fast\n", ".[test]"),
        ("deps = trio\n", ".[test]"),
    ] {
        let tox = format!("[testenv]\n{tox}");
        let (recipe, _) = detected(DAY, &[("setup.py", setup), ("tox.ini", &tox)]);
        assert_eq!(recipe.install.unwrap(), ["-e", target], "{tox}");
    }
}

#[test]
fn all_forms_of_tox_are_read() {
    for (path, text) in [
        (
            "tox.ini",
            "[tox]\nenvlist = py39\n[testenv:docs]\ndeps = sphinx\n[testenv:py39]\ndeps = trio\n",
        ),
        (
            "tox.ini",
            "[testenv:docs]\ndeps = sphinx\ncommands = x\n[testenv:unit]\ndeps = trio\ncommands = pytest\n",
        ),
        (
            "setup.cfg",
            "[tox:tox]\nskipsdist = true\n[testenv]\ndeps = trio\n",
        ),
        ("tox.toml", "[env_run_base]\ndeps = ['trio']\n"),
        (
            "pyproject.toml",
            "[tool.tox.env_run_base]\ndeps = ['trio']\n",
        ),
        (
            "pyproject.toml",
            "[tool.tox]\nlegacy_tox_ini = '''\n[testenv]\ndeps = trio\n'''\n",
        ),
    ] {
        let (recipe, origin) = detected(DAY, &[SETUP, (path, text)]);
        assert_eq!(recipe.requirements, ["trio", "pytest"], "{text}");
        assert_eq!(origin, format!("detected from {path}"), "{text}");
    }
}

#[test]
fn packages_of_ci_are_used_without_other_lists() {
    let workflow = ".github/workflows/ci.yml";
    let calls = "steps:\n  - run: scripts/ci/install\n  - run: pytest\n";
    let script = ("scripts/ci/install", "pip install trio pytest\n");
    for files in [
        &[(workflow, "steps:\n  - run: pip install trio pytest tox\n")][..],
        &[(workflow, calls), script],
    ] {
        let (recipe, origin) = detected(DAY, &[&[SETUP][..], files].concat());
        assert_eq!(recipe.requirements, ["trio", "pytest"]);
        assert_eq!(origin, format!("detected from {workflow}"));
        let list = ("requirements-test.txt", "pytest\n");
        let (recipe, _) = detected(DAY, &[&[SETUP, list][..], files].concat());
        assert_eq!(recipe.requirements, ["pytest"]);
    }
}

#[test]
fn lists_that_include_themselves_end() {
    let group = "{include-group = 'test'}, ".repeat(20);
    let text = format!("[project]\nname = 'x'\n[dependency-groups]\ntest = [{group}'trio']\n");
    let lines = "-r requirements-test.txt\n".repeat(20);
    let files = [
        ("pyproject.toml", text.as_str()),
        ("requirements-test.txt", lines.as_str()),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert_eq!(recipe.requirements, ["trio", "pytest"]);
}

#[test]
fn packages_of_ci_exclude_the_code_itself() {
    let workflow = "steps:\n  - run: pip install my-tool trio\n  - run: pytest\n";
    let files = [
        ("requirements.txt", "attrs\n"),
        ("src/my_tool/__init__.py", ""),
        (".github/workflows/ci.yml", workflow),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert_eq!(recipe.requirements, ["trio", "pytest"]);
}

#[test]
fn script_counts_for_each_workflow_that_calls_it() {
    let files = [
        SETUP,
        (
            ".github/workflows/a.yml",
            "steps:\n  - run: scripts/install\n",
        ),
        (
            ".github/workflows/b.yml",
            "steps:\n  - run: scripts/install\n  - run: pytest\n",
        ),
        ("scripts/install", "pip install trio\n"),
    ];
    let (recipe, origin) = detected(DAY, &files);
    assert_eq!(recipe.requirements, ["trio", "pytest"]);
    assert_eq!(origin, "detected from .github/workflows/b.yml");
}

#[test]
fn sources_of_pip_tools_are_used_unless_compiled() {
    let base = ("requirements/base.in", "flask\n");
    let test = ("requirements/test.in", "pytest\n");
    let (recipe, _) = detected(DAY, &[base, test]);
    assert_eq!(recipe.requirements_files, [base.0, test.0]);
    let compiled = ("requirements/test.txt", "pytest==7\n");
    let (recipe, _) = detected(DAY, &[base, test, compiled]);
    assert_eq!(recipe.requirements_files, [base.0, compiled.0]);
}

#[test]
fn environment_file_of_conda_is_used() {
    let conda =
        "dependencies:\n  - python=3.8\n  - numpy=1.21\n  - cudatoolkit\n  - pip:\n    - trio\n";
    let files = [("environment.yml", conda), ("a.py", "import numpy as np\n")];
    let (recipe, origin) = detected(DAY, &files);
    assert_eq!(recipe.python.as_deref(), Some("3.8"));
    assert_eq!(recipe.requirements, ["numpy==1.21.*", "trio", "pytest"]);
    assert_eq!(origin, "detected from environment.yml");
    let documentation = ("docs/environment.yml", "dependencies:\n  - python=3.9\n");
    let (recipe, _) = detected(DAY, &[files[0], files[1], documentation]);
    assert_eq!(recipe.python.as_deref(), Some("3.8"));
}

#[test]
fn groups_of_tox_are_added_to_usual_ones() {
    let groups =
        "docs = ['sphinx']\nold = ['six']\noptional = ['trio']\ntest = ['pytest', 'mock']\n";
    let text = format!("[project]\nname = 'x'\n[dependency-groups]\n{groups}");
    let tox = "[tox]\nenvlist = py38\n[testenv]\ndependency_groups =\n    test\n    optional\n    py37: old\n";
    let (recipe, _) = detected(DAY, &[("pyproject.toml", &text), ("tox.ini", tox)]);
    assert_eq!(recipe.requirements, ["trio", "pytest", "mock"]);
}

#[test]
fn extras_without_pytest_leave_other_lists_in_use() {
    let text = "[project]\nname = 'x'\n[project.optional-dependencies]\nd = ['attrs']\n";
    for path in ["requirements-test.txt", "test/units/requirements.txt"] {
        let files = [
            ("pyproject.toml", text),
            ("Makefile", "test:\n\tpip install -e .[d]\n\tpytest\n"),
            (path, "pytest\nmock\n"),
        ];
        let (recipe, _) = detected(DAY, &files);
        assert_eq!(recipe.requirements_files, [path]);
        assert_eq!(recipe.install.unwrap(), ["-e", ".[d]"]);
    }
}

#[test]
fn extras_of_commands_replace_environment_file() {
    let text = "[project]\nname = 'x'\n[project.optional-dependencies]\nall = ['attrs']\n";
    for commands in [
        ("tox.ini", "[testenv]\nextras = all\n"),
        ("Makefile", "test:\n\tpip install -e .[all]\n\tpytest\n"),
    ] {
        let files = [
            ("pyproject.toml", text),
            commands,
            ("environment.yml", "dependencies:\n  - numpy=1.18\n"),
            ("a.py", "import numpy\n"),
        ];
        let (recipe, _) = detected(DAY, &files);
        assert_eq!(recipe.install.unwrap(), ["-e", ".[all]"]);
        assert_eq!(recipe.requirements, ["pytest"]);
    }
}

#[test]
fn features_of_pixi_for_tests_are_installed() {
    let tables = "[dependencies]\ncompilers = '*'\nnumpy = '>=1.21, <2'\npython = '3.8.*'\n[pypi-dependencies]\nx = {path = \
                  '.'}\n[feature.lint.dependencies]\npytest-ruff = '*'\n[feature.old.dependencies]\nscipy = \
                  {version = '1.5.*'}\n[feature.test.dependencies]\npytest = '7.0rc1|8.*'\n[feature.test.pypi-dependencies]\ntrio = \
                  {version = '>=0.2', extras = ['x']}\n[environments]\ndefault = {features = ['lint', 'old', 'test']}\n";
    let code = ("a.py", "import numpy, scipy\n");
    let (recipe, origin) = detected(DAY, &[("pixi.toml", tables), code]);
    let for_tests = ["scipy==1.5.*", "pytest", "trio[x]>=0.2"];
    assert_eq!(recipe.requirements[..3], for_tests);
    assert_eq!(recipe.requirements[3..], ["numpy>=1.21,<2"]);
    assert_eq!(recipe.python.as_deref(), Some("3.8"));
    assert_eq!(origin, "detected from pixi.toml");
    let project = format!(
        "[project]\nname = 'x'\n{}",
        tables.replace("\n[", "\n[tool.pixi.")
    );
    let project = project.replace("\n[dependencies]", "\n[tool.pixi.dependencies]");
    let (recipe, _) = detected(DAY, &[("pyproject.toml", &project), code]);
    assert_eq!(recipe.requirements, for_tests);
}

#[test]
fn requirements_file_with_plugin_of_pytest_is_used() {
    let files = [
        ("requirements/base.txt", "flask\n"),
        ("requirements/local.txt", "-r base.txt\npytest-django\n"),
        ("requirements/production.txt", "-r base.txt\ngunicorn\n"),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert_eq!(
        recipe.requirements_files,
        ["requirements/base.txt", "requirements/local.txt"]
    );
}

#[test]
fn features_of_hatch_are_extras() {
    let text = "[project]\nname = 'x'\n[project.optional-dependencies]\nfast = ['mock']\nslow = ['attrs']\n\
                [tool.hatch.envs.hatch-test]\nfeatures = ['fast']\n";
    let (recipe, _) = detected(DAY, &[("pyproject.toml", text)]);
    assert_eq!(recipe.install.unwrap(), ["-e", ".[fast]"]);
}

#[test]
fn longer_names_of_groups_are_recognized() {
    for (names, expected) in [
        (["unit-tests", "docs"], "unit-tests"),
        (["test_deps", "docs-test"], "test_deps"),
        (["dev", "test-deps"], "dev"),
    ] {
        let groups = names.map(|name| format!("{name} = ['{name}']\n")).concat();
        let text = format!("[project]\nname = 'x'\n[dependency-groups]\n{groups}");
        let (recipe, _) = detected(DAY, &[("pyproject.toml", &text)]);
        assert_eq!(recipe.requirements, [expected, "pytest"]);
    }
}

#[test]
fn files_that_unittest_discovers_are_tests() {
    let code = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n";
    for (command, path, is_collected) in [
        (
            "python -m unittest discover -s checks -p '*_case.py'",
            "checks/a_case.py",
            true,
        ),
        ("python -m unittest", "x/testmore.py", true),
        ("python -m unittest", "x/more.py", false),
        ("python -m pytest", "x/testmore.py", false),
    ] {
        let makefile = format!("test:\n\t{command}\n");
        let files = [
            SETUP,
            ("Makefile", makefile.as_str()),
            ("test_a.py", code),
            (path, code),
        ];
        let (recipe, _) = detected(DAY, &files);
        let option = format!("--override-ini=python_files=test_*.py *_test.py {path}");
        let options = &recipe.runner.options;
        assert_eq!(options.contains(&option), is_collected, "{command} {path}");
    }
}

#[test]
fn configured_names_of_test_files_count() {
    let settings = "[pytest]\npython_files = check_*.py\n";
    let all = "[pytest]\npython_files = *.py\n";
    let files = [
        ("a/pytest.ini", settings),
        ("a/checks/check_a.py", ""),
        ("a/checks/test_a.py", ""),
        ("b/tests/test_b.py", ""),
        ("b/tests/check_b.py", ""),
        ("c/pytest.ini", all),
        ("c/more.py", ""),
        ("c/test_c.py", ""),
        ("pytest.ini", "[pytest]\npython_files = test_b.py\n"),
        ("b/tests/test_other.py", ""),
    ];
    let (_folder, source) = source("a/b", DAY, &files);
    assert_eq!(
        test_files(&source.tree().unwrap(), &[]).unwrap(),
        ["a/checks/check_a.py", "b/tests/test_b.py", "c/test_c.py"]
    );
}

#[test]
fn projects_search_their_own_folders() {
    let files = [
        ("pytest.ini", "[pytest]\ntestpaths = unit\n"),
        ("unit/test_a.py", ""),
        ("more/test_b.py", ""),
        ("a/setup.cfg", "[tool:pytest]\ntestpaths = ./checks\n"),
        ("a/checks/test_c.py", ""),
        ("a/more/test_d.py", ""),
        ("b/setup.py", ""),
        ("b/unit/test_e.py", ""),
    ];
    let (_folder, source) = source("a/b", DAY, &files);
    let files = |projects: &[String]| test_files(&source.tree().unwrap(), projects).unwrap();
    assert_eq!(files(&[]), ["unit/test_a.py"]);
    let both = ["a/checks/test_c.py", "unit/test_a.py"];
    assert_eq!(files(&["a".to_owned()]), both);
}

#[test]
fn patterns_of_all_projects_are_combined() {
    let code = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n";
    let files = [
        ("requirements.txt", "-e ./a\n-e ./b\n"),
        ("a/setup.py", "setup(name='a')"),
        ("a/pytest.ini", "[pytest]\npython_files = check_*.py\n"),
        ("b/setup.py", "setup(name='b')"),
        ("b/tests.py", code),
    ];
    let options = detected(DAY, &files).0.runner.options;
    let patterns = "check_*.py test_*.py *_test.py tests.py";
    assert_eq!(options, [format!("--override-ini=python_files={patterns}")]);
}

#[test]
fn all_groups_of_ci_are_installed() {
    let text = "[project]\nname = 'x'\n[dependency-groups]\nqa = ['trio']\nlint = ['ruff']\n";
    let command = "test:\n\tuv sync --all-groups\n\tuv run pytest\n";
    let (recipe, _) = detected(DAY, &[("pyproject.toml", text), ("Makefile", command)]);
    assert_eq!(recipe.requirements, ["trio", "pytest"]);
}
