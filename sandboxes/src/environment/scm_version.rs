//! The version that a package would derive from git. Old code is installed from its files alone, without git history.

use crate::pattern::Pattern;
use crate::recipe::{ProjectMetadata, is_version};
use crate::repository::{Source, Tree};
use crate::sandbox::Result;

/// Words in build files of tools that fail unless git or a variable gives them a version.
static STRICT: Pattern = Pattern::new(concat!(
    "setuptools[_-]scm|use_scm_version|pbr|hatch-vcs|versioningit|dynamic-versioning|dunamai|flit[_-]scm",
    r#"|vcs-versioning|setuptools[_-]git[_-]version|vcversioner|source = ["']scm["']"#,
));

/// Word in build files of a tool that needs no version.
const LENIENT: &str = "versioneer";

/// Variables that set the version of every package that is built with these tools.
const GENERAL_VARIABLES: [&str; 5] = [
    "SETUPTOOLS_SCM_PRETEND_VERSION",
    "PBR_VERSION",
    "PDM_BUILD_SCM_VERSION",
    "POETRY_DYNAMIC_VERSIONING_BYPASS",
    "UV_DYNAMIC_VERSIONING_BYPASS",
];

/// Version if neither git nor a changelog tells one.
const UNKNOWN: &str = "0.0.0";

/// Maximum number of headings of a changelog to compare.
const MAX_HEADINGS: usize = 30;

#[derive(Debug, Default, PartialEq)]
pub(super) struct ScmVersion {
    /// The version, or `None` if the code does not derive it from git.
    pub version: Option<String>,
    /// The tag that gives this version.
    pub tag: Option<String>,
    /// Variables of setuptools_scm for the packages of the repository, built from their names.
    pub variables: Vec<String>,
}

/// Returns the version that setuptools_scm derives from `git describe`, if the code uses a tool of this kind (such as
/// pbr or versioneer). Without a tag, it is the newest version of the changelog.
///
/// `projects` are the folders of projects below the root.
pub(super) fn from_git(source: &Source, tree: &Tree, projects: &[String]) -> Result<ScmVersion> {
    let described = source.describe.as_deref().and_then(guess_next);
    let mut found = ScmVersion::default();
    let mut is_strict = false;
    let mut is_lenient = false;
    for folder in [""].into_iter().chain(projects.iter().map(String::as_str)) {
        let tree = tree.subtree(folder);
        let mut text = String::new();
        for path in ["pyproject.toml", "setup.cfg", "setup.py"] {
            text.push_str(&tree.text(path)?.unwrap_or_default());
        }
        let (strict, lenient) = (STRICT.is_match(&text), text.contains(LENIENT));
        is_strict |= strict;
        is_lenient |= lenient;
        if strict || lenient {
            let name = ProjectMetadata::read(&tree)?
                .name
                .or_else(|| first_name(&text));
            found.variables.extend(name.map(|name| {
                let name = name.to_uppercase().replace(['-', '.'], "_");
                format!("SETUPTOOLS_SCM_PRETEND_VERSION_FOR_{name}")
            }));
        }
    }
    if !is_strict && (described.is_none() || !is_lenient) {
        return Ok(ScmVersion::default());
    }
    found.tag = source
        .describe
        .as_deref()
        .filter(|_| described.is_some())
        .map(tag_of);
    found.version = match described {
        Some(version) => Some(version),
        None => Some(newest_in_changelog(tree)?.unwrap_or_else(|| UNKNOWN.to_owned())),
    };
    Ok(found)
}

/// Returns the first `name = …` in build files whose structure cannot be read.
fn first_name(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_end_matches(',').trim_matches(['"', '\'']);
        let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let is_name = key.trim() == "name" && !value.is_empty() && value.chars().all(is_plain);
        is_name.then(|| value.to_owned())
    })
}

/// Returns the tag in the output of `git describe`.
pub(super) fn tag_of(describe: &str) -> String {
    tag_and_distance(describe).0.to_owned()
}

