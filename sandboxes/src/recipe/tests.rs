//! Recipes for small repositories written into temporary folders.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod detection;
mod django;
mod migrations;
mod projects;
mod security;
mod test_commands;

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
fn specifiers_allow_matching_versions() {
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
fn built_in_recipe_matches_name_and_version() {
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
    assert!(at("other/flask", "2.3").1.starts_with("detected"));
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
fn built_in_recipe_matches_repository_and_date() {
    let at = |name: &str, day: &str, file: &str, text: &str| {
        let (_folder, source) = source(name, day, &[(file, text), ("setup.py", text)]);
        find(&source, &Overrides::default()).unwrap()
    };
    for (name, day, file, text, python) in [
        (
            "django/django",
            DAY,
            "django/__init__.py",
            "VERSION = (3, 2, 0, 'alpha', 0)",
            "3.6",
        ),
        (
            "django/django",
            "2021-09-29T06:04:42Z",
            "django/__init__.py",
            "VERSION = (4, 1, 0, \"alpha\", 0)",
            "3.9",
        ),
        (
            "django/django",
            "2023-06-01T00:00:00Z",
            "django/__init__.py",
            "VERSION = (5, 0, 0, \"alpha\", 0)",
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
            "2021-11-08T15:16:59Z",
            "a.py",
            "",
            "3.8",
        ),
        (
            "matplotlib/matplotlib",
            "2022-03-30T06:31:26Z",
            "a.py",
            "",
            "3.11",
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
        assert!(!recipe.untested, "{name} {day}");
        assert_eq!(recipe.services.len(), usize::from(name == "psf/requests"));
        // A repository of another owner, or a folder that happens to have the name.
        for other in [
            format!("other/{}", name.split_once('/').unwrap().1),
            "astropy".to_owned(),
        ] {
            assert!(
                at(&other, day, "x/y.py", text).1.starts_with("detected"),
                "{other}"
            );
        }
    }
    let (recipe, _) = at(
        "django/django",
        DAY,
        "django/__init__.py",
        "VERSION = (1, 11, 0, 'alpha', 0)",
    );
    assert!(recipe.untested);
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
fn pyproject_can_define_environment() {
    let project = "[project]\nname = 'x'\n[tool.testwright.environment]\npython = '3.9'\n";
    let (_folder, plain) = source("a/b", DAY, &[("pyproject.toml", project)]);
    let (recipe, origin) = find(&plain, &Overrides::default()).unwrap();
    assert_eq!(recipe.python.as_deref(), Some("3.9"));
    assert!(
        origin.starts_with("[tool.testwright] of pyproject.toml, over"),
        "{origin}"
    );

    // The repository's testwright.toml wins. A copy of it in the user's folder is not another layer.
    let own = "[environment]\npython = '3.8'\n";
    let files = [("pyproject.toml", project), ("testwright.toml", own)];
    let (_folder, both) = source("a/b", DAY, &files);
    let keys: toml::Table = "python = '3.8'".parse().unwrap();
    let overrides = Overrides {
        keys: Some((keys, "testwright.toml".to_owned())),
        ..Overrides::default()
    };
    let (recipe, origin) = find(&both, &overrides).unwrap();
    assert_eq!(recipe.python.as_deref(), Some("3.8"));
    assert!(
        origin.starts_with("testwright.toml, over detected"),
        "{origin}"
    );
}

#[test]
fn repository_and_user_override_recipe() {
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
fn unknown_keys_suggest_nearest() {
    let error = parse("python = '3.9'\nrequirments = []\n", "r.toml").unwrap_err();
    assert_eq!(error.message, "r.toml:2: unknown key `requirments`");
    assert_eq!(error.hint.as_deref(), Some("did you mean `requirements`?"));
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
fn packages_resolve_to_commit_date() {
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
    // No package had wheels for it on that day.
    assert_eq!(with("3.12", None).as_deref(), Some("2024-04-02T00:00:00Z"));
}

#[test]
fn services_need_name_and_port() {
    let service = |keys: &str| parse(&format!("[[services]]\n{keys}"), "r.toml");
    let whole = "name = \"web\"\ncommand = [\"python\", \"-m\", \"http.server\"]\nport = 8000";
    let recipe = service(whole).unwrap();
    assert_eq!(recipe.services[0].port, 8000);
    for (keys, expected) in [
        (
            whole.replace("\"web\"", "\"../web\""),
            "invalid or duplicate service name `../web`",
        ),
        (whole.replace("8000", "0"), "needs a command and a port"),
        (whole.replace("8000", "80000"), "invalid value"),
        (whole.replace("port", "prot"), "unknown key `prot`"),
        (
            format!("{whole}\n[[services]]\n{whole}"),
            "invalid or duplicate service name `web`",
        ),
    ] {
        let error = service(&keys).unwrap_err();
        assert!(error.message.contains(expected), "{keys}: {error}");
    }
}

#[test]
fn issue_python_is_used_if_possible() {
    use python_version::{Hints, is_possible};
    let hints = Hints {
        requires: vec![">=3.7,<3.12".to_owned()],
        ..Hints::default()
    };
    let available: Vec<String> = ["3.6", "3.7", "3.9", "3.11", "3.12"]
        .map(str::to_owned)
        .into();
    let of = |version: &str, only_if_newer| {
        let preferred = PreferredPython {
            version: version.to_owned(),
            only_if_newer,
        };
        is_possible(&preferred, "3.9", &hints, &available)
    };
    assert!(of("3.11", true) && of("3.7", false));
    // The cases are: older, not allowed, not installed, unknown, and the same version.
    for (version, only_if_newer) in [
        ("3.7", true),
        ("3.12", false),
        ("3.6", false),
        ("3.10", false),
        ("3.14", false),
        ("3.9", false),
    ] {
        assert!(!of(version, only_if_newer), "{version}");
    }
}
