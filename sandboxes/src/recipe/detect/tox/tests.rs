use super::*;

#[test]
fn environment_of_chosen_python_is_used() {
    for (listed, python, environment) in [
        ("py{38,39}-dj{32,42}, lint", "3.9", Some("py39-dj42")),
        ("py39\n    py310,docs", "3.10", Some("py310")),
        ("{3.9,3.12}-unit", "3.12", Some("3.12-unit")),
        ("py39-dj42,py39-djmain", "3.9", Some("py39-dj42")),
        ("py39-cov", "3.9", Some("py39-cov")),
        ("py,pypy3", "3.9", Some("py")),
        ("py3{8-10}-x", "3.9", Some("py39-x")),
        ("py39-{sqlite,postgres,mysql}", "3.9", Some("py39-sqlite")),
        ("py39-{postgres,mysql}", "3.9", Some("py39-mysql")),
        ("pypy39,py38", "3.9", None),
        (
            "py39-unit,py39-integration-sqs,apicheck",
            "3.9",
            Some("py39-unit"),
        ),
        ("py39,extra", "3.9", Some("py39")),
        ("unit,flake8", "3.9", Some("unit")),
        ("docs,mypy", "3.9", None),
        ("clean,py39-cov,report", "3.9", Some("py39-cov")),
        ("clean,py36,report", "3.9", None),
    ] {
        let tox = Ini::parse(&format!("[tox]\nenvlist = {listed}\n"));
        assert_eq!(
            test_environment(&tox, python).as_deref(),
            environment,
            "{listed}"
        );
    }
}

#[test]
fn section_of_unlisted_python_is_used() {
    let text = "[tox]\nenvlist = py310\n[testenv:py{310,311}]\nextras =\n    links\n    \
                testing\n[testenv:py{310,311}-plugins]\nextras = testing\n[testenv:docs]\nextras = docs\n";
    let tox = Ini::parse(text);
    for (python, environment) in [
        ("3.10", Some("py310")),
        ("3.11", Some("py311")),
        ("3.12", None),
    ] {
        assert_eq!(test_environment(&tox, python).as_deref(), environment);
    }
    let extras = first_list(&tox, Some("py311"), "extras");
    assert_eq!(extras, ["links", "testing"]);
}

#[test]
fn sections_with_factors_are_expanded() {
    let section = "[testenv:py{38,39}-django{32,42}]\ndeps =\n    django32: Django<4\n    py38,py39: {[base]deps}\n    \
                       !django42: old\n";
    let text = format!(
        "{section}[testenv]\ndeps = x\n[base]\ndeps =\n    django42: Django<5\n    !py38: new\n"
    );
    for (listed, environment, expected) in [
        ("", "py39-django42", ["Django<5", "new"]),
        ("py38-django32", "py38-django32", ["Django<4", "old"]),
    ] {
        let tox = Ini::parse(&format!("[tox]\nenvlist = {listed}\n{text}"));
        let python = &environment[2..4].replace('3', "3.");
        assert_eq!(test_environment(&tox, python).as_deref(), Some(environment));
        assert_eq!(first_list(&tox, Some(environment), "deps"), expected);
        assert!(python_minors(&tox).contains(&8));
    }
    let tox = Ini::parse(&text);
    assert_eq!(first_list(&tox, Some("py310"), "deps"), ["x"]);
    let unit = "[testenv:unit]\ndeps = y\ncommands = pytest\n";
    let tox = Ini::parse(&format!("[testenv]\ndeps =\n    old: x\n{unit}"));
    assert!(first_list(&tox, Some("py310"), "deps").is_empty());
}

#[test]
fn lists_that_refer_to_themselves_end() {
    let references = "    {[testenv]deps}\n    {[base]deps}\n".repeat(20);
    let text = format!("[testenv]\ndeps =\n    x\n{references}[base]\ndeps =\n    y\n");
    let tox = Ini::parse(&text);
    assert_eq!(first_list(&tox, None, "deps"), ["x", "y"]);
}

#[test]
fn environments_list_pythons() {
    let tox = Ini::parse("[tox]\nenvlist = py{27,36,310}-x, 3.12, pypy39, py3, dj32\n");
    assert_eq!(python_minors(&tox), [6, 10, 12]);
}

#[test]
fn conditions_are_evaluated() {
    let factors = BTreeSet::from(["py39", "dj42"]);
    for (condition, expected) in [
        ("py39", true),
        ("py38, py39", true),
        ("py{38,39}-dj42", true),
        ("py39-dj32", false),
        ("!dj32", true),
        ("lint", false),
    ] {
        assert_eq!(applies(condition, &factors), expected, "{condition}");
    }
    assert!(!applies("!dj32", &BTreeSet::new()));
    assert!(CONDITION.captures("https://example.org/x.zip").is_none());
    assert!(CONDITION.captures("pytest>=2").is_none());
}

#[test]
fn tables_become_sections() {
    let table: toml::Table = "env_list = ['3.12', 'type']\n[env_run_base]\ndeps = ['pytest', \
                                  'mock']\ncommands = [['pytest', '-v'], ['x']]\n[env.type]\ndeps = [{replace = 'ref', of = \
                                  ['env_run_base', 'deps']}, 'mypy']\n"
            .parse()
            .unwrap_or_default();
    let ini = from_toml(&table);
    assert_eq!(ini.list("tox", "env_list"), ["3.12", "type"]);
    assert_eq!(ini.list("testenv", "deps"), ["pytest", "mock"]);
    assert_eq!(ini.list("testenv", "commands"), ["pytest -v", "x"]);
    let of_type = first_list(&ini, Some("type"), "deps");
    assert_eq!(of_type, ["pytest", "mock", "mypy"]);
}
