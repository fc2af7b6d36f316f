//! The list of rules, the most specific first. Each is in the file of its subject.

mod build;
pub(in crate::environment) mod code;
mod compiler;
mod debian;
mod network;
pub(super) mod omissions;
mod packages;
mod services;

use super::decisive::Failure;

/// A rule returns advice if it recognizes the error.
pub(super) type Rule = fn(&Failure<'_>) -> Option<String>;

pub(super) const ALL: &[Rule] = &[
    network::offline,
    network::rust_toolchain,
    network::refused_host,
    network::certificate,
    network::unreachable_index,
    services::service,
    network::own_download,
    compiler::python_headers,
    compiler::header,
    compiler::program,
    compiler::library,
    compiler::rust_version,
    build::disk,
    build::frontend,
    build::git_program,
    build::scm_version,
    code::git_history,
    build::build_requirement,
    build::editable_loader,
    build::old_setuptools,
    build::layout,
    code::pytest_setup,
    build::invalid_pyproject,
    packages::upload_dates,
    packages::too_new,
    packages::python_version,
    packages::unknown_package,
    packages::withdrawn_release,
    packages::conflict,
    code::removed_module,
    code::python_2,
    code::django_settings,
    code::variable,
    code::missing_table,
    code::plugin_option,
    code::uninstalled,
    code::missing_name,
    code::missing_module,
    code::missing_file,
    code::asked_command,
];

/// Rules for errors whose cause is outside of the code.
pub(super) const EXTERNAL: &[Rule] = &[
    network::offline,
    network::rust_toolchain,
    network::refused_host,
    network::certificate,
    network::unreachable_index,
    build::disk,
];

/// Returns the first group of a pattern in the text.
fn captured(pattern: &str, text: &str) -> Option<String> {
    let pattern = regex::Regex::new(pattern).ok()?;
    Some(pattern.captures(text)?.get(1)?.as_str().to_owned())
}

/// Returns the first group of the first pattern that is in the text.
fn captured_by_any(patterns: &[&str], text: &str) -> Option<String> {
    patterns.iter().find_map(|pattern| captured(pattern, text))
}
