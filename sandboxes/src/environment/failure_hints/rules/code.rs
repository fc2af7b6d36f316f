//! Errors of the repository's own code and tests when they run.

use super::super::decisive::Failure;
use super::{captured, captured_by_any};
use crate::pattern::Pattern;

/// Modules that Python no longer has, and the last version with them.
const REMOVED: [(&str, &str); 12] = [
    ("asynchat", "3.11"),
    ("asyncore", "3.11"),
    ("cgi", "3.12"),
    ("crypt", "3.12"),
    ("distutils", "3.11"),
    ("imghdr", "3.12"),
    ("imp", "3.11"),
    ("lib2to3", "3.12"),
    ("nntplib", "3.12"),
    ("pipes", "3.12"),
    ("telnetlib", "3.12"),
    ("smtpd", "3.11"),
];

/// Signs of attributes that Python no longer has, and the last version with them.
const REMOVED_NAMES: [(&str, &str); 9] = [
    ("module 'pkgutil' has no attribute 'ImpImporter'", "3.11"),
    ("module 'inspect' has no attribute 'getargspec'", "3.10"),
    ("module 'collections' has no attribute", "3.9"),
    ("from 'collections'", "3.9"),
    ("has no attribute 'assertEquals'", "3.11"),
    (
        "module 'configparser' has no attribute 'SafeConfigParser'",
        "3.11",
    ),
    ("module 'asyncio' has no attribute 'coroutine'", "3.10"),
    ("module 'ast' has no attribute 'Str'", "3.11"),
    ("module 'unittest' has no attribute 'makeSuite'", "3.12"),
];

pub(super) fn removed_module(failure: &Failure<'_>) -> Option<String> {
    let module = captured(r"No module named '?(\w+)'?", &failure.line);
    let module = module.and_then(|module| REMOVED.iter().find(|(known, _)| *known == module));
    let name = || {
        REMOVED_NAMES
            .iter()
            .find(|(sign, _)| failure.line.contains(sign))
    };
    let (what, version) = module.or_else(name)?;
    Some(format!(
        "the code needs an older Python ({what}): use --python {version}"
    ))
}

/// Modules that only Python 2 has.
const PYTHON_2_MODULES: [&str; 12] = [
    "BaseHTTPServer",
    "ConfigParser",
    "Queue",
    "StringIO",
    "Tkinter",
    "__builtin__",
    "cPickle",
    "cStringIO",
    "cookielib",
    "httplib",
    "urllib2",
    "urlparse",
];

/// Syntax errors of code for Python 2.
const PYTHON_2_SYNTAX: [&str; 4] = [
    "Missing parentheses in call to 'print'",
    "Missing parentheses in call to 'exec'",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
];

pub(super) fn python_2(failure: &Failure<'_>) -> Option<String> {
    let module = captured(r"No module named '?(\w+)'?$", &failure.line);
    let is_module = module.is_some_and(|module| PYTHON_2_MODULES.contains(&module.as_str()));
    let is_syntax = failure.line.starts_with("SyntaxError: ") && failure.line_has(&PYTHON_2_SYNTAX);
    let is_installed = failure.output.contains("site-packages/");
    if !is_module && !is_syntax || is_installed {
        return None;
    }
    Some(
        "the code is for Python 2, which no environment has: choose a commit that runs with Python 3 (--commit)"
            .to_owned(),
    )
}

/// Errors of git and of its libraries about a repository or a commit that does not exist.
static NO_HISTORY: Pattern = Pattern::new(concat!(
    "not a git repository|InvalidGitRepositoryError|NotGitRepository|(?:unknown|bad) revision|fatal: bad object",
    "|BadObject|did not resolve to an object|Not a valid object name|No names found, cannot describe anything"
));

pub(super) fn git_history(failure: &Failure<'_>) -> Option<String> {
    let is_about_requirement = failure.output.contains("Git operation failed");
    (NO_HISTORY.is_match(&failure.error) && !is_about_requirement).then(|| {
        "the code or its tests read a git repository, and the history of the code is never copied into a sandbox: set \
         git = true in [environment] of testwright.toml for a repository with one commit, or choose tests that need no \
         older commits"
            .to_owned()
    })
}

