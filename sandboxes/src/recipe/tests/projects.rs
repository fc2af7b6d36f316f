//! Tests of repositories with several projects, and of projects that are not installed.

use super::*;
use crate::error::ErrorKind;

const HATCHLING: &str =
    "[build-system]\nrequires = ['hatchling']\nbuild-backend = 'hatchling.build'\n";

fn detected_with(files: &[(&str, &str)], overrides: &Overrides) -> Result<Recipe> {
    let (_folder, source) = source("some/thing", DAY, files);
    find(&source, overrides).map(|(recipe, _)| recipe)
}

fn member(name: &str, more: &str) -> String {
    format!("{HATCHLING}[project]\nname = '{name}'\nversion = '1'\n{more}")
}

fn texts(lines: Option<Vec<String>>) -> String {
    lines.unwrap_or_default().join(" ")
}

#[test]
fn workspace_members_are_installed_in_order() {
    let root = "[project]\nname = 'all'\nversion = '0'\n[dependency-groups]\ndev = ['pytest-mock']\n\
                [tool.uv]\npackage = false\n[tool.uv.workspace]\nmembers = ['packages/*']\nexclude = ['packages/old']\n";
    let report = member("acme-report", "dependencies = ['acme.tally', 'tabulate']\n");
    let tally = member(
        "acme_tally",
        "[project.optional-dependencies]\ntest = ['trio']\n",
    );
    let recipe = detected_with(
        &[
            ("pyproject.toml", root),
            ("packages/a-report/pyproject.toml", &report),
            ("packages/tally/pyproject.toml", &tally),
            ("packages/old/pyproject.toml", &member("old", "")),
            ("packages/tally/tests/test_a.py", ""),
        ],
        &Overrides::default(),
    )
    .unwrap();
    assert_eq!(
        texts(recipe.install),
        "-e ./packages/tally[test] -e ./packages/a-report"
    );
    assert_eq!(recipe.projects, ["packages/tally", "packages/a-report"]);
    assert_eq!(recipe.requirements, ["pytest-mock", "pytest"]);
}

#[test]
fn tests_outside_workspace_members_count() {
    let root = "[tool.uv.workspace]\nmembers = ['libs/*']\n";
    let (core, web) = (member("core", ""), member("web", ""));
    let files = [
        ("pyproject.toml", root),
        ("libs/core/pyproject.toml", core.as_str()),
        ("apps/web/pyproject.toml", web.as_str()),
        ("apps/web/tests/test_a.py", ""),
    ];
    let recipe = detected_with(&files, &Overrides::default()).unwrap();
    assert_eq!(recipe.projects, ["libs/core", "apps/web"]);
}

#[test]
fn own_projects_are_not_required_from_index() {
    let root = "[dependency-groups]\ndev = ['acme_core[fast]>=1', 'pytest-mock']\n\
                [tool.uv.workspace]\nmembers = ['packages/*']\n";
    let core = member(
        "acme-core",
        "[project.optional-dependencies]\nfast = ['x']\n",
    );
    let files = [
        ("pyproject.toml", root),
        ("packages/core/pyproject.toml", core.as_str()),
    ];
    let recipe = detected_with(&files, &Overrides::default()).unwrap();
    assert_eq!(texts(recipe.install), "-e ./packages/core[fast]");
    assert_eq!(recipe.requirements, ["pytest-mock", "pytest"]);
}

#[test]
fn project_in_folder_is_found() {
    let text = member(
        "x",
        "requires-python = '<3.9'\n[project.optional-dependencies]\ntest = ['trio']\n",
    );
    let files = [
        ("python/pyproject.toml", text.as_str()),
        ("python/tests/test_a.py", ""),
        ("python/docs/setup.py", "setup()"),
        ("rust/Cargo.toml", ""),
        ("examples/pyproject.toml", "[project]\nname = 'y'\n"),
        ("examples/test_y.py", ""),
    ];
    let (recipe, origin) = detected(DAY, &files);
    assert_eq!(texts(recipe.install), "-e ./python[test]");
    assert_eq!(recipe.projects, ["python"]);
    assert_eq!(recipe.python.as_deref(), Some("3.8"));
    assert_eq!(origin, "detected from python/pyproject.toml");
}

