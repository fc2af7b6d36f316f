//! Missing compilers, headers and libraries.

use super::super::decisive::Failure;
use super::{captured, captured_by_any, debian};

pub(super) fn system_package(what: &str, package: Option<&str>) -> String {
    match package {
        Some(package) => format!(
            "{what}: set system-packages = [\"{package}\"] in [environment] of testwright.toml (with --sandbox local, \
             install it on this machine)"
        ),
        None => format!(
            "{what}: add the Debian package that contains it (`apt-file search` finds it) to system-packages in \
             [environment] of testwright.toml (with --sandbox local, install it on this machine)"
        ),
    }
}

pub(super) fn python_headers(failure: &Failure<'_>) -> Option<String> {
    failure.line_has(&["fatal error: Python.h"]).then(|| {
        "the headers of this Python are missing: choose a Python that has them (--python X.Y), or add python3-dev to \
         system-packages in [environment] of testwright.toml"
            .to_owned()
    })
}

pub(super) fn header(failure: &Failure<'_>) -> Option<String> {
    let header =
        captured(r"fatal error: ([^\s:]+\.h\w*): No such file", &failure.line).or_else(|| {
            captured(
                r"fatal error: '([^']+\.h\w*)' file not found",
                &failure.line,
            )
        })?;
    Some(system_package(
        &format!("the C header {header} is missing"),
        debian::of_header(&header),
    ))
}

pub(super) fn program(failure: &Failure<'_>) -> Option<String> {
    let patterns = [
        r"(?:command|unable to execute) '([\w./+-]+)'?(?: failed)?: No such file",
        r"No such file or directory: b?'([\w./+-]+)'",
        r"(?:^|: )([\w+-]+): (?:command )?not found",
        r"Unknown compiler\(s\): \[\['([\w+-]+)'",
        r"([\w-]+_config|[\w-]+-config) (?:executable )?(?:is )?not found",
        r"(?:Could not|could not|Cannot|cannot) find (?:the )?`?([\w+-]+)`?(?: program| executable)",
    ];
    let program = captured_by_any(&patterns, &failure.error)?;
    let package = debian::of_program(&program)?;
    Some(system_package(
        &format!("the program {program} is missing"),
        Some(package),
    ))
}

pub(super) fn library(failure: &Failure<'_>) -> Option<String> {
    let patterns = [
        r"(?m)cannot find -l(?:ib)?([\w.+-]+?):?(?: No such file.*)?$",
        r#"Dependency "([\w.+-]+)" not found"#,
        r"(?:No package|Package) '?([\w.+-]+)'?,?(?: required by .*)? (?:was not )?found",
        r"Could NOT find (\w+)",
        r"the (\w+) and \w+ development packages",
        r"Specify (\w+)_CFLAGS",
        r"lib([\w-]+)\.so[\w.]*: cannot open shared object file",
    ];
    let library = captured_by_any(&patterns, &failure.error)?;
    if library.starts_with("Python") {
        return None;
    }
    Some(system_package(
        &format!("the library {library} is missing"),
        debian::of_library(&library),
    ))
}

pub(super) fn rust_version(failure: &Failure<'_>) -> Option<String> {
    let is_old = failure.error_has(&[
        "is not supported by the following",
        "requires rustc",
        "requires Rust",
    ]);
    is_old.then(|| {
        "the Rust toolchain is too old for this code: update it with `rustup update`".to_owned()
    })
}
