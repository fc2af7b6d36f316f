//! Tests of the commands that prepare a database before the tests, as a repository's files state them.

use super::*;

const NEEDS: (&str, &str) = ("requirements.txt", "fastapi\nalembic\npytest\n");
const CONFIGURATION: (&str, &str) = ("alembic.ini", "[alembic]\n");

fn commands(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<(&str, &str)> = [&[NEEDS][..], files].concat();
    detected(DAY, &files).0.before_tests
}

const WORKFLOW: &str = ".github/workflows/test.yml";

#[test]
fn migration_before_tests_of_workflow_counts() {
    let workflow = "jobs:\n  test:\n    steps:\n      - name: Run pytest\n        run: |\n          poetry run alembic \
                    upgrade head\n          poetry run pytest\n";
    let files = [CONFIGURATION, (WORKFLOW, workflow)];
    assert_eq!(commands(&files), ["python -m alembic upgrade head"]);
}

#[test]
fn migrations_elsewhere_do_not_count() {
    let deploy = "jobs:\n  deploy:\n    steps:\n      - run: alembic upgrade head\n";
    let other_job = format!("{deploy}  test:\n    steps:\n      - run: pytest\n");
    let after =
        "jobs:\n  test:\n    steps:\n      - run: pytest\n      - run: alembic upgrade head\n";
    for workflow in [deploy, &other_job, after] {
        let files = [CONFIGURATION, (WORKFLOW, workflow)];
        assert_eq!(commands(&files), [""; 0], "{workflow}");
    }
}

#[test]
fn folder_is_stated_or_has_file() {
    let stated = "jobs:\n  test:\n    steps:\n      - run: alembic upgrade head\n        working-directory: api\n      - \
                  run: pytest\n";
    let changed =
        "jobs:\n  test:\n    steps:\n      - run: cd api && alembic upgrade head && pytest\n";
    let of_container = "jobs:\n  test:\n    steps:\n      - run: docker compose \\\n            run -e URL=postgres://db web alembic upgrade head\n      - run: \
                        docker compose run web pytest\n";
    for workflow in [stated, changed, of_container] {
        let files = [("api/alembic.ini", ""), (WORKFLOW, workflow)];
        let expected = ["cd api && python -m alembic upgrade head"];
        assert_eq!(commands(&files), expected, "{workflow}");
    }
}

#[test]
fn called_scripts_and_targets_are_read() {
    let workflow = "jobs:\n  test:\n    steps:\n      - run: uv run bash scripts/prestart.sh\n      - run: make test\n";
    let script =
        "#! /usr/bin/env bash\nset -e\n# Run migrations\nalembic upgrade head\npython seed.py\n";
    let by_script = [
        CONFIGURATION,
        (WORKFLOW, workflow),
        ("scripts/prestart.sh", script),
    ];
    assert_eq!(commands(&by_script), ["python -m alembic upgrade head"]);

    let makefile = ".PHONY: test migrate\nURL = sqlite://\nmigrate:\n\t@alembic upgrade head\nlint:\n\tflake8\ntest: \
                    migrate\n\tpytest\n";
    let by_target = [CONFIGURATION, ("Makefile", makefile)];
    assert_eq!(commands(&by_target), ["python -m alembic upgrade head"]);
    let separate = makefile.replace("test: migrate", "test: lint");
    assert_eq!(commands(&[CONFIGURATION, ("Makefile", &separate)]), [""; 0]);
}

#[test]
fn tox_and_nox_run_migrations() {
    let tox = "[testenv]\ncommands_pre =\n    alembic upgrade head\ncommands = pytest {posargs}\n";
    assert_eq!(
        commands(&[CONFIGURATION, ("tox.ini", tox)]),
        ["python -m alembic upgrade head"]
    );
    let nox = "import nox\n\n@nox.session\ndef tests(session):\n    session.run(\"alembic\", \"upgrade\", \"head\", \
               external=True)\n    session.run(\"pytest\")\n";
    assert_eq!(
        commands(&[CONFIGURATION, ("noxfile.py", nox)]),
        ["python -m alembic upgrade head"]
    );
}

#[test]
fn application_follows_from_variables() {
    let workflow = "jobs:\n  test:\n    env:\n      FLASK_APP: shop:create_app\n    steps:\n      - run: flask db upgrade\n      \
                    - run: pytest\n";
    assert_eq!(
        commands(&[(WORKFLOW, workflow)]),
        ["FLASK_APP=shop:create_app python -m flask db upgrade"]
    );
}

#[test]
fn values_of_variables_are_quoted() {
    let workflow = "jobs:\n  test:\n    steps:\n      - run: URL=sqlite://?a=1 flask db upgrade\n      - run: pytest\n";
    assert_eq!(
        commands(&[(WORKFLOW, workflow)]),
        ["URL='sqlite://?a=1' python -m flask db upgrade"]
    );
}

#[test]
fn plugin_of_django_creates_tables_itself() {
    let workflow =
        "jobs:\n  test:\n    steps:\n      - run: python manage.py migrate\n      - run: pytest\n";
    let manage = "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'site_.settings')\n";
    let files = [
        ("manage.py", manage),
        (
            "site_/settings.py",
            "INSTALLED_APPS = []\nSECRET_KEY = 'x'\n",
        ),
        (WORKFLOW, workflow),
    ];
    assert_eq!(commands(&files), [""; 0]);
    let own = "INSTALLED_APPS = []\nimport django\ndjango.setup()\n";
    let configured = [
        ("manage.py", manage),
        ("tests/conftest.py", own),
        (WORKFLOW, workflow),
    ];
    assert_eq!(commands(&configured), ["python manage.py migrate"]);
}

#[test]
fn stated_commands_replace_detected_ones() {
    let workflow =
        "jobs:\n  test:\n    steps:\n      - run: alembic upgrade head\n      - run: pytest\n";
    let own = "[environment]\nbefore-tests = [\"python seed.py\"]\n";
    let files = [
        NEEDS,
        CONFIGURATION,
        (WORKFLOW, workflow),
        ("testwright.toml", own),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert_eq!(recipe.before_tests, ["python seed.py"]);
    assert!(recipe.stated.before_tests);
}
