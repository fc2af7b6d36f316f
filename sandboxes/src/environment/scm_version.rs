//! The version that a package would derive from git. Old code is installed from its files alone, without git history.

use crate::repository::{Source, Tree};
use crate::sandbox::Result;

#[derive(Debug, Default, PartialEq)]
pub(super) struct ScmVersion {
    /// The version, or `None` if the code does not derive it from git or git has no tag.
    pub version: Option<String>,
    /// Variable of setuptools_scm for this package, built from its name in setup.cfg or pyproject.toml.
    pub variable: Option<String>,
}

/// Returns the version that setuptools_scm derives from `git describe`, if the code uses a tool of this kind (such as
/// pbr or versioneer).
pub(super) fn from_git(source: &Source, tree: &Tree) -> Result<ScmVersion> {
    let Some(version) = source.describe.as_deref().and_then(guess_next) else {
        return Ok(ScmVersion::default());
    };
    let mut text = String::new();
    for path in ["pyproject.toml", "setup.cfg", "setup.py"] {
        text.push_str(&tree.text(path)?.unwrap_or_default());
    }
    let signs = [
        "setuptools_scm",
        "setuptools-scm",
        "use_scm_version",
        "pbr",
        "versioneer",
        "hatch-vcs",
        "versioningit",
    ];
    if !signs.iter().any(|sign| text.contains(sign)) {
        return Ok(ScmVersion::default());
    }
    let name = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_end_matches(',').trim_matches(['"', '\'']);
        let plain = !value.is_empty()
            && value
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.".contains(c));
        (key.trim() == "name" && plain).then(|| value.to_uppercase().replace(['-', '.'], "_"))
    });
    Ok(ScmVersion {
        version: Some(version),
        variable: name.map(|name| format!("SETUPTOOLS_SCM_PRETEND_VERSION_FOR_{name}")),
    })
}

impl ScmVersion {
    /// Returns the variables for the step that installs the package.
    ///
    /// The `general` variables also reach packages built from source in the same step, and may give them a wrong
    /// version. Then they are omitted.
    pub(super) fn variables(&self, general: bool) -> Vec<(String, String)> {
        let Some(version) = &self.version else {
            return Vec::new();
        };
        let names = self.variable.iter().cloned().chain(
            general
                .then_some(["SETUPTOOLS_SCM_PRETEND_VERSION", "PBR_VERSION"])
                .into_iter()
                .flatten()
                .map(str::to_owned),
        );
        names.map(|name| (name, version.clone())).collect()
    }
}

/// Guesses the version as setuptools_scm does:
///
/// - `v1.2.3-4-gabc` → `1.2.4.dev4`
/// - `v1.2.3` → `1.2.3`
/// - `6.0.0rc1-51-gabc` → `6.0.0rc2.dev51`
/// - `7.2.0.dev0-3-gabc` → `7.2.0.dev3`
fn guess_next(describe: &str) -> Option<String> {
    let mut parts = describe.rsplitn(3, '-');
    let (tag, distance) = match (parts.next(), parts.next(), parts.next()) {
        (Some(hash), Some(distance), Some(tag)) if hash.starts_with('g') => {
            (tag, distance.parse::<u64>().ok()?)
        }
        _ => (describe, 0),
    };
    let start = tag.find(|c: char| c.is_ascii_digit())?;
    // Tags such as `release-1.2-final` and `v1.2_beta` are not versions, so nothing can be guessed.
    let version = tag[start..].trim_end_matches(['.', '-', '_']);
    if !version
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '.')
    {
        return None;
    }
    if distance == 0 {
        return Some(version.to_owned());
    }
    if let Some(at) = version.find(".dev") {
        return Some(format!("{}.dev{distance}", &version[..at]));
    }
    let digits = version.len() - version.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (head, last) = version.split_at(version.len() - digits);
    let next = last.parse::<u64>().ok()? + 1;
    Some(format!("{head}{next}.dev{distance}"))
}

#[cfg(test)]
mod tests {
    use super::guess_next;

    #[test]
    fn next_version_matches_setuptools_scm() {
        for (describe, version) in [
            ("v1.2.3", Some("1.2.3")),
            ("v0.16.0-27-g98dc1f4ea", Some("0.16.1.dev27")),
            ("6.0.0rc1-51-g41d211c24", Some("6.0.0rc2.dev51")),
            ("7.2.0.dev0-157-gaa55975c7", Some("7.2.0.dev157")),
            ("sympy-1.6-10004-gb1cb676cf9", Some("1.7.dev10004")),
            ("v2022.06.0-78-g45c0a114e", Some("2022.06.1.dev78")),
            ("release-1-final", None),
            ("nothing", None),
        ] {
            assert_eq!(guess_next(describe).as_deref(), version, "{describe}");
        }
    }
}