#[test]
fn projects_tested_from_root_are_installed() {
    let core = member("core", "[project.optional-dependencies]\ntest = ['trio']\n");
    let pool = member("pool", "dependencies = ['core']\n");
    let other = member("other", "");
    let ci = "env:\n  DEPS: ./core[test] ./pool\nsteps:\n- run: pip install $DEPS\n- run: pytest\n";
    let files = [
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("core/pyproject.toml", core.as_str()),
        ("pool/pyproject.toml", pool.as_str()),
        ("other/pyproject.toml", other.as_str()),
        ("tests/test_core.py", ""),
        (".github/workflows/tests.yml", ci),
    ];
    let recipe = detected_with(&files, &Overrides::default()).unwrap();
    assert_eq!(texts(recipe.install), "-e ./core[test] -e ./pool");
}

#[test]
fn projects_without_available_python_are_reported() {
    let root = "[tool.uv.workspace]\nmembers = ['*']\n";
    let new = member("new", "requires-python = '>=3.14'\n");
    let old = member("old", "requires-python = '>=3.8'\n");
    let files = [
        ("pyproject.toml", root),
        ("new/pyproject.toml", new.as_str()),
        ("old/pyproject.toml", old.as_str()),
    ];
    let overrides = Overrides {
        pythons: vec!["3.12".to_owned(), "3.13".to_owned()],
        ..Overrides::default()
    };
    let error = detected_with(&files[..2], &overrides).unwrap_err();
    assert!(error.message.contains(">=3.14"), "{error}");
    assert!(detected_with(&files, &overrides).is_ok());
    let given = Overrides {
        python: Some("3.13".to_owned()),
        ..overrides
    };
    assert!(detected_with(&files[..2], &given).is_ok());
}

#[test]
fn application_in_folder_keeps_its_requirements() {
    let files = [
        ("backend/requirements.txt", "flask\n"),
        ("backend/app/__init__.py", ""),
        ("backend/tests/test_app.py", ""),
        ("frontend/package.json", "{}"),
    ];
    let recipe = detected_with(&files, &Overrides::default()).unwrap();
    assert_eq!(recipe.requirements_files, ["backend/requirements.txt"]);
    assert_eq!(
        (recipe.install, recipe.projects),
        (Some(vec![]), vec!["backend".to_owned()])
    );
}

#[test]
fn folders_in_requirements_files_are_installed() {
    let core = member("acme-core", "");
    let web = member("acme-web", "dependencies = ['acme-core']\n");
    let files = [
        (
            "requirements-dev.txt",
            "-e packages/acme-web[extra]\n-r requirements/more.txt\npytest\n",
        ),
        ("requirements/more.txt", "./packages/acme-core\n"),
        ("packages/acme-core/pyproject.toml", core.as_str()),
        ("packages/acme-web/pyproject.toml", web.as_str()),
    ];
    let recipe = detected_with(&files, &Overrides::default()).unwrap();
    assert_eq!(
        texts(recipe.install),
        "-e ./packages/acme-core -e ./packages/acme-web[extra]"
    );
    assert_eq!(recipe.requirements_files, ["requirements-dev.txt"]);
}

