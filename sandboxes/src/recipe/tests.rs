//! Recipes for small repositories written into temporary folders.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod hostile;

use super::*;
use crate::repository::{OpenOptions, open};

fn source(name: &str, date: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Source) {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("project");
    std::fs::create_dir(&work).unwrap();
    for (path, content) in files {
        let path = work.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let cache = folder.path().join("cache");
    let repository = open(
        work.to_str().unwrap(),
        None,
        &cache,
        &OpenOptions::default(),
    )
    .unwrap();
    let source = Source {
        name: name.to_owned(),
        date: Some(date.to_owned()),
        ..repository.source().unwrap()
    };
    (folder, source)
}

fn detected(date: &str, files: &[(&str, &str)]) -> (Recipe, String) {
    let (_folder, source) = source("some/thing", date, files);
    find(&source, &Overrides::default()).unwrap()
}

const DAY: &str = "2022-06-01T10:00:00Z";

#[test]
fn pyproject_with_extras_and_a_floor() {
    let text = "[project]\nname = 'x'\nrequires-python = '>=3.7'\n\
                [project.optional-dependencies]\ntest = ['pytest']\ndocs = ['sphinx']\n\
                [tool.pytest.ini_options]\naddopts = '-ra --cov=x'\n";
    let (recipe, origin) = detected(DAY, &[("pyproject.toml", text)]);
    assert_eq!(recipe.install.unwrap(), ["-e", ".[test]"]);
    assert_eq!(recipe.requirements, ["pytest-cov", "pytest"]);
    assert_eq!(recipe.python.as_deref(), Some("3.10"));
    assert_eq!(origin, "detected from pyproject.toml");
}

#[test]
fn dependency_groups_are_followed() {
    let text = "[project]\nname = 'x'\n[dependency-groups]\n\
                base = ['pytest>=7', 'Trio']\ntests = [{include-group = 'base'}, 'attrs']\ndev = ['ruff']\n";
    let (recipe, _) = detected(DAY, &[("pyproject.toml", text)]);
    assert_eq!(recipe.requirements, ["pytest>=7", "Trio", "attrs"]);
}

#[test]
fn an_old_setup_py_is_read_not_run() {
    let code = r#"
import os
raise SystemExit("never run")
tests_require = ['pytest==3.2',  # a comment with ' in it
    "mock" + '>=1', 'x' if os else 'y', ] + other
setup(
    name="x", version=get(),
    python_requires=">=2.7, !=3.0.*",
    tests_require=tests_require,
    classifiers=["Programming Language :: Python :: 3.4"],
    use_2to3=True,
)
"#;
    let (recipe, origin) = detected("2015-03-01T00:00:00Z", &[("setup.py", code)]);
    assert_eq!(recipe.python.as_deref(), Some("3.6"));
    assert_eq!(
        recipe.requirements,
        ["pytest==3.2", "mock", "x", "setuptools<58"]
    );
    assert_eq!(recipe.build_constraints, ["setuptools<58"]);
    assert_eq!(recipe.install.unwrap(), ["-e", "."]);
    assert_eq!(origin, "detected from setup.py");
}

#[test]
fn setup_cfg_tox_and_ci() {
    let cfg =
        "[metadata]\nname = x\n[options]\npython_requires = >=3.6\n[tool:pytest]\naddopts = -n 4\n";
    let tox = "[tox]\nenvlist = py36,py38\n[testenv]\ndeps =\n    pytest\n    py36: dataclasses\n    -rreq/t.txt\n    {env:X}\n    -e .\n";
    let ci = "jobs:\n  strategy:\n    matrix:\n      python-version: ['3.7', '3.9']\n";
    let (recipe, origin) = detected(
        DAY,
        &[
            ("setup.py", "from setuptools import setup\nsetup()\n"),
            ("setup.cfg", cfg),
            ("tox.ini", tox),
            ("req/t.txt", "mock\n"),
            (".github/workflows/ci.yml", ci),
        ],
    );
    assert_eq!(
        recipe.python.as_deref(),
        Some("3.9"),
        "CI names nothing newer"
    );
    assert_eq!(recipe.requirements, ["pytest", "pytest-xdist"]);
    assert_eq!(recipe.requirements_files, ["req/t.txt"]);
    assert_eq!(
        origin,
        "detected from setup.cfg, tox.ini, .github/workflows/ci.yml"
    );
}

#[test]
fn requirements_files_and_nothing_to_install() {
    let (recipe, _) = detected(
        DAY,
        &[
            ("requirements.txt", "flask\n"),
            ("requirements-dev.txt", "black\n"),
            ("requirements/tests.txt", "pytest\n"),
            ("docs/requirements/test.txt", ""),
            ("app.py", ""),
        ],
    );
    assert_eq!(
        recipe.requirements_files,
        ["requirements.txt", "requirements/tests.txt"]
    );
    assert_eq!(recipe.install.unwrap(), Vec::<String>::new());
    assert_eq!(recipe.requirements, ["pytest"]);
}

#[test]
fn a_requirements_file_with_pytest_is_for_tests_and_names_extras() {
    let (recipe, origin) = detected(
        DAY,
        &[
            (
                "pyproject.toml",
                "[project]\nname = 'x'\n[project.optional-dependencies]\nfull = []",
            ),
            (
                "requirements.txt",
                "-e .[full, http2]  # all of it\nPyTest==8.3.2\ntrio\n",
            ),
            ("requirements/docs.txt", "sphinx\n"),
            ("requirements/dev.txt", "black\n"),
        ],
    );
    assert_eq!(recipe.requirements_files, ["requirements.txt"]);
    assert_eq!(recipe.install.unwrap(), ["-e", ".[full,http2]"]);
    assert_eq!(origin, "detected from requirements.txt");
}

#[test]
fn tables_of_hatch_pdm_uv_and_pipenv() {
    for (file, text) in [
        ("pyproject.toml", "[tool.uv]\ndev-dependencies = ['trio']"),
        (
            "pyproject.toml",
            "[tool.pdm.dev-dependencies]\ntest = ['trio']\ndoc = ['sphinx']",
        ),
        (
            "pyproject.toml",
            "[tool.hatch.envs.hatch-test]\nextra-dependencies = ['trio']",
        ),
        (
            "Pipfile",
            "[packages]\nflask = '*'\n[dev-packages]\ntrio = '*'\nx = {path = '.'}",
        ),
    ] {
        let (recipe, origin) = detected(DAY, &[("setup.py", "setup()"), (file, text)]);
        assert_eq!(recipe.requirements, ["trio", "pytest"], "{text}");
        assert_eq!(origin, format!("detected from {file}"));
    }
}

#[test]
fn tox_lists_may_name_other_lists() {
    let tox = "[base]\ndeps =\n    trio>=1  # why\n    {[base]deps}\n[testenv]\ndeps =\n    {[base]deps}\n    mock\n    {env:X}\n";
    let (recipe, _) = detected(DAY, &[("setup.py", "setup()"), ("tox.ini", tox)]);
    let mut requirements = recipe.requirements;
    requirements.dedup();
    assert_eq!(requirements, ["trio>=1", "mock", "pytest"]);
}

#[test]
fn tests_get_the_files_that_have_templates() {
    let (recipe, _) = detected(
        DAY,
        &[
            ("setup.py", "setup()"),
            ("x/test/secrets.py-dist", ""),
            ("tests/there.cfg.example", ""),
            ("tests/there.cfg", ""),
            ("tests/data/shot.png.sample", ""),
            ("tests/a b.py-dist", ""),
            ("settings.py.example", ""),
        ],
    );
    assert_eq!(
        recipe.before_install,
        ["cp x/test/secrets.py-dist x/test/secrets.py"]
    );
}

#[test]
fn extensions_are_left_out_by_the_variable_that_setup_py_reads() {
    for (text, expected) in [
        (
            "x = bool(os.environ.get(\"AIOHTTP_NO_EXTENSIONS\"))",
            Some("AIOHTTP_NO_EXTENSIONS"),
        ),
        (
            "if 'x' in os.environ['DISABLE_SQLALCHEMY_CEXT']:",
            Some("DISABLE_SQLALCHEMY_CEXT"),
        ),
        (
            "os.getenv('MSGPACK_PUREPYTHON')",
            Some("MSGPACK_PUREPYTHON"),
        ),
        ("os.environ.get('HOME')", None),
    ] {
        let (_folder, source) = source("some/thing", DAY, &[("setup.py", text)]);
        let found = build_without_extensions(&source.tree().unwrap()).unwrap();
        assert_eq!(found.as_deref(), expected, "{text}");
    }
}

#[test]
fn poetry_speaks_its_own_language() {
    let text = "[tool.poetry]\nname = 'x'\n[tool.poetry.dependencies]\npython = '^3.8'\n\
                [tool.poetry.group.dev.dependencies]\npytest = '^7.1'\nhere = {path = '..'}\nmore = {version = '~1.2', extras = ['z']}\n";
    let (recipe, _) = detected("2021-06-01T00:00:00Z", &[("pyproject.toml", text)]);
    assert_eq!(recipe.requirements, ["more>=1.2,<1.3", "pytest>=7.1,<8"]);
    assert_eq!(recipe.python.as_deref(), Some("3.9"));
}

#[test]
fn a_python_that_the_backend_lacks_is_not_chosen() {
    let (_folder, source) = source(
        "some/thing",
        DAY,
        &[("setup.py", "setup(python_requires='>=3.7')")],
    );
    let overrides = Overrides {
        pythons: vec!["3.6".to_owned(), "3.8".to_owned(), "3.13".to_owned()],
        ..Overrides::default()
    };
    assert_eq!(
        find(&source, &overrides).unwrap().0.python.as_deref(),
        Some("3.8")
    );
}

#[test]
fn specifiers_allow_what_they_say() {
    for (specifier, yes, no) in [
        (">=3.7,<4", 9, 6),
        (">= 3.7, < 3.10", 9, 10),
        ("~=3.8", 9, 7),
        ("^3.8", 12, 7),
        ("!=3.7.*,>=3.6", 8, 7),
        (">3.6.1", 6, 5),
        ("<3.9.2", 9, 10),
        ("==3.8.*", 8, 9),
        (">=2.7, !=3.0.*, !=3.1.*", 6, 1),
    ] {
        assert!(
            python_version::allows(specifier, yes),
            "{specifier} 3.{yes}"
        );
        assert!(!python_version::allows(specifier, no), "{specifier} 3.{no}");
    }
}

#[test]
fn built_in_recipes_are_found_by_name_and_version() {
    let at = |name: &str, version: &str| {
        let line = format!("__version__ = '{version}'\n");
        let (_folder, source) = source(
            name,
            DAY,
            &[("src/flask/__init__.py", &line), ("setup.py", "setup()")],
        );
        find(&source, &Overrides::default()).unwrap()
    };
    let (recipe, origin) = at("pallets/flask", "2.3.0.dev");
    assert_eq!(
        (recipe.python.as_deref(), origin.as_str()),
        (Some("3.11"), "built-in pallets/flask")
    );
    assert_eq!(at("flask", "2.0.1").0.python.as_deref(), Some("3.9"));
    assert!(at("pallets/flask", "7.0").1.starts_with("detected"));
    assert!(at("somebody/flask", "2.3").1.starts_with("detected"));
    let (_folder, source) = source(
        "pallets/flask",
        DAY,
        &[("src/flask/__init__.py", "__version__ = '2.3'")],
    );
    let overrides = Overrides {
        no_built_in: true,
        ..Overrides::default()
    };
    assert!(find(&source, &overrides).unwrap().1.starts_with("detected"));
}

#[test]
fn a_recipe_is_for_its_repository_and_its_time() {
    let at = |name: &str, day: &str, file: &str, text: &str| {
        let (_folder, source) = source(name, day, &[(file, text), ("setup.py", text)]);
        find(&source, &Overrides::default()).unwrap()
    };
    for (name, day, file, text, python) in [
        (
            "django/django",
            "2020-06-01T00:00:00Z",
            "django/a.py",
            "",
            "3.6",
        ),
        (
            "django/django",
            "2023-06-01T00:00:00Z",
            "django/a.py",
            "",
            "3.11",
        ),
        (
            "scikit-learn/scikit-learn",
            DAY,
            "sklearn/__init__.py",
            "__version__ = '0.22.dev0'",
            "3.6",
        ),
        (
            "matplotlib/matplotlib",
            "2020-01-01T00:00:00Z",
            "a.py",
            "",
            "3.8",
        ),
        (
            "astropy/astropy",
            "2016-05-01T00:00:00Z",
            "a.py",
            "VERSION = '1.2.dev'",
            "3.6",
        ),
        ("astropy/astropy", "2022-05-01T00:00:00Z", "a.py", "", "3.9"),
        (
            "psf/requests",
            DAY,
            "requests/__init__.py",
            "__version__ = '2.4.3'",
            "3.9",
        ),
    ] {
        let (recipe, origin) = at(name, day, file, text);
        assert_eq!(origin, format!("built-in {name}"));
        assert_eq!(recipe.python.as_deref(), Some(python), "{name} {text}");
        let untested = ["django", "scikit", "matplot"]
            .iter()
            .any(|n| name.starts_with(n));
        assert_eq!(recipe.untested, untested, "{name}");
        assert_eq!(recipe.services.len(), usize::from(name == "psf/requests"));
        // Another's, or a folder that happens to have the name.
        for other in [
            format!("somebody/{}", name.split_once('/').unwrap().1),
            "astropy".to_owned(),
        ] {
            assert!(
                at(&other, day, "x/y.py", text).1.starts_with("detected"),
                "{other}"
            );
        }
    }
    let (recipe, _) = at(
        "psf/requests",
        DAY,
        "requests/__init__.py",
        "__version__ = '2.9.1'",
    );
    assert!(recipe.services.is_empty());
    assert!(
        recipe
            .requirements
            .iter()
            .any(|r| r.starts_with("pytest-httpbin"))
    );
}

#[test]
fn the_repository_and_the_user_have_the_last_word() {
    let toml =
        "[model]\nname = 'x'\n[environment]\nrequirements = ['pytest<8']\nenv = { A = '1' }\n";
    let (_folder, source) = source(
        "a/b",
        DAY,
        &[("setup.py", "setup()"), ("testwright.toml", toml)],
    );
    let keys: toml::Table = "env = { B = '2' }\nrunner = { options = ['-x'] }"
        .parse()
        .unwrap();
    let overrides = Overrides {
        keys: Some((keys, "settings".to_owned())),
        python: Some("3.8".to_owned()),
        ..Overrides::default()
    };
    let (recipe, origin) = find(&source, &overrides).unwrap();
    assert_eq!(recipe.requirements, ["pytest<8"]);
    assert_eq!(recipe.env.keys().collect::<Vec<_>>(), ["A", "B"]);
    assert_eq!(
        (
            recipe.runner.kind.as_str(),
            recipe.runner.options.as_slice()
        ),
        ("pytest", &["-x".to_owned()][..])
    );
    assert_eq!(recipe.python.as_deref(), Some("3.8"));
    assert!(
        origin.starts_with("settings, over testwright.toml, over detected"),
        "{origin}"
    );

    let image = Overrides {
        image: Some("some/image:1".to_owned()),
        ..Overrides::default()
    };
    let (recipe, _) = find(&source, &image).unwrap();
    assert_eq!(
        (recipe.image.as_deref(), recipe.python),
        (Some("some/image:1"), None)
    );
}

#[test]
fn unknown_keys_name_the_nearest() {
    let error = parse("python = '3.9'\nrequirments = []\n", "r.toml").unwrap_err();
    assert_eq!(error.message, "r.toml:2: unknown key `requirments`");
    assert_eq!(
        error.hint.as_deref(),
        Some("the nearest known key is `requirements`")
    );
    for wrong in [
        "python = '39'",
        "python = 3.9",
        "exclude-newer = 'soon'",
        "runner = { kind = 'nose' }",
        "interpreter = '/x'",
    ] {
        assert!(parse(wrong, "r.toml").is_err(), "{wrong}");
    }
    let (_folder, source) = source(
        "a/b",
        DAY,
        &[("testwright.toml", "[environment]\npyhton = '3.9'\n")],
    );
    let error = find(&source, &Overrides::default()).unwrap_err();
    assert_eq!(error.message, "testwright.toml: unknown key `pyhton`");
}

#[test]
fn packages_are_resolved_as_of_the_commit() {
    let (_folder, source) = source("a/b", "2022-06-01T10:00:00Z", &[("a.py", "")]);
    let with = |python: &str, date: Option<&str>| {
        let recipe = Recipe {
            python: Some(python.to_owned()),
            exclude_newer: date.map(str::to_owned),
            ..Recipe::default()
        };
        resolution_date(&recipe, &source)
    };
    assert_eq!(with("3.9", None).as_deref(), Some("2022-06-02T00:00:00Z"));
    assert_eq!(
        with("3.9", Some("2024-10-01")).as_deref(),
        Some("2024-10-01T00:00:00Z")
    );
    assert_eq!(with("3.9", Some("never")), None);
    // That day, nothing had wheels for it.
    assert_eq!(with("3.12", None).as_deref(), Some("2024-04-02T00:00:00Z"));
}

#[test]
fn services_are_named_and_have_a_port() {
    let service = |keys: &str| parse(&format!("[[services]]\n{keys}"), "r.toml");
    let whole = "name = \"web\"\ncommand = [\"python\", \"-m\", \"http.server\"]\nport = 8000";
    let recipe = service(whole).unwrap();
    assert_eq!(recipe.services[0].port, 8000);
    for (keys, expected) in [
        (
            whole.replace("\"web\"", "\"../web\""),
            "there cannot be a service `../web`",
        ),
        (whole.replace("8000", "0"), "needs a command and a port"),
        (whole.replace("8000", "80000"), "invalid value"),
        (whole.replace("port", "prot"), "unknown key `prot`"),
        (
            format!("{whole}\n[[services]]\n{whole}"),
            "there cannot be a service `web`",
        ),
    ] {
        let error = service(&keys).unwrap_err();
        assert!(error.message.contains(expected), "{keys}: {error}");
    }
}