/// Splits the output of `git describe` into the tag and the number of commits since then.
fn tag_and_distance(describe: &str) -> (&str, &str) {
    match describe.rsplitn(3, '-').collect::<Vec<_>>()[..] {
        [hash, distance, tag] if hash.starts_with('g') => (tag, distance),
        _ => (describe, "0"),
    }
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
        let general = GENERAL_VARIABLES.iter().filter(|_| general);
        let names = self.variables.iter().cloned();
        let names = names.chain(general.map(|name| (*name).to_owned()));
        names.map(|name| (name, version.clone())).collect()
    }

    /// Returns the tag for a repository that a build tool asks for a version. The prefix `v` is the one that all such
    /// tools understand.
    pub(super) fn tag(&self) -> String {
        let version = self.version.as_deref().unwrap_or(UNKNOWN);
        self.tag.clone().unwrap_or_else(|| format!("v{version}"))
    }
}

/// Returns whether a build failed because its version could not be derived from git.
pub(super) fn lacks_version(output: &str) -> bool {
    static LACKS: Pattern = Pattern::new(
        r"(?i)unable to detect version|getting the version from source|contain a PKG-INFO file|cannot find the version|versioning.{0,80}(?:git|vcs|tag)|version.{0,80}\b(?:scm|vcs|git|tags?)\b|\b(?:scm|vcs|git|tags?)\b.{0,80}version|not a git repository|git describe|dunamai",
    );
    LACKS.is_match(output)
}

static HEADING: Pattern = Pattern::new(
    r"(?im)^[^\w\n]{0,6}(?:([a-z][\w.-]*)\s+)?(?:version|release)?\s*[\[(`]?v?(\d+\.\d+(?:\.\d+){0,2})(?:(?:a|b|rc|\.post|\.dev)\d+)?[\])`]?\s*(?:$|[:,(–—-]|\d{4})",
);

/// Returns the highest version in the headings of a changelog.
fn newest_in_changelog(tree: &Tree) -> Result<Option<String>> {
    let is_changelog = |path: &&str| {
        let lower = path.to_lowercase();
        let (folder, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let starts = ["change", "history", "news", "release"];
        let is_text = [".md", ".rst", ".txt"]
            .iter()
            .any(|end| name.ends_with(end));
        matches!(folder, "" | "doc" | "docs" | "docs/source" | "doc/source")
            && (is_text || !name.contains('.'))
            && starts.iter().any(|start| name.starts_with(start))
    };
    for path in tree.paths().filter(is_changelog) {
        let text = tree.text(path)?.unwrap_or_default();
        if let Some(version) = highest_heading(&text) {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

fn highest_heading(text: &str) -> Option<String> {
    let headings = HEADING.captures_iter(text);
    // Lines such as `Python 3.14:` name another product.
    let is_other = |word: regex::Match| word.as_str().eq_ignore_ascii_case("python");
    let headings = headings.filter(|heading| !heading.get(1).is_some_and(is_other));
    let versions = headings
        .take(MAX_HEADINGS)
        .map(|heading| heading[2].to_owned());
    let numbers = |version: &String| -> Vec<u64> {
        version.split('.').filter_map(|n| n.parse().ok()).collect()
    };
    versions
        .filter(|version| is_version(version))
        .max_by_key(numbers)
}

/// Guesses the version as setuptools_scm does:
///
/// - `v1.2.3-4-gabc` → `1.2.4.dev4`
/// - `v1.2.3` → `1.2.3`
/// - `6.0.0rc1-51-gabc` → `6.0.0rc2.dev51`
/// - `7.2.0.dev0-3-gabc` → `7.2.0.dev3`
fn guess_next(describe: &str) -> Option<String> {
    let (tag, distance) = tag_and_distance(describe);
    let distance: u64 = distance.parse().ok()?;
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
mod tests;
