use super::*;
use crate::environment::smoke_test::CollectionError;
use crate::environment::steps::StepOutput;

fn asked(text: &str, named: &[(&str, &str)]) -> Vec<String> {
    let report = SmokeTestReport {
        broken: vec![CollectionError {
            file: "tests/test_a.py".to_owned(),
            text: text.to_owned(),
        }],
        ..SmokeTestReport::default()
    };
    let named = named
        .iter()
        .map(|(n, r)| ((*n).to_owned(), (*r).to_owned()));
    let missing = find(&report, &named.collect(), &|module| module == "mine");
    missing.into_iter().map(|m| m.requirement).collect()
}

#[test]
fn missing_packages_are_found_in_output() {
    let trio = [("trio", "trio>=0.20")];
    let none: [&str; 0] = [];
    assert_eq!(
        asked("E   ModuleNotFoundError: No module named 'trio'", &trio),
        ["trio>=0.20"]
    );
    assert_eq!(asked("ImportError: No module named yaml", &[]), ["pyyaml"]);
    let taggit = [("django-taggit", "django-taggit>=3.1")];
    assert_eq!(
        asked("ModuleNotFoundError: No module named 'taggit'", &taggit),
        ["django-taggit>=3.1"]
    );
    let logger = [("python-json-logger", "python-json-logger")];
    assert_eq!(
        asked("No module named 'pythonjsonlogger'", &logger),
        ["python-json-logger"]
    );
    let message = "E   x.ImproperlyConfigured: 'babel' package is required in order to use it";
    assert_eq!(asked(message, &[("babel", "babel<3")]), ["babel<3"]);
    assert_eq!(asked(message, &[]), none);
    assert_eq!(asked("E   ImportError: yaml is required", &[]), ["pyyaml"]);
    assert_eq!(asked("E   OSError: git is not installed", &[]), none);
    assert_eq!(
        asked(
            "No module named 'pkg_resources'",
            &[("setuptools", "setuptools")]
        ),
        ["setuptools<81"]
    );
    // Anyone can publish a package under the name of a private module.
    assert_eq!(
        asked(
            "E   ModuleNotFoundError: No module named 'internal_tools'",
            &[]
        ),
        none
    );
    assert_eq!(
        asked("No module named 'mine.more'", &[("mine", "mine")]),
        none
    );
    assert_eq!(
        asked(
            "RuntimeError: The testclient requires the httpx package.\nYou can install this with:\n    $ pip install httpx\n",
            &[]
        ),
        ["httpx"]
    );
    let message = "E   ImportError: 'socksio' is not installed: `pip install -U httpx[socks]`.";
    assert_eq!(asked(message, &[]), ["httpx[socks]"]);
    let message =
        "E   ImportError: Missing optional dependency 'xlrd'.  Use pip or conda to install xlrd.";
    assert_eq!(asked(message, &[]), ["xlrd"]);
    assert_eq!(asked("ImportError: pip install -r a.txt", &[]), none);
    assert_eq!(asked("Please read: `pip install` things", &[]), none);
    assert_eq!(asked("fixture 'mocker' not found", &[]), ["pytest-mock"]);
    for fixture in ["client", "ds", "n"] {
        let text = format!("fixture '{fixture}' not found");
        assert_eq!(asked(&text, &[]), none);
    }
    for options in ["--disable-socket --reuse-db", "--ds=a --disable-socket"] {
        let text = format!("error: unrecognized arguments: {options}");
        assert_eq!(asked(&text, &[]), ["pytest-django", "pytest-socket"]);
    }
    assert_eq!(
        asked("'asyncio' not found in `markers` configuration option", &[]),
        ["pytest-asyncio"]
    );
    assert_eq!(
        asked(
            "error: unrecognized arguments: --cov=x --timeout=3 tests",
            &[("pytest-cov", "pytest-cov==2")]
        ),
        ["pytest-cov==2", "pytest-timeout"]
    );
    assert_eq!(
        asked(
            "async def functions are not natively supported.\nYou need to install a suitable plugin",
            &[("pytest-twisted", "pytest-twisted")]
        ),
        ["pytest-twisted"]
    );
    assert_eq!(
        asked("async def functions are not natively supported.", &[]),
        ["pytest-asyncio"]
    );
}

#[test]
fn fixtures_in_unrun_files_count() {
    let uses = [("mocker", "a.py"), ("snapshot", "b.py"), ("fs", "c.py")];
    let report = SmokeTestReport {
        collected: [("d.py".to_owned(), 1)].into(),
        uses: uses.map(|(f, p)| (f.to_owned(), p.to_owned())).into(),
        ..SmokeTestReport::default()
    };
    let named = [("syrupy".to_owned(), "syrupy<5".to_owned())].into();
    let missing = find(&report, &named, &|_| false);
    let missing: Vec<_> = missing
        .iter()
        .map(|m| (&*m.requirement, &*m.required_by))
        .collect();
    assert_eq!(missing, [("pytest-mock", "a.py"), ("syrupy<5", "b.py")]);
}

#[test]
fn rejected_option_names_plugin() {
    let report = SmokeTestReport {
        printed: StepOutput {
            code: 4,
            text: "usage: pytest\nerror: unrecognized arguments: --benchmark".to_owned(),
        },
        ..SmokeTestReport::default()
    };
    let missing = find(&report, &BTreeMap::new(), &|_| false);
    assert_eq!(missing[0].requirement, "pytest-benchmark");
    assert_eq!(missing[0].required_by, "pytest");
}
