//! Packages that are missing according to the tests' output.
//!
//! A package is installed because of such output only if its name is beyond doubt:
//!
//! - The repository's own files name it (then with their version limits).
//! - It is a well-known plugin of pytest.
//! - It is a well-known package whose module has another name.

mod messages;

use std::collections::{BTreeMap, BTreeSet};

use messages::{RequestedName, requested_names};

use super::module_packages::package_of;
use super::smoke_test::{NO_ASYNC_PLUGIN, SmokeTestReport};
use crate::pattern::Pattern;
use crate::recipe::normalized_name;

/// Plugins, and the fixtures, marks, options and settings of pytest that they provide. A word that starts with dashes is
/// only an option, because fixtures with the same name can come from elsewhere.
const PLUGINS: [(&str, &str); 53] = [
    ("anyio", "anyio"),
    ("faker", "faker"),
    ("nbval", "--nbval nbval-lax"),
    ("pyfakefs", "fs"),
    ("pytest", "strict-markers"),
    (
        "pytest-aiohttp",
        "aiohttp_client aiohttp_raw_server aiohttp_server loop",
    ),
    (
        "pytest-asyncio",
        "asyncio asyncio-mode asyncio_default_fixture_loop_scope asyncio_mode event_loop unused_tcp_port",
    ),
    ("pytest-benchmark", "benchmark"),
    ("pytest-black", "--black"),
    ("pytest-catchlog", "caplog_at_level"),
    ("pytest-check", "check"),
    ("pytest-console-scripts", "script_runner"),
    ("pytest-cov", "cov cov-report"),
    (
        "pytest-datadir",
        "datadir lazy_datadir original_datadir shared_datadir",
    ),
    ("pytest-dependency", "dependency"),
    (
        "pytest-django",
        "--ds admin_client create-db django_assert_num_queries django_db DJANGO_SETTINGS_MODULE no-migrations nomigrations reuse-db",
    ),
    ("pytest-doctestplus", "doctest-plus"),
    ("pytest-flake8", "--flake8"),
    ("pytest-forked", "forked"),
    ("pytest-freezer", "freeze_time freezer"),
    ("pytest-html", "--html self-contained-html"),
    ("pytest-httpbin", "httpbin"),
    ("pytest-httpserver", "httpserver"),
    ("pytest-httpx", "httpx_mock"),
    ("pytest-instafail", "instafail"),
    ("pytest-isort", "--isort"),
    ("pytest-jupyter", "jp_fetch jp_serverapp"),
    ("pytest-lazy-fixture", "lazy_fixture"),
    ("pytest-mock", "mocker session_mocker"),
    ("pytest-mpl", "mpl"),
    ("pytest-mypy", "--mypy"),
    ("pytest-order", "order"),
    ("pytest-postgresql", "postgresql"),
    ("pytest-pylint", "--pylint"),
    ("pytest-qt", "qtbot"),
    ("pytest-random-order", "random-order"),
    ("pytest-randomly", "randomly-seed"),
    (
        "pytest-recording",
        "block-network record-mode recording vcr",
    ),
    (
        "pytest-regressions",
        "data_regression file_regression num_regression",
    ),
    ("pytest-rerunfailures", "flaky reruns"),
    ("pytest-ruff", "--ruff"),
    (
        "pytest-socket",
        "allow-hosts disable-socket disable_socket enable_socket socket_enabled",
    ),
    ("pytest-subprocess", "fake_process subprocess"),
    ("pytest-subtests", "subtests"),
    ("pytest-timeout", "timeout"),
    ("pytest-trio", "trio"),
    ("pytest-twisted", "twisted"),
    (
        "pytest-xdist",
        "--dist -n maxprocesses numprocesses xdist_group",
    ),
    ("requests-mock", "requests_mock"),
    ("respx", "respx_mock"),
    ("sphinx", "sphinx"),
    ("syrupy", "snapshot"),
    ("time-machine", "time_machine"),
];

/// Packages that run async tests, the most common last.
const ASYNC: &str = "pytest-trio pytest-twisted pytest-tornasync pytest-aiohttp pytest-asyncio";

