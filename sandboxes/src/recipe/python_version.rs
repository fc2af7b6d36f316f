//! Selection of a Python version for code, and of the date as of which packages are resolved.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{PreferredPython, Recipe};
use crate::error::SandboxError;
use crate::repository::Source;
use crate::sandbox::{Backend, Result};

/// The Python versions that environments can have, oldest first.
pub const SUPPORTED_VERSIONS: [&str; 10] = [
    "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15",
];

/// Minor version that no Python will have for years. Specifiers that allow none below it are no lower limits.
const MAX_MINOR: u32 = 30;

/// Dates since when most packages have had wheels for a version, some months after its release.
///
/// Code older than 3.6, the oldest supported version, gets the packages of that version's date.
const WHEELS_AVAILABLE_SINCE: [(&str, &str); 10] = [
    ("3.6", "2017-09-01"),
    ("3.7", "2019-01-01"),
    ("3.8", "2020-04-01"),
    ("3.9", "2021-04-01"),
    ("3.10", "2022-04-01"),
    ("3.11", "2023-04-01"),
    ("3.12", "2024-04-01"),
    ("3.13", "2025-04-01"),
    ("3.14", "2026-04-01"),
    ("3.15", "2027-04-01"),
];

/// Returns the minor version of a Python 3 version `X.Y`.
pub(crate) fn parse(version: &str) -> Option<u32> {
    let minor = version.strip_prefix("3.")?;
    if minor.is_empty() || minor.len() > 2 || !minor.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    minor.parse().ok()
}

/// Returns the versions of [`SUPPORTED_VERSIONS`] that a backend has.
///
/// # Errors
///
/// Fails if the machine lacks a resource, because then a version that cannot be checked may be there.
pub async fn available(backend: &dyn Backend) -> Result<Vec<String>> {
    let checks = SUPPORTED_VERSIONS.map(|version| async move {
        match backend.check_python(version).await {
            Ok(()) => Ok(Some(version.to_owned())),
            Err(error) if error.shortage().is_some() => Err(error),
            Err(_) => Ok(None),
        }
    });
    let versions = futures::future::try_join_all(checks).await?;
    Ok(versions.into_iter().flatten().collect())
}

/// Parses a date or a time, as in `exclude-newer`.
pub(super) fn timestamp(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    let date: Date = text.parse().ok()?;
    date.to_zoned(TimeZone::UTC).ok().map(|z| z.timestamp())
}

fn wheels_available_since(minor: u32) -> Option<Timestamp> {
    WHEELS_AVAILABLE_SINCE
        .iter()
        .find(|(v, _)| parse(v) == Some(minor))
        .and_then(|(_, date)| timestamp(date))
}

/// Returns the date as of which packages are resolved, or `None` for the newest packages.
///
/// It is the end of the commit's day, so that commits of one day share their packages. It is never earlier than the
/// first wheels for the chosen Python.
pub fn resolution_date(recipe: &Recipe, source: &Source) -> Option<String> {
    if let Some(date) = &recipe.exclude_newer {
        return (date != "never")
            .then(|| timestamp(date).map_or_else(|| date.clone(), |t| t.to_string()));
    }
    let commit = source.date.as_deref().and_then(timestamp)?;
    let floor = recipe
        .python
        .as_deref()
        .and_then(parse)
        .and_then(wheels_available_since);
    let date = floor.map_or(commit, |floor| floor.max(commit));
    let day = 24 * 60 * 60;
    let end = date.as_second().div_euclid(day) * day + day;
    Timestamp::from_second(end).ok().map(|t| t.to_string())
}

/// The information about Python in a repository's files.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// Specifiers such as `>=3.7,<4`.
    pub requires: Vec<String>,
    /// Minor versions listed in classifiers, tox.ini and CI files.
    pub listed_minors: Vec<u32>,
    pub date: Option<Timestamp>,
}

impl Hints {
    /// Returns whether the code allows some release of 3.minor.
    fn allow(&self, minor: u32) -> bool {
        self.requires.iter().all(|r| allows(r, minor))
    }

    /// Adds the hints of another project of the repository. Specifiers that contradict the present ones are ignored.
    pub(super) fn add(&mut self, other: Hints) {
        self.listed_minors.extend(other.listed_minors);
        for specifier in other.requires {
            let mut minors = SUPPORTED_VERSIONS
                .iter()
                .filter_map(|version| parse(version));
            let fits = |minor: u32| self.allow(minor) && allows(&specifier, minor);
            if minors.any(fits) {
                self.requires.push(specifier);
            }
        }
    }
}

/// Returns the newest version that fulfils the hints.
///
/// It must be available and allowed by the specifiers, not newer than the listed versions, and have had wheels when the
/// code was written. A condition that no version fulfils is ignored or, for the last two, replaced by the oldest
/// version left.
pub(super) fn choose(hints: &Hints, available: &[String]) -> String {
    let mut minors: Vec<u32> = SUPPORTED_VERSIONS.iter().filter_map(|v| parse(v)).collect();
    let mut keep = |condition: &dyn Fn(u32) -> bool, or_oldest: bool| {
        let remaining: Vec<u32> = minors.iter().copied().filter(|m| condition(*m)).collect();
        if !remaining.is_empty() {
            minors = remaining;
        } else if or_oldest {
            minors.truncate(1);
        }
    };
    keep(
        &|m| available.is_empty() || available.iter().any(|v| parse(v) == Some(m)),
        false,
    );
    keep(&|m| hints.allow(m), false);
    if let Some(newest) = hints.listed_minors.iter().max() {
        keep(&|m| m <= *newest, true);
    }
    let date = hints.date.unwrap_or_else(Timestamp::now);
    keep(
        &|m| wheels_available_since(m).is_some_and(|s| s <= date),
        true,
    );
    format!("3.{}", minors.last().copied().unwrap_or(11))
}

