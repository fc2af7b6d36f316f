//! Expands folders and patterns to the files of tests and patches that they name.

use std::io;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use testwright_config::error::{Error, Result};

/// Returns the files that the arguments name. A folder stands for its patches, and a pattern that the shell did not
/// expand for the files that it matches. Each file is returned once.
///
/// # Errors
///
/// Fails if a folder contains no patch, no file matches a pattern, or a folder cannot be read.
pub(super) fn expand(arguments: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for argument in arguments {
        let expanded = expand_argument(argument)?;
        for file in expanded {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

fn expand_argument(argument: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: io::Error| reading(argument).cause(error);
    if argument.is_dir() {
        let patches = |name: &str| is_patch(Path::new(name));
        let files = entries(argument, patches).map_err(failed)?;
        if files.is_empty() {
            return Err(reading(argument)
                .cause("the folder contains no patch")
                .hint("pass a folder with files that end in .patch or .diff"));
        }
        return Ok(files);
    }
    // A file may have a name that looks like a pattern.
    if argument.symlink_metadata().is_ok() || !is_pattern(argument) {
        return Ok(vec![argument.to_owned()]);
    }
    let mut paths = vec![PathBuf::new()];
    for component in argument.components() {
        let Some(glob) = glob_of(component) else {
            paths.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let mut matches = Vec::new();
        for folder in paths.iter().filter(|folder| is_folder(folder)) {
            let is_match = |name: &str| glob.is_match(name) && !name.starts_with('.');
            matches.extend(entries(folder, is_match).map_err(failed)?);
        }
        paths = matches;
    }
    paths.retain(|path| path.is_file());
    match paths.is_empty() {
        true => Err(reading(argument)
            .cause("no file matches this pattern")
            .hint("check the folder and the pattern, or pass the files themselves")),
        false => Ok(paths),
    }
}

fn is_pattern(path: &Path) -> bool {
    path.components().any(|part| glob_of(part).is_some())
}

/// Compiles a component with wildcards; `None` for other components.
fn glob_of(component: Component<'_>) -> Option<GlobMatcher> {
    let Component::Normal(name) = component else {
        return None;
    };
    let name = name
        .to_str()
        .filter(|name| name.contains(['*', '?', '[']))?;
    let glob = GlobBuilder::new(name).build().ok()?;
    Some(glob.compile_matcher())
}

/// Returns whether a path is a folder; the empty path is the current one.
fn is_folder(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

/// Returns the entries of a folder with matching names, in order. Names that are not UTF-8 do not match.
fn entries(folder: &Path, is_match: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let listed = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let mut names = Vec::new();
    for entry in listed.read_dir()? {
        if let Ok(name) = entry?.file_name().into_string()
            && is_match(&name)
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names.iter().map(|name| folder.join(name)).collect())
}

/// Creates the error for a file that cannot be read.
pub(super) fn reading(path: &Path) -> Error {
    Error::usage(format!("read {}", path.display()))
}

/// Returns whether a file is a patch by its name.
pub(super) fn is_patch(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end == "patch" || end == "diff")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn folders_and_patterns_name_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["a/p2.patch", "a/p1.diff", "a/notes.txt", "b/p3.patch"] {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), "x").unwrap();
        }
        std::fs::create_dir(path("empty")).unwrap();
        let files = |arguments: &[&str]| {
            let arguments: Vec<PathBuf> = arguments.iter().map(|name| path(name)).collect();
            expand(&arguments)
        };
        let both = [path("a/p1.diff"), path("a/p2.patch")];
        assert_eq!(files(&["a"]).unwrap(), both);
        assert_eq!(files(&["a", "a/p2.patch"]).unwrap(), both);
        let patches = [path("a/p2.patch"), path("b/p3.patch")];
        assert_eq!(files(&["*/*.patch"]).unwrap(), patches);
        assert_eq!(
            files(&["a/../b/p?.patch"]).unwrap(),
            [path("a/../b/p3.patch")]
        );
        // The reader reports missing files.
        assert_eq!(files(&["none.patch"]).unwrap(), [path("none.patch")]);
        let cause = |name: &str| files(&[name]).unwrap_err().cause.unwrap();
        assert_eq!(cause("empty"), "the folder contains no patch");
        assert_eq!(cause("c/*.patch"), "no file matches this pattern");
    }
}