pub(super) fn django_settings(failure: &Failure<'_>) -> Option<String> {
    failure
        .error_has(&["settings are not configured", "DJANGO_SETTINGS_MODULE", "Apps aren't loaded yet"])
        .then(|| {
            "Django does not know its settings: pass --env DJANGO_SETTINGS_MODULE=MODULE, and --requirement \
             pytest-django if its tests use a database"
                .to_owned()
        })
}

/// A field that pydantic misses, with its name on the line before.
static UNSET_FIELD: Pattern = Pattern::new(r"(?m)^(?:E\s+)?([A-Za-z]\w+)\nE?\s*[Ff]ield required");

/// Returns the variables of the fields that pydantic's settings miss. Their names are those of the fields in capitals.
fn unset_fields(report: &str) -> Vec<String> {
    let is_of_settings = report.contains("Settings") || report.contains("pydantic_settings");
    let fields = UNSET_FIELD.captures_iter(report);
    let fields = fields.filter(|_| is_of_settings);
    fields.map(|field| field[1].to_uppercase()).collect()
}

/// Returns the environment variables that a report says are missing: all fields of settings, otherwise the variable in the
/// last line about one. Fields can have a prefix, which the report does not tell.
pub(in crate::environment) fn missing_variables(report: &str) -> MissingVariables {
    let fields = unset_fields(report);
    let is_prefixed = !fields.is_empty();
    let by_line = || {
        report
            .lines()
            .rev()
            .find_map(|line| variable_in(line, report))
    };
    MissingVariables {
        names: match is_prefixed {
            true => fields,
            false => by_line().into_iter().collect(),
        },
        is_prefixed,
    }
}

/// The environment variables that a report says are missing.
pub(in crate::environment) struct MissingVariables {
    pub names: Vec<String>,
    /// Whether the names can lack the prefix that the settings add to their fields.
    pub is_prefixed: bool,
}

/// Words about a variable that is missing.
static SAYS_MISSING: Pattern =
    Pattern::new("(?i)set|missing|require|not found|define|need|provide|empty|absent|specif");

/// Returns the environment variable that a line of the report says is missing.
fn variable_in(line: &str, report: &str) -> Option<String> {
    // Other dictionaries have such keys too.
    let lookups = ["environ", "frozen os>", "os.py"];
    if line.contains("KeyError") && !lookups.iter().any(|sign| report.contains(sign)) {
        return None;
    }
    let by_lookup = [
        r"KeyError: '([A-Z][A-Z0-9_]+)'",
        r"([A-Z][A-Z0-9_]+) not found\. Declare it as envvar",
    ];
    let beside_words = [
        r"(?:[Ee]nvironment|[Ee]nv) ?[Vv]ar(?:iable)?s?:? [\x22'`]?([A-Z][A-Z0-9_]{2,})",
        r"\b([A-Z][A-Z0-9_]{2,})[\x22'`]? (?:as an |in the |to the )?(?:[Ee]nvironment|[Ee]nv) ?[Vv]ar",
    ];
    let says_missing = SAYS_MISSING.is_match(line);
    let beside_words = beside_words.iter().filter(|_| says_missing);
    by_lookup
        .iter()
        .chain(beside_words)
        .find_map(|pattern| captured(pattern, line))
}

pub(super) fn variable(failure: &Failure<'_>) -> Option<String> {
    let by_line = variable_in(&failure.line, failure.output);
    let Some(name) = by_line else {
        return unset_settings(failure, None);
    };
    Some(format!(
        "the code reads the environment variable {name}: pass --env {name}=VALUE, or set it under \
         [environment.env] of testwright.toml"
    ))
}