/// A package that tests need.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Missing {
    /// Normalized name, without extras.
    pub package: String,
    /// Requirement line, as pip accepts it.
    pub requirement: String,
    /// The first file or test that needs the package.
    pub required_by: String,
    /// Whether to install it although the package is installed: in another version, or without an extra.
    pub replaces_installed: bool,
}

/// Limit for setuptools, as its own warning about `pkg_resources` states it.
pub(super) const WITH_PKG_RESOURCES: &str = "setuptools<81";

/// Returns the packages that the failures in a report ask for, without duplicates.
///
/// `named` holds the requirements in the repository's files, by normalized name. `own` tells whether a module belongs
/// to the repository.
pub(super) fn find(
    report: &SmokeTestReport,
    named: &BTreeMap<String, String>,
    own: &dyn Fn(&str) -> bool,
) -> Vec<Missing> {
    let mut all: BTreeMap<String, Missing> = BTreeMap::new();
    for (fixture, file) in &report.uses {
        let Some(package) = plugin(fixture) else {
            continue;
        };
        // Fixtures with other names may be defined by the repository itself.
        if fixture == "mocker" || named.contains_key(&package) {
            let requirement = named.get(&package).cloned();
            all.insert(
                package.clone(),
                Missing {
                    requirement: requirement.unwrap_or_else(|| package.clone()),
                    package,
                    required_by: file.clone(),
                    replaces_installed: false,
                },
            );
        }
    }
    let printed = report.printed_lines();
    // If no file was collected, only pytest's own output helps: a rejected option, a broken conftest.
    let whole = report
        .collected
        .is_empty()
        .then_some(("pytest", printed.text.as_str()));
    for (asked_by, text) in report.complaints().chain(whole) {
        for package in packages(text, named, own) {
            let is_limited = package == "setuptools" && lacks_pkg_resources(text);
            let requirement = match is_limited {
                true => Some(WITH_PKG_RESOURCES.to_owned()),
                false => named.get(&package).cloned(),
            };
            all.entry(package.clone()).or_insert(Missing {
                package: normalized_name(&package),
                // The package of an extra is usually installed without it.
                replaces_installed: is_limited || package.contains('['),
                requirement: requirement.unwrap_or(package),
                required_by: asked_by.to_owned(),
            });
        }
    }
    all.into_values().collect()
}

/// Returns the modules that a text says are missing, without submodules.
pub(super) fn missing_modules(text: &str) -> Vec<&str> {
    captured(&MODULE, text)
}

/// Returns whether an error says that `pkg_resources` is missing, which newer versions of setuptools lack.
pub(super) fn lacks_pkg_resources(text: &str) -> bool {
    text.contains("No module named 'pkg_resources'")
}

/// Returns the fixture names to search for among the arguments of tests.
pub(super) fn fixtures() -> Vec<&'static str> {
    PLUGINS
        .iter()
        .flat_map(|(_, signs)| signs.split(' '))
        .collect()
}

fn plugin(sign: &str) -> Option<String> {
    let provides = |signs: &str| signs.split(' ').any(|known| known == sign);
    let known = PLUGINS.iter().find(|(_, signs)| provides(signs));
    known.map(|(plugin, _)| (*plugin).to_owned())
}

static MODULE: Pattern = Pattern::new(r"No module named '?([A-Za-z_]\w*)((?:\.\w+)*)'?");
static ADVICE: Pattern = Pattern::new(
    r#"(?:pip3? install(?: -U| --upgrade| --user)*|pip or conda to install(?: the)?) [`'"]?([A-Za-z](?:[\w.-]*\w)?)(\[[\w,.-]+\])?"#,
);
/// Parts of the names of exceptions that libraries raise if a package is missing.
static ERRORS: Pattern =
    Pattern::new("ModuleNotFoundError|ImportError|RuntimeError|Dependenc|ImproperlyConfigured");