#[test]
fn chosen_project_brings_its_dependencies() {
    let core = member("core", "");
    let web = member("web", "dependencies = ['core>=1']\n");
    let other = member("other", "");
    let files = [
        ("setup.py", "setup(name='root')"),
        ("core/pyproject.toml", core.as_str()),
        ("web/pyproject.toml", web.as_str()),
        ("other/pyproject.toml", other.as_str()),
    ];
    let chosen = |project: &str| {
        let overrides = Overrides {
            project: Some(project.to_owned()),
            ..Overrides::default()
        };
        detected_with(&files, &overrides)
    };
    assert_eq!(
        texts(chosen("./web/").unwrap().install),
        "-e ./core -e ./web"
    );
    assert_eq!(texts(chosen(".").unwrap().install), "-e .");
    let error = chosen("nowhere").unwrap_err();
    assert!(
        error.to_string().contains("the repository has no folder"),
        "{error}"
    );
    assert!(chosen("../other").is_err());
    // Without a choice, only the root counts, as before.
    assert_eq!(
        texts(
            detected_with(&files, &Overrides::default())
                .unwrap()
                .install
        ),
        "-e ."
    );
}

#[test]
fn conflicting_pins_follow_the_subject() {
    let part = |name: &str, pin: &str| {
        member(
            name,
            &format!("[dependency-groups]\ndev = ['attrs=={pin}']\n"),
        )
    };
    let (first, second) = (part("first", "1"), part("second", "2"));
    let files = [
        ("first/pyproject.toml", first.as_str()),
        ("second/pyproject.toml", second.as_str()),
        ("first/test_a.py", ""),
        ("second/test_a.py", ""),
    ];
    let about = |subject: &str| {
        let overrides = Overrides {
            subject: Some(subject.to_owned()),
            ..Overrides::default()
        };
        detected_with(&files, &overrides).unwrap().requirements[0].clone()
    };
    assert_eq!(about("`second.total()` is wrong"), "attrs==2");
    assert_eq!(about("something is wrong"), "attrs==1");
    assert_eq!(about("first, first: see second/test_a.py"), "attrs==2");
}

#[test]
fn paths_select_their_project() {
    let (core, web) = (
        member("core", ""),
        member("web", "dependencies = ['core']\n"),
    );
    let files = [
        ("setup.py", "setup(name='root')"),
        ("libs/core/pyproject.toml", core.as_str()),
        ("libs/web/pyproject.toml", web.as_str()),
        ("libs/web/src/web/views.py", ""),
        ("libs/web/examples/x/setup.py", "setup(name='x')"),
        ("libs/web/examples/x/y.py", ""),
    ];
    let with = "-e ./libs/core -e ./libs/web -e .";
    for (subject, path, install) in [
        ("it fails", "libs/web/src/web/views.py", with),
        ("it fails", "libs/web/tests/test_new.py", with),
        ("see web/views.py:3", "", with),
        (
            "File \"/home/me/git/libs/web/src/web/views.py\", line 3",
            "",
            with,
        ),
        (
            "https://github.com/o/r/blob/main/libs/web/examples/x/y.py#L3",
            "",
            with,
        ),
        ("web/models.py fails, and setup.py", "", "-e ."),
    ] {
        let overrides = Overrides {
            subject: Some(subject.to_owned()),
            paths: vec![path.to_owned()],
            ..Overrides::default()
        };
        let recipe = detected_with(&files, &overrides).unwrap();
        assert_eq!(texts(recipe.install), install, "{subject} {path}");
    }
}

#[test]
fn virtual_projects_get_their_dependencies() {
    for text in [
        "[project]\nname = 'app'\ndependencies = ['flask>=2']\n[tool.uv]\npackage = false\n[dependency-groups]\ndev = ['trio']\n",
        "[tool.poetry]\npackage-mode = false\n[tool.poetry.dependencies]\npython = '^3.8'\nflask = '>=2'\n[tool.poetry.group.dev.dependencies]\ntrio = '*'\n",
        "[tool.poetry]\nname = 'my-app'\n[tool.poetry.dependencies]\npython = '^3.8'\nflask = '>=2'\n[tool.poetry.dev-dependencies]\ntrio = '*'\n",
    ] {
        let recipe = detected_with(&[("pyproject.toml", text)], &Overrides::default()).unwrap();
        assert_eq!(
            recipe.requirements,
            ["trio", "flask>=2", "pytest"],
            "{text}"
        );
        assert_eq!(recipe.install, Some(vec![]));
    }
}

