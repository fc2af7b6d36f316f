//! Tests of the settings and test files that are detected for Django projects.

use super::*;

const MANAGE: &str = "import os, sys\nos.environ.setdefault(\"DJANGO_SETTINGS_MODULE\", \"site_.settings\")\n\
                      from django.core.management import execute_from_command_line\n";
const NEEDS: (&str, &str) = ("requirements.txt", "Django==5.2\n");
const SETTINGS: &str = "SECRET_KEY = 'x'\nINSTALLED_APPS = []\n";

fn settings(files: &[(&str, &str)]) -> Option<String> {
    detected(DAY, files).0.env.remove("DJANGO_SETTINGS_MODULE")
}

#[test]
fn manage_py_names_settings() {
    let files = [
        NEEDS,
        ("manage.py", MANAGE),
        ("site_/settings.py", SETTINGS),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert_eq!(recipe.env["DJANGO_SETTINGS_MODULE"], "site_.settings");
    assert_eq!(recipe.requirements, ["pytest-django", "pytest"]);
    assert_eq!(
        recipe.runner.options,
        ["--override-ini=python_files=test_*.py *_test.py test*.py tests.py"]
    );
    assert_eq!(recipe.projects, [""; 0]);
}

#[test]
fn tables_are_created_without_committed_migrations() {
    let models = "class Item(Model): pass\n";
    for (module, is_created) in [
        ("shop/migrations/__init__.py", true),
        ("empty/migrations/__init__.py", false),
        ("shop/migrations/0001_initial.py", false),
        ("shop/views.py", false),
        ("other/migrations/__init__.py", false),
    ] {
        let files = [
            NEEDS,
            ("manage.py", MANAGE),
            ("site_/settings.py", SETTINGS),
            ("shop/models.py", models),
            ("empty/models.py", "# Create your models here.\n"),
            (module, ""),
        ];
        let options = detected(DAY, &files).0.runner.options;
        let option = "--nomigrations".to_owned();
        assert_eq!(options.contains(&option), is_created, "{module}");
    }
}

#[test]
fn settings_for_tests_come_first() {
    for (file, expected) in [
        ("site_/test_settings.py", "site_.test_settings"),
        ("site_/settings/test.py", "site_.settings.test"),
        ("site_/other.py", "site_.settings"),
        ("site_/test.py", "site_.settings"),
    ] {
        let package = match file.contains("settings/") {
            true => "site_/settings/__init__.py",
            false => "site_/settings.py",
        };
        let files = [
            NEEDS,
            ("manage.py", MANAGE),
            (package, SETTINGS),
            (file, ""),
        ];
        assert_eq!(settings(&files).as_deref(), Some(expected), "{file}");
    }
}

#[test]
fn folder_of_manage_py_is_imported() {
    let files = [
        NEEDS,
        ("web/manage.py", MANAGE),
        ("web/site_/settings.py", SETTINGS),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert_eq!(recipe.env["DJANGO_SETTINGS_MODULE"], "site_.settings");
    assert_eq!(recipe.projects, ["web"]);
}

#[test]
fn scripts_and_ci_name_settings() {
    let script =
        "import os\nos.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings'\nimport django\n";
    let files = [
        NEEDS,
        ("runtests.py", script),
        ("tests/settings.py", SETTINGS),
    ];
    assert_eq!(settings(&files).as_deref(), Some("tests.settings"));
    let tox = "[testenv]\nsetenv =\n    DJANGO_SETTINGS_MODULE = tests.ci\n";
    assert_eq!(
        settings(&[NEEDS, ("tox.ini", tox), ("tests/ci.py", "")]).as_deref(),
        Some("tests.ci")
    );
    let make = "test:\n\tpython manage.py test --settings=site_.ci\n";
    let files = [
        NEEDS,
        ("manage.py", MANAGE),
        ("Makefile", make),
        ("site_/ci.py", ""),
    ];
    assert_eq!(settings(&files).as_deref(), Some("site_.ci"));
    let files = [NEEDS, ("testapp/settings.py", SETTINGS)];
    assert_eq!(settings(&files).as_deref(), Some("settings"));
    let files = [
        NEEDS,
        ("testapp/settings.py", SETTINGS),
        ("testapp/__init__.py", ""),
    ];
    assert_eq!(settings(&files).as_deref(), Some("testapp.settings"));
}

#[test]
fn settings_in_scripts_become_a_module() {
    let script = "from django.conf import settings\nsettings.configure(INSTALLED_APPS=['x'])\n";
    let (recipe, _) = detected(
        DAY,
        &[
            ("setup.py", "setup(install_requires=['Django'])"),
            ("runtests.py", script),
        ],
    );
    assert_eq!(
        recipe.env["DJANGO_SETTINGS_MODULE"],
        "testwright_django_settings"
    );
    assert!(
        recipe.after_install[0].contains("(\"runtests.py\", \"runtests.py\")"),
        "{recipe:?}"
    );
}

#[test]
fn configured_projects_keep_their_settings() {
    let conftest = "from django.conf import settings\nsettings.configure()\n";
    let files = [
        NEEDS,
        ("manage.py", MANAGE),
        ("tests/conftest.py", conftest),
    ];
    assert_eq!(settings(&files), None);
    let ini = "[pytest]\nDJANGO_SETTINGS_MODULE = a.b\npython_files = t.py\n";
    let files = [NEEDS, ("manage.py", MANAGE), ("pytest.ini", ini)];
    let (recipe, _) = detected(DAY, &files);
    assert!(recipe.env.is_empty() && recipe.runner.options.is_empty());
    assert_eq!(recipe.requirements, ["pytest-django", "pytest"]);
}

#[test]
fn optional_django_changes_nothing() {
    let files = [
        (
            "setup.py",
            "setup(name='queue', install_requires=['click'])",
        ),
        ("requirements/extras/django.txt", "Django>=2\n"),
        ("examples/django/manage.py", MANAGE),
        ("tests/integrations/settings.py", SETTINGS),
        ("tests/test_a.py", ""),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert!(recipe.env.is_empty() && recipe.projects.is_empty());
    assert_eq!(recipe.requirements, ["pytest"]);
}

#[test]
fn django_itself_keeps_its_runner() {
    let files = [
        ("setup.py", "setup(name='Django')"),
        ("django/test/runner.py", ""),
        (
            "tests/runtests.py",
            "os.environ['DJANGO_SETTINGS_MODULE'] = 'test_sqlite'",
        ),
    ];
    let (recipe, _) = detected(DAY, &files);
    assert_eq!(
        (recipe.runner.kind.as_str(), recipe.env.len()),
        ("django", 0)
    );
}
