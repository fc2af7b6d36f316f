//! Failures of the package's own build: its version, layout, build requirements.

use super::super::decisive::Failure;
use super::captured;
use crate::pattern::Pattern;

pub(super) fn disk(failure: &Failure<'_>) -> Option<String> {
    failure
        .error_has(&["No space left on device", "Disk quota exceeded"])
        .then(|| "free disk space, or set another cache folder".to_owned())
}

pub(super) fn git_program(failure: &Failure<'_>) -> Option<String> {
    failure
        .error_has(&[
            "git: not found",
            "git: command not found",
            "unable to find git",
            "No such file or directory: 'git'",
            "Git executable not found",
        ])
        .then(|| {
            "git is missing in the sandbox: add \"git\" to system-packages in [environment] of testwright.toml"
                .to_owned()
        })
}

pub(super) fn frontend(failure: &Failure<'_>) -> Option<String> {
    let program = captured(
        r"(?:No such file or directory: '|(?:^|: ))(npm|npx|yarn|pnpm|node)(?:'|: (?:command )?not found)",
        &failure.line,
    )?;
    Some(format!(
        "the build runs {program} for its frontend, but a build can reach only the package index of Python: set install = \
         [] in [environment] of testwright.toml, and list the dependencies under requirements"
    ))
}

/// Words about versions that come from git.
static GIT: Pattern = Pattern::new("scm|vcs|git|pbr|versioneer|dunamai|tag");

/// Signs that git knows no version.
static UNKNOWN_VERSION: Pattern = Pattern::new(concat!(
    "(?:unable to|could not|cannot|can't|failed to) (?:detect version|determine)|getting the version from|cannot find",
    "|cannot parse|not a git repository|versioning for this project requires|no tag|did not match",
));

pub(super) fn scm_version(failure: &Failure<'_>) -> Option<String> {
    let error = failure.error.to_lowercase();
    let names_version = error.contains("version");
    let is_unknown = GIT.is_match(&error) && UNKNOWN_VERSION.is_match(&error);
    (names_version && is_unknown).then(|| {
        "the package takes its version from git, which has none here: set git = true in [environment] of \
         testwright.toml, and fetch the tags of the clone (`git fetch --tags --unshallow`)"
            .to_owned()
    })
}

/// Modules that old builds import without declaring them.
const BUILD_MODULES: [(&str, &str); 12] = [
    ("Cython", "cython"),
    ("cffi", "cffi"),
    ("extension_helpers", "extension-helpers"),
    ("mesonpy", "meson-python"),
    ("numpy", "numpy"),
    ("pbr", "pbr"),
    ("pkgconfig", "pkgconfig"),
    ("pybind11", "pybind11"),
    ("setuptools_rust", "setuptools-rust"),
    ("setuptools_scm", "setuptools-scm"),
    ("torch", "torch"),
    ("wheel", "wheel"),
];

pub(super) fn build_requirement(failure: &Failure<'_>) -> Option<String> {
    let is_build = [
        "build_wheel",
        "build_editable",
        "get_requires_for_build",
        "prepare_metadata",
        "run_setup",
        "setup.py",
    ]
    .iter()
    .any(|sign| failure.output.contains(sign));
    let module = captured(r"No module named '?(\w+)", &failure.line).filter(|_| is_build)?;
    let (_, package) = BUILD_MODULES.iter().find(|(known, _)| *known == module)?;
    Some(format!(
        "the build needs {package} without declaring it: add \"{package}\" to requirements and set install = \
         [\"--no-build-isolation\", \"-e\", \".\"] in [environment] of testwright.toml"
    ))
}

pub(super) fn editable_loader(failure: &Failure<'_>) -> Option<String> {
    let is_loader =
        failure.output.contains("_editable_loader.py") || failure.output.contains("_editable_skbc");
    (is_loader && failure.error_has(&["ninja", "meson", "cmake", "No such file"])).then(|| {
        "the editable install rebuilds the package at import, but its build tools are gone: set install = [\".\"] in \
         [environment] of testwright.toml, or add the build tools to requirements and use --no-build-isolation"
            .to_owned()
    })
}

pub(super) fn old_setuptools(failure: &Failure<'_>) -> Option<String> {
    let limit = if failure.error_has(&[
        "use_2to3 is invalid",
        "invalid command 'develop'",
        "cannot import name 'Feature' from 'setuptools'",
    ]) {
        "setuptools<58"
    } else if failure.line_has(&[
        "No module named 'pkg_resources'",
        "cannot import name 'pkg_resources'",
    ]) {
        "setuptools<81"
    } else if failure.line_has(&[
        "No module named 'setuptools._distutils",
        "has no attribute 'test'",
        "No module named 'setuptools.command.test'",
    ]) {
        "setuptools<72"
    } else {
        return None;
    };
    Some(format!(
        "the code is too old for this setuptools: set build-constraints = [\"{limit}\"] in [environment] of \
         testwright.toml"
    ))
}

pub(super) fn layout(failure: &Failure<'_>) -> Option<String> {
    if failure.error_has(&[
        "Multiple top-level packages discovered",
        "Multiple top-level modules discovered",
        "Unable to determine which files to ship",
        "No file/folder found for package",
    ]) {
        return Some(
            "the code is not a package that can be built: set install = [] in [environment] of testwright.toml, and \
             list its dependencies under requirements"
                .to_owned(),
        );
    }
    failure
        .error_has(&["does not appear to be a Python project", "neither `setup.py` nor `pyproject.toml` found"])
        .then(|| {
            "the root folder is not a package: set install = [\"-e\", \"FOLDER\"] with the folder that has \
             pyproject.toml or setup.py in [environment] of testwright.toml"
                .to_owned()
        })
}

pub(super) fn invalid_pyproject(failure: &Failure<'_>) -> Option<String> {
    failure
        .error_has(&["TOML parse error", "invalid pyproject.toml config", "Failed to parse: pyproject.toml", "pyproject.toml: "])
        .then(|| {
            "the repository's pyproject.toml is invalid at the reported position: fix it, or choose another commit \
             with --commit"
                .to_owned()
        })
}
