//! The version that a package would have asked git for: old code is installed from its files alone.

use crate::repository::{Source, Tree};
use crate::sandbox::Result;

#[derive(Debug, Default, PartialEq)]
pub(super) struct ScmVersion {
    /// `None`: nothing in the code asks git, or git has no tag.
    pub version: Option<String>,
    /// The package's name in setup.cfg or pyproject, as setuptools_scm wants it in a variable.
    pub variable: Option<String>,
}

/// What setuptools_scm would say for `git describe`, if the code uses it, pbr or versioneer.
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
    /// Variables for the step that installs the package. The general one also reaches packages that are built from
    /// their sources in the same step, and gives them a wrong version: then it is left out.
    pub fn variables(&self, general: bool) -> Vec<(String, String)> {
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

/// `v1.2.3-4-gabc` → `1.2.4.dev4`; `v1.2.3` → `1.2.3`; `6.0.0rc1-51-gabc` → `6.0.0rc2.dev51`;
/// `7.2.0.dev0-3-gabc` → `7.2.0.dev3`.
fn guess_next(describe: &str) -> Option<String> {
    let mut parts = describe.rsplitn(3, '-');
    let (tag, distance) = match (parts.next(), parts.next(), parts.next()) {
        (Some(hash), Some(distance), Some(tag)) if hash.starts_with('g') => {
            (tag, distance.parse::<u64>().ok()?)
        }
        _ => (describe, 0),
    };
    let start = tag.find(|c: char| c.is_ascii_digit())?;
    // `release-1.2-final`, `v1.2_beta`: what is not a version cannot be guessed.
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
    fn as_setuptools_scm_counts() {
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
