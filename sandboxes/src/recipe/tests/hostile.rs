//! Files of a repository made to break what reads them.

use super::*;

/// A test of the sizes below never ends, or ends the process, where their reading is not bounded.
fn setup_py(code: &str) -> Recipe {
    let (recipe, _) = detected(DAY, &[("setup.py", code)]);
    recipe
}

#[test]
fn endless_nesting_in_setup_py_does_not_exhaust_the_stack() {
    for opening in ["[", "(", "{", "{'a':", "['a', "] {
        setup_py(&format!("setup(tests_require={}", opening.repeat(100_000)));
        let closing = format!("tests_require = {}\n", opening.repeat(60));
        setup_py(&format!("{closing}setup(tests_require=['pytest'])\n"));
    }
    // Nesting as people write it is read.
    let recipe = setup_py("setup(tests_require=[['pytest', (('attrs'),)]])\n");
    assert_eq!(recipe.requirements, ["pytest", "attrs"]);
}

#[test]
fn names_that_lead_to_names_are_followed_for_a_while() {
    let mut code = "tests_require = a\n".repeat(5_000);
    code.push_str(&"a = b\n".repeat(5_000));
    code.push_str(&"tests_require = [tests_require = [".repeat(5_000));
    setup_py(&code);
}

#[test]
fn versions_too_large_for_a_number_are_bounds_all_the_same() {
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
fn files_that_no_person_wrote_are_passed_over_and_our_own_is_refused() {
    let large = format!(
        "setup(tests_require=['attrs'])\n#{}",
        "x".repeat(MAX_FILE_LEN as usize)
    );
    assert!(!setup_py(&large).requirements.contains(&"attrs".to_owned()));
    let own = format!("#{}", "x".repeat(MAX_FILE_LEN as usize));
    let (_folder, source) = source("some/thing", DAY, &[("testwright.toml", &own)]);
    let error = find(&source, &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("more than 1 MiB"), "{error}");
}

#[test]
fn a_repository_names_no_image() {
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
    // What else is found stays: the package is installed as it is where no image was named.
    assert_eq!(recipe.install.unwrap(), ["-e", "."]);
    let note = image_left_out(&source, &overrides).unwrap().unwrap();
    assert!(note.contains("--image"), "{note}");
    // The user's own is the user's.
    overrides.image = Some("mine:1".to_owned());
    let (recipe, _) = find(&source, &overrides).unwrap();
    assert_eq!(recipe.image.as_deref(), Some("mine:1"));
    assert_eq!(image_left_out(&source, &overrides).unwrap(), None);
}

#[test]
fn system_packages_are_names_and_no_options() {
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
