//! `find_file`: finds files by glob or by a part of their name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line_numbers::{count, listed};
use super::path_glob::path_glob;
use crate::tool::{Context, Effect, Reply, Result, Tool, refusal};
use crate::workspace::{Workspace, forward, is_at_or_below};

const MAX_SHOWN: usize = 50;

/// A tool that finds files by name.
pub struct FindFile;

/// Arguments of `find_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindFileArgs {
    /// A glob, or a part of the path.
    #[schemars(example = "test_*.py")]
    name: String,
    /// Search only below this folder.
    #[schemars(extend("unlisted" = true))]
    path: Option<String>,
}

/// Files that match a name.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct FileList {
    /// All matching files, relative to the repository.
    pub files: Vec<String>,
    /// The files with the nearest names, if none matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
}

impl Tool for FindFile {
    type Args = FindFileArgs;
    type Data = FileList;
    const NAME: &'static str = "find_file";
    const TITLE: &'static str = "Find files";
    const DESCRIPTION: &'static str = "Find files by name.";
    const EFFECT: Effect = Effect::Reads;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        list(context.workspace, &args.name, args.path.as_deref(), "name")
    }
}

/// Lists files of a name, or whose path matches a glob, below a folder. `field` is the caller's name for the argument.
///
/// # Errors
///
/// Fails if the folder does not exist, or the name is empty or not a valid glob.
pub fn list(
    workspace: &Workspace,
    name: &str,
    folder: Option<&str>,
    field: &str,
) -> Result<Reply<FileList>> {
    let mut files = workspace.files();
    if let Some(folder) = folder {
        let relative = workspace.resolve(folder)?;
        if !workspace.root().join(&relative).is_dir() {
            return Err(refusal!("There is no folder `{folder}`."));
        }
        let folder = forward(&relative);
        files.retain(|file| is_at_or_below(file, &folder));
    }
    let pattern = name.trim();
    if pattern.is_empty() {
        return Err(refusal!("`{field}` is empty."));
    }
    let mut nearest = Vec::new();
    let files: Vec<String> = if pattern.contains(['*', '?', '[']) {
        let glob = path_glob(pattern)?;
        files.into_iter().filter(|f| glob.is_match(f)).collect()
    } else {
        let matches = by_part(&files, pattern);
        if matches.is_empty() {
            nearest = crate::workspace::nearest(&files, pattern);
        }
        matches
    };
    let text = if !nearest.is_empty() {
        format!(
            "No file's path holds `{pattern}`. The nearest are:\n{}\n",
            nearest.join("\n")
        )
    } else if files.is_empty() {
        format!("No file fits `{pattern}`.")
    } else {
        let listed = listed(&files, MAX_SHOWN, |more| {
            format!("… and {more} more. Narrow it with `path` or a stricter `{field}`.")
        });
        format!("{}\n{listed}", count(files.len(), "file"))
    };
    Ok(Reply::new(text, FileList { files, nearest }))
}

/// Returns files with the part in their name, exact names first; otherwise files with the part in their path.
fn by_part(files: &[String], part: &str) -> Vec<String> {
    let part = part.trim_start_matches("./").to_lowercase();
    let name = |f: &str| f.rsplit('/').next().unwrap_or_default().to_lowercase();
    let mut matches: Vec<String> = files
        .iter()
        .filter(|f| name(f).contains(&part))
        .cloned()
        .collect();
    matches.sort_by_key(|f| {
        let name = name(f);
        name != part && name.split('.').next() != Some(&part)
    });
    if !matches.is_empty() {
        return matches;
    }
    files
        .iter()
        .filter(|f| f.to_lowercase().contains(&part))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use serde_json::json;

    use crate::testing::Fixture;

    #[test]
    fn files_are_found_by_glob_and_part() {
        let mut f = Fixture::new(&[
            ("src/pkg/models.py", b""),
            ("src/pkg/submodels.py", b""),
            ("tests/test_models.py", b""),
            ("tests/deep/conftest.py", b""),
        ]);
        let mut find = |args| f.text("find_file", args);
        assert_eq!(find(json!({"name": "*models.py"})).lines().count(), 4);
        assert_eq!(
            find(json!({"name": "tests/**/*.py"})),
            "2 files\ntests/deep/conftest.py\ntests/test_models.py\n"
        );
        assert!(find(json!({"name": "models"})).starts_with("3 files\nsrc/pkg/models.py\n"));
        assert_eq!(
            find(json!({"name": "models", "path": "tests"})),
            "1 file\ntests/test_models.py\n"
        );
        assert!(find(json!({"name": "modles.py"})).contains("nearest"));
        assert!(find(json!({"name": "*.rst"})).contains("No file fits"));
        f.refuses("find_file", json!({"name": "x", "path": "no"}), "no folder");
        f.refuses("find_file", json!({"name": "[x"}), "not a glob");
    }
}