/// Fails if the code requires a newer Python than any that is available.
pub(super) fn require_available(hints: &Hints, available: &[String]) -> Result<()> {
    let minors: Vec<u32> = available.iter().filter_map(|v| parse(v)).collect();
    let Some(newest) = minors.iter().max().copied() else {
        return Ok(());
    };
    let Some(needed) = (newest + 1..MAX_MINOR).find(|minor| hints.allow(*minor)) else {
        return Ok(());
    };
    if minors.iter().any(|minor| hints.allow(*minor)) {
        return Ok(());
    }
    let specifiers = hints.requires.join(", ");
    let available = available.join(", ");
    let what = format!("the code needs Python {specifiers}, but only {available} are available");
    let version = format!("3.{needed}");
    // No sandbox can have a version that this release does not know.
    let hint = match SUPPORTED_VERSIONS.contains(&version.as_str()) {
        true => format!(
            "install it with `uv python install {version}`, use --sandbox docker, or try an older one with --python X.Y"
        ),
        false => format!(
            "this release of testwright does not support Python {version}: try --python 3.{newest}, or choose an \
             older commit with --commit"
        ),
    };
    Err(SandboxError::not_found(what).hint(hint))
}

/// Returns the supported versions older than this one that the code allows, newest first.
pub(super) fn older_than(hints: &Hints, current: &str) -> Vec<String> {
    let Some(current) = parse(current) else {
        return Vec::new();
    };
    let fits = |minor: u32| minor < current && hints.allow(minor);
    let versions = SUPPORTED_VERSIONS.iter().rev();
    versions
        .filter(|version| parse(version).is_some_and(fits))
        .map(|version| (*version).to_owned())
        .collect()
}

/// Returns whether the preferred version can replace the chosen one. It must be available and allowed by the code.
pub(super) fn is_possible(
    preferred: &PreferredPython,
    chosen: &str,
    hints: &Hints,
    available: &[String],
) -> bool {
    let Some(minor) = parse(&preferred.version) else {
        return false;
    };
    let is_known = SUPPORTED_VERSIONS.contains(&preferred.version.as_str());
    let is_newer = parse(chosen).is_none_or(|chosen| chosen < minor);
    is_known
        && preferred.version != chosen
        && (is_newer || !preferred.only_if_newer)
        && (available.is_empty() || available.contains(&preferred.version))
        && hints.allow(minor)
}

/// Returns whether a specifier such as `>=3.7, !=3.8.*, <4` (or Poetry's `^3.7`) allows some release of 3.minor.
pub(super) fn allows(specifier: &str, minor: u32) -> bool {
    specifier.split("||").any(|part| {
        part.split(',')
            .map(str::trim)
            .filter(|clause| !clause.is_empty())
            .all(|clause| clause_allows(clause, minor))
    })
}

fn clause_allows(clause: &str, minor: u32) -> bool {
    let operator: String = clause
        .chars()
        .take_while(|c| "<>=!~^".contains(*c))
        .collect();
    let version = clause[operator.len()..].trim();
    let wildcard = version.ends_with(".*");
    let numbers: Vec<u32> = version
        .trim_end_matches(".*")
        .split('.')
        .map_while(|n| n.parse().ok())
        .collect();
    let Some(major) = numbers.first().copied() else {
        return true;
    };
    let this = (3, minor);
    let bound = (major, numbers.get(1).copied().unwrap_or(0));
    let patch = numbers.get(2).copied().unwrap_or(0);
    match operator.as_str() {
        ">=" => this >= bound,
        ">" => this > bound || (this == bound && numbers.len() > 2),
        "<=" => this <= bound,
        "<" => this < bound || (this == bound && patch > 0),
        "==" | "===" | "=" | "" if numbers.len() == 1 => major == 3,
        "==" | "===" | "=" | "" => this == bound,
        "!=" if wildcard || numbers.len() < 3 => this != bound,
        "!=" => true,
        "~=" if numbers.len() <= 2 => this >= bound && major == 3,
        "~=" | "~" => this == bound,
        "^" => this >= bound && major == 3,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn hints(requires: &str) -> Hints {
        Hints {
            requires: vec![requires.to_owned()],
            ..Hints::default()
        }
    }

    #[test]
    fn missing_newer_python_is_reported() {
        let available = ["3.12", "3.13"].map(str::to_owned);
        let error = require_available(&hints(">=3.14"), &available).unwrap_err();
        assert!(error.message.contains(">=3.14") && error.message.contains("3.12, 3.13"));
        assert!(error.hint.unwrap().contains("uv python install 3.14"));
        let error = require_available(&hints(">=3.16"), &available).unwrap_err();
        let hint = error.hint.unwrap();
        assert!(
            hint.contains("does not support Python 3.16: try --python 3.13"),
            "{hint}"
        );
        // Old code, contradictions and unknown backends do not stop a build.
        for fine in [">=3.8", ">=2.7,<3", ">=3.12,<3.13", "nonsense"] {
            require_available(&hints(fine), &available).unwrap();
        }
        require_available(&hints(">=3.14"), &[]).unwrap();
    }

    #[test]
    fn older_versions_respect_limits() {
        assert_eq!(older_than(&hints(">=3.11"), "3.13"), ["3.12", "3.11"]);
        assert_eq!(older_than(&hints(">=3.13"), "3.13"), [""; 0]);
    }
}