#[test]
fn test_modules_called_tests_are_collected() {
    let code = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n";
    let option = "--override-ini=python_files=test_*.py *_test.py tests.py";
    let options = |files: &[(&str, &str)]| detected(DAY, files).0.runner.options;
    assert_eq!(options(&[("tests.py", code)]), [option]);
    assert_eq!(
        options(&[("test.py", code), ("shop/test.py", code)]),
        ["--override-ini=python_files=test_*.py *_test.py test.py"]
    );
    assert_eq!(
        options(&[("tests.py", "def test_odd(value): pass\n")]),
        [""; 0]
    );
    let ini = "[pytest]\npython_files = check_*.py\n";
    assert_eq!(options(&[("tests.py", code), ("pytest.ini", ini)]), [""; 0]);
    let (_folder, source) = source(
        "some/thing",
        DAY,
        &[("app/tests.py", code), ("tests.py", "")],
    );
    assert_eq!(
        test_files(&source.tree().unwrap(), &[]).unwrap(),
        ["app/tests.py"]
    );
}

#[test]
fn modules_of_own_runner_are_collected() {
    let code = "class T(BaseTestCase):\n    def test_a(self): pass\n";
    let options = |files: &[(&str, &str)]| detected(DAY, files).0.runner.options;
    let imported = [
        ("tests/__init__.py", "from .fields import *\n"),
        ("tests/fields.py", code),
        ("tests/data.py", code),
        ("tests/test_a.py", ""),
    ];
    let option = "--override-ini=python_files=test_*.py *_test.py tests/fields.py";
    assert_eq!(options(&imported), [option]);
    let without_usual_names = [("tests/fields.py", code), ("fields/base.py", code)];
    assert_eq!(options(&without_usual_names), [option]);
}

#[test]
fn additions_extend_the_recipe() {
    let root = member(
        "all",
        "dependencies = ['core']\n[project.optional-dependencies]\ntest = []\n[dependency-groups]\ntest = ['Mock<2']\n\
         [tool.uv.workspace]\nmembers = ['core']\n",
    );
    let core = member("core", "");
    let files = [
        ("pyproject.toml", root.as_str()),
        ("core/pyproject.toml", core.as_str()),
    ];
    let overrides = Overrides {
        requirements: vec!["mock>=4".to_owned()],
        extras: vec!["test".to_owned(), "socks".to_owned()],
        env: vec!["A_B=1=2".to_owned()],
        ..Overrides::default()
    };
    let recipe = detected_with(&files, &overrides).unwrap();
    assert_eq!(recipe.requirements, ["mock>=4", "pytest"]);
    assert_eq!(texts(recipe.install), "-e ./core[socks] -e .[test]");
    assert_eq!(recipe.env["A_B"], "1=2");
    assert_eq!(recipe.stated.added, overrides.requirements);

    let stated = "[environment]\ninstall = ['--no-deps', '-e', '.[docs]']\n";
    let files = [files[0], ("testwright.toml", stated)];
    let recipe = detected_with(&files, &overrides).unwrap();
    assert_eq!(recipe.stated.extras, ["docs", "test", "socks"]);
    assert_eq!(texts(recipe.install), "--no-deps -e .[docs,test,socks]");
}

#[test]
fn invalid_additions_are_refused() {
    let refused = |overrides: Overrides| {
        let error = detected_with(&[("setup.py", "setup(name='x')")], &overrides).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input);
    };
    for variable in ["1A=x", "NAME"] {
        refused(Overrides {
            env: vec![variable.to_owned()],
            ..Overrides::default()
        });
    }
    refused(Overrides {
        requirements: vec!["--index-url=x".to_owned()],
        ..Overrides::default()
    });
}
