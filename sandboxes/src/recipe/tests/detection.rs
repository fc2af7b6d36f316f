//! Tests of recipes that are detected from a repository's files.

use super::*;

#[test]
fn pyproject_extras_and_minimum_are_detected() {
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
fn extras_installed_beside_tests_are_detected() {
    let text = "[project]\nname = 'x'\n[project.optional-dependencies]\nlinks = ['a']\ntesting = ['pytest']\nspeed = \
                ['b']\ndocs = ['c']\n";
    let workflow = "steps:\n- run: pip install -e .[testing,links,docs]\n- run: pip install .[speed]\n- run: pytest\n";
    let files = [
        ("pyproject.toml", text),
        (".github/workflows/tests.yml", workflow),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert_eq!(recipe.install.unwrap(), ["-e", ".[testing,links]"]);
}

#[test]
fn tables_of_flit_and_rye_are_read() {
    let flit = "[build-system]\nrequires = ['flit']\nbuild-backend = 'flit.buildapi'\n[tool.flit.metadata]\nmodule = \
                'x'\nrequires = ['attrs']\nrequires-python = '>=3.8'\n[tool.flit.metadata.requires-extra]\ntest = ['mock']\n";
    let (recipe, _) = detected(DAY, &[("pyproject.toml", flit)]);
    assert_eq!(recipe.install.unwrap(), ["-e", ".[test]"]);
    let rye = "[project]\nname = 'x'\n[tool.rye]\ndev-dependencies = ['pytest>=7', 'trio']\n";
    let (recipe, _) = detected(DAY, &[("pyproject.toml", rye)]);
    assert_eq!(recipe.requirements, ["pytest>=7", "trio"]);
    let hatch = "[project]\nname = 'x'\n[dependency-groups]\nqa = ['trio']\n[tool.hatch.envs.hatch-test]\n\
                 dependency-groups = ['qa']\n";
    let (recipe, _) = detected(DAY, &[("pyproject.toml", hatch)]);
    assert_eq!(recipe.requirements, ["trio", "pytest"]);
}

#[test]
fn distribution_name_of_poetry_is_read() {
    let text = "[tool.poetry]\nname = 'some-thing'\n";
    let (_folder, source) = source("a/b", DAY, &[("pyproject.toml", text)]);
    let name = distribution_name(&source.tree().unwrap()).unwrap();
    assert_eq!(name.as_deref(), Some("some-thing"));
}

#[test]
fn groups_with_other_names_are_installed_by_default() {
    for groups in [
        "[tool.pdm.dev-dependencies]\nqa = ['trio']\ndocs = ['sphinx']\n",
        "[tool.poetry]\nname = 'x'\n[tool.poetry.group.qa.dependencies]\ntrio = '*'\n[tool.poetry.group.docs.dependencies]\n\
         sphinx = '*'\n[tool.poetry.group.more]\noptional = true\n[tool.poetry.group.more.dependencies]\nattrs = '*'\n",
    ] {
        let text = format!("[project]\nname = 'x'\n{groups}");
        let (recipe, _) = detected(DAY, &[("pyproject.toml", &text), ("x.py", "")]);
        assert_eq!(recipe.requirements, ["trio", "pytest"], "{text}");
    }
}

#[test]
fn origin_names_build_file() {
    let project = "[project]\nname = 'x'\nversion = '1'\n";
    for (files, origin) in [
        (&[("pyproject.toml", project)][..], "from pyproject.toml"),
        (&[("setup.py", "setup(name='x')")], "from setup.py"),
        (
            &[("setup.py", "setup()"), ("pyproject.toml", project)],
            "from pyproject.toml",
        ),
        (&[("x.py", "")], "without build files"),
    ] {
        assert_eq!(detected(DAY, files).1, format!("detected {origin}"));
    }
}

#[test]
fn native_toml_settings_of_pytest_count() {
    let settings = "addopts = ['--cov', '-n 2']\nenv = ['A=1']\ntimeout = 9\n";
    for (path, section) in [
        ("pyproject.toml", "[tool.pytest]\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("pytest.toml", "[pytest]\n"),
        (".pytest.toml", "[pytest]\n"),
    ] {
        let (recipe, _) = detected(DAY, &[(path, &format!("{section}{settings}"))]);
        assert_eq!(
            recipe.requirements,
            [
                "pytest-cov",
                "pytest-xdist",
                "pytest-timeout",
                "pytest-env",
                "pytest"
            ],
            "{path}"
        );
    }
}

#[test]
fn services_of_own_test_scripts_are_found() {
    let text = "[project]\nname = 'x'\n[project.optional-dependencies]\nredis = ['redis>=3']\n";
    let workflow = "jobs:\n  tests:\n    services:\n      redis:\n        image: redis\n    steps:\n      - run: python runtests.py -v\n";
    let files = [
        ("pyproject.toml", text),
        (".github/workflows/tests.yml", workflow),
    ];
    let (recipe, _) = detected(DAY, &files);
    let names: Vec<_> = recipe.services.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["redis"]);
}

#[test]
fn variables_of_workflows_with_addresses_are_set() {
    let workflow = "jobs:\n  tests:\n    services:\n      db:\n        image: postgres:16\n    env:\n      SHOP_DSN: \"host=127.0.0.1 \
                    user=x\"\n      SHOP_DB: postgresql+asyncpg://x:y@db:5432/shop\n      SHOP_SITE: https://localhost\n      \
                    SHOP_HOST: host=x y\n    steps:\n      - run: pytest\n";
    let files = [
        ("requirements.txt", "asyncpg\npytest\n"),
        (".github/workflows/tests.yml", workflow),
    ];
    let (recipe, _) = detected(DAY, &files);
    let env = recipe.services[0].env.iter();
    let env = env.filter(|(name, _)| name.starts_with("SHOP"));
    let env: Vec<String> = env.map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        env,
        [
            "SHOP_DB=postgresql+asyncpg://postgres:postgres@localhost:5432/postgres",
            "SHOP_DSN=host=localhost port=5432 user=postgres password=postgres dbname=postgres",
        ]
    );
}

#[test]
fn compose_variables_select_user_and_database() {
    let compose = "services:\n  db:\n    image: postgres:16\n    env_file: ./.envs/.postgres\n    environment:\n      \
                   POSTGRES_DB: ${DB_NAME:-shop}\n    ports: ['${DB_PORT}:5432']\n";
    let files = [
        ("docker-compose.yml", compose),
        (".env.example", "DB_PORT=5432\n"),
        (".envs/.postgres", "POSTGRES_USER=ann\n"),
        ("shop/settings.py", "URL = environ['DATABASE_URL']\n"),
    ];
    let (_folder, source) = source("a/b", DAY, &files);
    let service = service_for_port(&source.tree().unwrap(), 5432).unwrap();
    let service = service.unwrap();
    let url = "postgresql://ann:postgres@localhost:5432/shop";
    let env: Vec<_> = service
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let of_repository = format!("DATABASE_URL={url} DB_NAME=shop DB_PORT=5432");
    let of_client = "PGDATABASE=shop PGHOST=localhost PGPASSWORD=postgres PGPORT=5432 PGUSER=ann";
    assert_eq!(
        env.join(" "),
        format!("{of_repository} {of_client} POSTGRES_DB=shop POSTGRES_USER=ann")
    );
    assert!(service.command.join(" ").contains("-U 'ann'"));
}

#[test]
fn single_prefix_of_settings_is_found() {
    let (a, b) = (
        "env_prefix='app_'\n",
        "class Config:\n    env_prefix = \"OTHER_\"\n",
    );
    for (files, prefix) in [
        (&[("a.py", a), ("b.py", a)][..], "APP_"),
        (&[("b.py", b)], "OTHER_"),
        (&[("a.py", a), ("b.py", b)], ""),
        (&[("a.txt", a)], ""),
    ] {
        let (_folder, source) = source("a/b", DAY, files);
        assert_eq!(settings_prefix(&source.tree().unwrap()).unwrap(), prefix);
    }
}

#[test]
fn folders_created_by_ci_are_created() {
    let workflow = "steps:\n  - run: mkdir data media\n  - run: pytest\n";
    let files = [
        ("requirements.txt", "pytest\n"),
        ("media/logo.svg", ""),
        (".github/workflows/tests.yml", workflow),
        (".github/workflows/pages.yml", "- run: mkdir public\n"),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert_eq!(recipe.before_install, ["mkdir -p data"]);
}

#[test]
fn dependency_groups_are_included() {
    let text = "[project]\nname = 'x'\n[dependency-groups]\n\
                base = ['pytest>=7', 'Trio']\ntests = [{include-group = 'base'}, 'attrs']\ndev = ['ruff']\n";
    let (recipe, _) = detected(DAY, &[("pyproject.toml", text)]);
    assert_eq!(recipe.requirements, ["pytest>=7", "Trio", "attrs"]);
}

#[test]
fn files_of_applications_state_python() {
    let image = "FROM docker.io/library/python:3.7-slim AS base\n";
    for (path, text, python) in [
        (".python-version", "3.8.12\n", "3.8"),
        ("runtime.txt", "python-3.7.9", "3.7"),
        (".tool-versions", "nodejs 3.2\npython 3.9.1\n", "3.9"),
        ("Pipfile", "[requires]\npython_version = \"3.8\"\n", "3.8"),
        ("Dockerfile", image, "3.7"),
        ("Dockerfile", "FROM node:3.7\n", "3.10"),
    ] {
        let (recipe, _) = detected(DAY, &[(path, text), ("requirements.txt", "flask\n")]);
        assert_eq!(recipe.python.as_deref(), Some(python), "{path}");
    }
    // An image is a choice for production, so versions that tests run with count more.
    let workflow = (".github/workflows/ci.yml", "python-version: ['3.9']\n");
    let (recipe, _) = detected(DAY, &[("Dockerfile", image), workflow]);
    assert_eq!(recipe.python.as_deref(), Some("3.9"));
}

#[test]
fn setup_py_is_read_not_run() {
    let code = r#"
import os
raise SystemExit("never run")
tests_require = ['pytest==3.2',  # a comment with ' in it
    "mock" + '>=1', 'x' if os else 'y', ] + other
setup(
    name="thing", version=get(),
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
fn setup_cfg_tox_ci_are_detected() {
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
fn requirements_files_without_package_are_detected() {
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
fn requirements_file_of_ci_comes_first() {
    let workflow = (
        ".github/workflows/ci.yml",
        "- run: pip install -r requirements-ci.txt\n- run: pytest\n",
    );
    let of_ci = ("requirements-ci.txt", "numpy\npytest\n");
    let by_name = ("requirements-test.txt", "pytest\n");
    let of_docs = ("doctests/requirements.txt", "torch\n");
    for (files, expected) in [
        (&[workflow, of_ci, by_name, of_docs][..], of_ci.0),
        (&[of_ci, by_name, of_docs], by_name.0),
        (&[of_ci, of_docs], of_ci.0),
    ] {
        let files = [&[("pyproject.toml", "[project]\nname = 'x'\n")][..], files].concat();
        let (recipe, _) = detected(DAY, &files);
        assert_eq!(recipe.requirements_files, [expected]);
    }
}

#[test]
fn requirements_files_of_a_job_are_installed_together() {
    let workflow = "jobs:\n  tests:\n    strategy:\n      matrix:\n        list: [old.txt, new.txt]\n    steps:\n    - run: pip \
                    install -r test_requirements/${{ matrix.list }} -r test_requirements/db.txt\n    - run: manage.py \
                    test\n  others:\n    steps:\n    - run: pip install -r test_requirements/others.txt\n";
    let files = [
        ("pyproject.toml", "[project]\nname = 'x'\n"),
        ("test_requirements/old.txt", "django<5\n"),
        ("test_requirements/new.txt", "django<6\n"),
        ("test_requirements/db.txt", "psycopg\n"),
        ("test_requirements/others.txt", "trio\n"),
        (".github/workflows/tests.yml", workflow),
    ];
    let (recipe, _) = detected(DAY, &files);
    let expected = ["test_requirements/new.txt", "test_requirements/db.txt"];
    assert_eq!(recipe.requirements_files, expected);
}

#[test]
fn requirements_file_with_pytest_gives_extras() {
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
fn hatch_pdm_uv_pipenv_are_detected() {
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
fn tox_list_references_are_resolved() {
    let tox = "[base]\ndeps =\n    trio>=1  # why\n    {[base]deps}\n[testenv]\ndeps =\n    {[base]deps}\n    mock\n    {env:X}\n";
    let (recipe, _) = detected(DAY, &[("setup.py", "setup()"), ("tox.ini", tox)]);
    let mut requirements = recipe.requirements;
    requirements.dedup();
    assert_eq!(requirements, ["trio>=1", "mock", "pytest"]);
}

#[test]
fn templates_beside_tests_are_copied() {
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
fn variable_without_extensions_is_found() {
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
        let variable = build_without_extensions(&source.tree().unwrap()).unwrap();
        assert_eq!(variable.as_deref(), expected, "{text}");
    }
}

#[test]
fn poetry_requirements_are_converted() {
    let text = "[tool.poetry]\nname = 'x'\n[tool.poetry.dependencies]\npython = '^3.8'\n\
                [tool.poetry.group.dev.dependencies]\npytest = '^7.1'\nhere = {path = '..'}\nmore = {version = '~1.2', extras = ['z']}\n";
    let (recipe, _) = detected("2021-06-01T00:00:00Z", &[("pyproject.toml", text)]);
    assert_eq!(recipe.requirements, ["more[z]>=1.2,<1.3", "pytest>=7.1,<8"]);
    assert_eq!(recipe.python.as_deref(), Some("3.9"));
}

#[test]
fn unavailable_python_is_not_chosen() {
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
fn files_that_setup_cfg_names_are_read() {
    let files = [
        ("setup.cfg", "[options]\ninstall_requires = file: a.txt\n"),
        ("a.txt", "flask  # why\n-r b.txt\n"),
    ];
    let (_folder, source) = source("a/b", DAY, &files);
    let metadata = ProjectMetadata::read(&source.tree().unwrap()).unwrap();
    assert_eq!(metadata.dependencies, ["flask"]);
}

#[test]
fn requirements_of_all_projects_are_listed() {
    let files = [
        (
            "setup.cfg",
            "[options]\ninstall_requires = numpy<1.24\n[options.extras_require]\ntest = pytest\n",
        ),
        (
            "a/pyproject.toml",
            "[project]\nname = 'a'\ndependencies = ['trio']\n",
        ),
    ];
    let (_folder, source) = source("a/b", DAY, &files);
    let lines = declared_requirements(&source.tree().unwrap(), &["a".to_owned()]);
    assert_eq!(lines.unwrap(), ["numpy<1.24", "pytest", "trio"]);
}