/// Advises to set the variables of the fields that pydantic's settings miss. `prefix` precedes the fields in the names of
/// the variables; it is `None` if it is unknown.
pub(in crate::environment::failure_hints) fn unset_settings(
    failure: &Failure<'_>,
    prefix: Option<&str>,
) -> Option<String> {
    if !failure.line_has(&["ValidationError"]) {
        return None;
    }
    let mut names = Vec::new();
    for field in unset_fields(failure.output) {
        let name = format!("{}{field}", prefix.unwrap_or_default());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let first = names.first()?.clone();
    let (variables, others) = match names.len() {
        1 => ("variable", ""),
        _ => ("variables", " and so on"),
    };
    let before = match prefix {
        Some(_) => "",
        None => " (after the prefix, if the class sets env_prefix)",
    };
    let names = names.join(", ");
    Some(format!(
        "the settings read the environment {variables} {names}{before}: pass --env {first}=VALUE{others}, or use \
         [environment.env] of testwright.toml"
    ))
}

pub(super) fn missing_table(failure: &Failure<'_>) -> Option<String> {
    let patterns = [
        r"relation \x22([^\x22]+)\x22 does not exist",
        r"no such table: ([\w.]+)",
        r"Table '([^']+)' doesn't exist",
    ];
    let table = captured_by_any(&patterns, &failure.error)?;
    if failure.line.starts_with("django.") {
        return Some(format!(
            "the database has no table {table}: if no migration creates it, add `python manage.py makemigrations` to \
             before-tests under [environment] of testwright.toml"
        ));
    }
    Some(format!(
        "the database has no table {table}: add the command that creates its tables, such as `alembic upgrade head`, \
         to before-tests under [environment] of testwright.toml"
    ))
}

pub(super) fn plugin_option(failure: &Failure<'_>) -> Option<String> {
    let options = captured(r"unrecognized arguments: (\S+)", &failure.error)?;
    Some(format!(
        "pytest does not know {options}, which the repository's configuration sets: add the plugin that has it \
         (--requirement PLUGIN), or set options = [\"-o\", \"addopts=\"] in [environment.runner] of testwright.toml"
    ))
}

/// Recognizes plugins and versions of pytest that the tests need.
pub(super) fn pytest_setup(failure: &Failure<'_>) -> Option<String> {
    let line = &failure.line;
    if let Some(plugins) = captured(r"Missing required plugins: (.+)", line) {
        return Some(format!(
            "pytest's configuration requires plugins that are not installed: pass --requirement for each of {plugins}"
        ));
    }
    if let Some(version) = captured(r"'minversion' requires pytest-(\d[\w.]*)", line) {
        return Some(format!(
            "the tests need a newer pytest: pass --requirement 'pytest>={version}', with a Python that it supports \
             (--python X.Y)"
        ));
    }
    if let Some(hook) = captured(r"unknown hook '(\w+)'", line) {
        return Some(format!(
            "{hook} is a hook of a plugin that is not installed, or of another version of pytest: add the plugin or that \
             version (--requirement)"
        ));
    }
    if let Some(fixture) = captured(r"^fixture '(\w+)' not found", line) {
        return Some(format!(
            "no installed plugin has the fixture {fixture}: add the plugin that defines it (--requirement PLUGIN)"
        ));
    }
    let mark = captured(r"'(\w+)' not found in `markers`", line)?;
    Some(format!(
        "pytest does not know the mark {mark}: add the plugin that defines it (--requirement PLUGIN), or set options = \
         [\"-o\", \"addopts=\"] in [environment.runner] of testwright.toml"
    ))
}

pub(super) fn uninstalled(failure: &Failure<'_>) -> Option<String> {
    // Python takes a folder without code for a namespace package.
    let module = captured(
        r"cannot import name '\w+' from '([A-Za-z_]\w*)[\w.]*' \(unknown location\)",
        &failure.line,
    )?;
    Some(format!(
        "{module} is not installed, only a folder has its name: add the folder of the project to install under \
         [environment] of testwright.toml, or pass it with --project"
    ))
}

/// Returns how to create a module that the repository does not contain.
fn generated(module: &str) -> String {
    let command = match module.ends_with("_pb2") || module.ends_with("_pb2_grpc") {
        true => {
            "`python -m grpc_tools.protoc …` (with --requirement grpcio-tools) to before-install"
        }
        false => "the command that generates it, such as a target of `make`, to before-install",
    };
    format!(
        "the repository does not contain {module}, which a build step may generate: add {command} under [environment] of \
         testwright.toml"
    )
}

pub(super) fn missing_name(failure: &Failure<'_>) -> Option<String> {
    if failure.error_has(&["circular import"]) {
        return None;
    }
    let pattern = r"cannot import name '(\w+)' from '([A-Za-z_]\w*)([\w.]*)'(?: \((/[^)]*)\))?";
    let names = regex::Regex::new(pattern).ok()?;
    let names = names.captures(&failure.line)?;
    let path = names.get(4).map_or("", |path| path.as_str());
    let is_own = path.starts_with("/testbed/");
    if is_own {
        let is_module = names[1].ends_with("_pb2") || names[1].ends_with("version");
        return is_module.then(|| generated(&format!("{}{}.{}", &names[2], &names[3], &names[1])));
    }
    let module = &names[2];
    Some(format!(
        "the installed version of {module} does not fit the code: require the version that it was written for \
         (--requirement), or set exclude-newer in [environment] of testwright.toml to an earlier date"
    ))
}

/// Returns whether the traceback goes through a package of the repository with this name. pytest shows such paths relative
/// to the root.
fn is_in_repository(package: &str, output: &str) -> bool {
    let package = regex::escape(package);
    let pattern = format!(r"(?m)^\s*(?:/testbed/)?(?:src/|lib/)?{package}/[\w./]+\.py:\d+: ");
    captured(&format!("({pattern})"), output).is_some()
}

pub(super) fn missing_module(failure: &Failure<'_>) -> Option<String> {
    let module = captured(r"No module named '?([\w.]+)'?", &failure.line)?;
    // Installed packages can hide a repository's folder of tests.
    let package = module.split_once('.').map(|(first, _)| first);
    let Some(first) = package.filter(|first| !["test", "tests"].contains(first)) else {
        return Some(format!(
            "the module {module} is missing: if a package provides it, add it with --requirement; if the repository \
             does, add its folder to PYTHONPATH with --env"
        ));
    };
    // Python names the whole path only if it has found the first package.
    match is_in_repository(first, failure.output) {
        true => Some(generated(&module)),
        false => Some(format!(
            "the package {first} is there, but without {module}: require the version or the package that has it \
             (--requirement)"
        )),
    }
}

/// A command that a message asks to run, in quotes or as the path of a script.
static ASKED_COMMAND: Pattern = Pattern::new(concat!(
    r"\b[Rr]un(?:ning)? (?:`([^`\n]{4,60})`|'([^'\n]{4,60})'|\x22([^\x22\n]{4,60})\x22",
    r"|((?:\./)?[\w.-]+/[\w./-]+\.(?:sh|py)|make [a-z][\w-]*)\b)",
));

/// Recognizes messages of tests that ask for a step of preparation.
pub(super) fn asked_command(failure: &Failure<'_>) -> Option<String> {
    let command = ASKED_COMMAND.captures(&failure.line)?;
    let command = (1..=4).find_map(|group| command.get(group))?.as_str();
    // Tools that install packages or run the tests do not prepare them.
    let tools = [
        "conda", "install", "nox", "pip", "poetry", "pytest", "tox", "uv ",
    ];
    let is_other = tools.iter().any(|tool| command.contains(tool));
    let is_command = command.contains(' ') || command.contains('/');
    (is_command && !is_other).then(|| {
        format!(
            "the tests ask for `{command}`: add it to before-install under [environment] of testwright.toml, and hosts that \
             it needs to build.allowed-hosts in your settings"
        )
    })
}

/// Parts of the paths of files that a build of a frontend creates.
const FRONTEND: [&str; 7] = [
    "/.vite/",
    "/dist/",
    "/node_modules/",
    "asset-manifest.json",
    "assets.json",
    "static/manifest.json",
    "webpack-stats.json",
];

/// Returns whether a file is one that a build of a frontend creates.
fn is_of_frontend(path: &str) -> bool {
    let ends = [".css", ".html", ".js", ".json", ".map"];
    ends.iter().any(|end| path.ends_with(end)) && FRONTEND.iter().any(|part| path.contains(part))
}

pub(super) fn missing_file(failure: &Failure<'_>) -> Option<String> {
    let path = captured(
        r"FileNotFoundError: .*No such file or directory: '([^']*/[^']+)'",
        &failure.line,
    );
    let what = match path {
        Some(path) if is_of_frontend(&path) => {
            return Some(format!(
                "the code opens {path}, which a build of its frontend creates: write a stub of that file with \
                 before-install under [environment] of testwright.toml, such as `mkdir -p FOLDER && echo '{{}}' > FILE`"
            ));
        }
        Some(path) => path,
        None if failure.line_has(&["unable to open database file"]) => "a database".to_owned(),
        None => return None,
    };
    Some(format!(
        "the code opens {what}, which does not exist here: create its folder, or copy or generate the file, with \
         before-install under [environment] of testwright.toml"
    ))
}
