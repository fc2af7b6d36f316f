//! Requirements that cannot be resolved.

use super::super::decisive::Failure;
use super::captured;

fn is_resolution(failure: &Failure<'_>) -> bool {
    failure.error_has(&[
        "No solution found",
        "Because ",
        "No matching distribution",
        "was not found in the package registry",
    ])
}

pub(super) fn upload_dates(failure: &Failure<'_>) -> Option<String> {
    failure.output.contains("missing an upload date").then(|| {
        "the package index has no upload dates: set exclude-newer = \"never\" in [environment] of testwright.toml"
            .to_owned()
    })
}

pub(super) fn too_new(failure: &Failure<'_>) -> Option<String> {
    let is_filtered = failure.output.contains("was filtered by `exclude-newer`")
        || failure.output.contains("exclude-newer");
    (is_resolution(failure) && is_filtered).then(|| {
        "a package is newer than the date of the resolution: set exclude-newer in [environment] of testwright.toml to \
         a later date, or limit the version in the requirement"
            .to_owned()
    })
}

pub(super) fn python_version(failure: &Failure<'_>) -> Option<String> {
    if failure.error_has(&["requires a different Python", "Package requires Python"])
        && let Some(limits) = captured(r"Python[:\s]+[\d.]+ not in '([^']+)'", &failure.error)
    {
        return Some(format!(
            "use a Python that the package supports ({limits}): --python X.Y"
        ));
    }
    let limits = captured(
        r"(?:does not satisfy|depends on|requires) Python\s*([<>=!~][\d<>=!~.,* ]*\d)",
        &failure.error,
    )?;
    let limits = limits.trim().to_owned();
    is_resolution(failure).then(|| {
        format!("a requirement needs Python {limits}: choose such a version with --python X.Y, or change the requirement")
    })
}

pub(super) fn unknown_package(failure: &Failure<'_>) -> Option<String> {
    let name = captured(
        r"(?:Because )?([\w.\[\]-]+) was not found in the package registry",
        &failure.error,
    )?;
    Some(format!(
        "the package index has no package {name}: correct the requirement, or add the index that has it to the \
         settings (build.extra-index-urls)"
    ))
}

pub(super) fn withdrawn_release(failure: &Failure<'_>) -> Option<String> {
    let release = captured(
        r"there (?:is|are) no versions? of ([\w.\[\]-]+[=<>!~]=?[\w.*,<>=!~]+)",
        &failure.error,
    )?;
    Some(format!(
        "the package index has no release that fits {release}: list the requirements with another version under \
         requirements in [environment] of testwright.toml"
    ))
}

pub(super) fn conflict(failure: &Failure<'_>) -> Option<String> {
    let contradicts = failure.error_has(&[
        "we can conclude that",
        "are incompatible",
        "No matching distribution",
    ]);
    (is_resolution(failure) && contradicts).then(|| {
        "the requirements conflict with each other: set requirements, python or exclude-newer in [environment] of \
         testwright.toml so that one version fits all"
            .to_owned()
    })
}
