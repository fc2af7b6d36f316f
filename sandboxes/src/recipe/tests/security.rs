//! Tests of repository files that are made to break their parsers.

use super::*;

/// Detects a recipe from setup.py. Without limits in the parser, the inputs below would hang or crash the test process.
fn setup_py(code: &str) -> Recipe {
    let (recipe, _) = detected(DAY, &[("setup.py", code)]);
    recipe
}

#[test]
fn deep_nesting_does_not_exhaust_stack() {
    for opening in ["[", "(", "{", "{'a':", "['a', "] {
        setup_py(&format!("setup(tests_require={}", opening.repeat(100_000)));
        let closing = format!("tests_require = {}\n", opening.repeat(60));
        setup_py(&format!("{closing}setup(tests_require=['pytest'])\n"));
    }
    // Ordinary nesting is still read.
    let recipe = setup_py("setup(tests_require=[['pytest', (('attrs'),)]])\n");
    assert_eq!(recipe.requirements, ["pytest", "attrs"]);
}

#[test]
fn name_chains_are_followed_limitedly() {
    let mut code = "tests_require = a\n".repeat(5_000);
    code.push_str(&"a = b\n".repeat(5_000));
    code.push_str(&"tests_require = [tests_require = [".repeat(5_000));
    setup_py(&code);
}

#[test]
fn huge_versions_still_become_bounds() {
    let text =
        "[tool.poetry]\nname = 'x'\n[tool.poetry.dev-dependencies]\na = '^18446744073709551615'\n";
    let (recipe, _) = detected(DAY, &[("pyproject.toml", text)]);
    assert!(
        recipe.requirements.iter().any(|r| r.starts_with("a>=")),
        "{:?}",
        recipe.requirements
    );
}

#[test]
fn oversized_files_are_ignored_or_rejected() {
    let large = format!(
        "setup(tests_require=['attrs'])\n#{}",
        "x".repeat(MAX_FILE_LEN as usize)
    );
    assert!(!setup_py(&large).requirements.contains(&"attrs".to_owned()));
    let own = format!("#{}", "x".repeat(MAX_FILE_LEN as usize));
    let (_folder, source) = source("some/thing", DAY, &[("testwright.toml", &own)]);
    let error = find(&source, &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("1 MiB"), "{error}");
}

#[test]
fn image_from_repository_is_ignored() {
    let text =
        "[environment]\nimage = \"127.0.0.1:1/evil:x\"\ninterpreter = \"/x\"\npython = \"3.9\"\n";
    let files = [
        ("testwright.toml", text),
        ("setup.py", "setup(name='thing')\n"),
    ];
    let (_folder, source) = source("some/thing", DAY, &files);
    let mut overrides = Overrides::default();
    let (recipe, _) = find(&source, &overrides).unwrap();
    assert_eq!((recipe.image, recipe.interpreter), (None, None));
    assert_eq!(recipe.python.as_deref(), Some("3.9"));
    // Other detected keys stay: the package is installed as if no image were given.
    assert_eq!(recipe.install.unwrap(), ["-e", "."]);
    let note = image_left_out(&source, &overrides).unwrap().unwrap();
    assert!(note.contains("--image"), "{note}");
    // An image from the user is used.
    overrides.image = Some("mine:1".to_owned());
    let (recipe, _) = find(&source, &overrides).unwrap();
    assert_eq!(recipe.image.as_deref(), Some("mine:1"));
    assert_eq!(image_left_out(&source, &overrides).unwrap(), None);
}

#[test]
fn system_packages_must_be_names() {
    let parsed = |package: &str| {
        let package = toml::Value::String(package.to_owned());
        parse(
            &format!("system-packages = [\"git\", {package}]\n"),
            "x.toml",
        )
    };
    for package in [
        "g++",
        "libenchant-2-2",
        "libfreetype6-dev",
        "python3.11-dev",
        "libstdc++6:amd64",
        "libpq-dev=1:15.5-0+deb12u1~x",
        "libpq-dev:i386=15",
        "0ad",
    ] {
        assert!(parsed(package).is_ok(), "{package}");
    }
    for package in [
        "",
        "a",
        "-oDir::Bin::dpkg=/bin/sh",
        "--allow-downgrades",
        "-f",
        "git-",
        "./evil.deb",
        "/evil.deb",
        "git/sid",
        "git=",
        "git=-o",
        "git:",
        "git:-x",
        "git;id",
        "git id",
        "git\nid",
        "Git",
        "gít",
        "$(id)",
        "+x",
        "g*",
        "git,hello",
        "git=1=2 x",
        "~n",
        "?name(x)",
    ] {
        let error = parsed(package).unwrap_err();
        assert!(
            error.message.contains("system-packages has"),
            "{package}: {error}"
        );
    }
}