static FIXTURE: Pattern = Pattern::new(r"fixture '(\w+)' not found");
static MARK: Pattern = Pattern::new(r"'(\w+)' not found in `markers`");
static OPTIONS: Pattern = Pattern::new(r"unrecognized arguments: (.+)");
static SETTING: Pattern = Pattern::new(r"Unknown config (?:ini key|option): (\w+)");
static REQUIRED: Pattern = Pattern::new(r"Missing required plugins: (.+)");

fn captured<'t>(pattern: &Pattern, text: &'t str) -> Vec<&'t str> {
    let captures = pattern.captures_iter(text);
    captures.filter_map(|c| Some(c.get(1)?.as_str())).collect()
}

/// Returns the normalized names of the packages that a text asks for.
fn packages(
    text: &str,
    named: &BTreeMap<String, String>,
    own: &dyn Fn(&str) -> bool,
) -> BTreeSet<String> {
    let mut packages = BTreeSet::new();
    for module in captured(&MODULE, text) {
        let listed = package_of(module);
        let package = listed.map_or_else(|| normalized_name(module), str::to_owned);
        let plugin = module.starts_with("pytest_");
        if !own(module) && (listed.is_some() || plugin || named.contains_key(&package)) {
            packages.insert(package);
        } else if let Some(package) = alternative(module, named).filter(|_| !own(module)) {
            packages.insert(package);
        }
    }
    for RequestedName { name, is_package } in requested_names(text) {
        let listed = package_of(&name).filter(|package| is_package || named.contains_key(*package));
        let package = listed.map_or_else(|| normalized_name(&name), str::to_owned);
        let is_plugin = PLUGINS.iter().any(|(plugin, _)| *plugin == package);
        if own(&name) {
            continue;
        }
        if listed.is_some() || is_plugin || named.contains_key(&package) {
            packages.insert(package);
        } else {
            packages.extend(alternative(&name, named));
        }
    }
    // The error of a library names a real package, but `pip install` in prose may not.
    let is_error = ERRORS.is_match(text);
    for advice in ADVICE.captures_iter(text) {
        let package = normalized_name(&advice[1]);
        if named.contains_key(&package) || is_error {
            let extras = advice.get(2).map_or("", |extras| extras.as_str());
            packages.insert(format!("{package}{extras}"));
        }
    }
    let words = captured(&FIXTURE, text)
        .into_iter()
        .chain(captured(&MARK, text));
    packages.extend(words.chain(captured(&SETTING, text)).filter_map(plugin));
    for options in captured(&OPTIONS, text) {
        let options = options.split_whitespace().filter(|o| o.starts_with('-'));
        let names = options.filter_map(|option| option.split('=').next());
        let by_option = |name: &str| plugin(name).or_else(|| plugin(name.trim_start_matches('-')));
        packages.extend(names.filter_map(by_option));
    }
    for required in captured(&REQUIRED, text) {
        packages.extend(required.split(',').map(|r| normalized_name(r.trim())));
    }
    let unsupported =
        text.contains("async def function") && text.contains("not natively supported");
    if unsupported || text.contains(NO_ASYNC_PLUGIN) {
        let chosen = ASYNC.split(' ').find(|plugin| named.contains_key(*plugin));
        packages.insert(chosen.unwrap_or("pytest-asyncio").to_owned());
    }
    packages
}

/// Finds a package in the repository's requirements that is called like the module with a common prefix or suffix, or
/// with other separators.
fn alternative(module: &str, named: &BTreeMap<String, String>) -> Option<String> {
    let plain = |name: &str| name.replace(['-', '_', '.'], "").to_lowercase();
    let module = plain(module);
    let spellings = [
        format!("python{module}"),
        format!("py{module}"),
        format!("{module}python"),
        format!("pytest{module}"),
        format!("django{module}"),
    ];
    let spellings = [&module].into_iter().chain(&spellings);
    let mut packages = spellings.filter_map(|spelling| {
        let mut packages = named.keys();
        packages
            .find(|package| plain(package) == *spelling)
            .cloned()
    });
    packages.next()
}

#[cfg(test)]
mod tests;
