//! Errors of the repository's own code and tests when they run.

use super::super::decisive::Failure;
use super::captured;
use crate::environment::removed_features::removed_by;
use crate::pattern::Pattern;

pub(super) fn removed_feature(failure: &Failure<'_>) -> Option<String> {
    let (sign, version) = removed_by(&failure.line).next()?;
    let module = sign.strip_prefix("No module named '");
    let what = module.map_or(sign, |module| module.trim_end_matches('\''));
    Some(format!(
        "the code needs an older Python ({what}): use --python {version}"
    ))
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
    if !failure.line.contains("ValidationError") {
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
    if failure.error.contains("circular import") {
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
