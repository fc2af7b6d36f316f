//! Checks the folder of `--out` before any work.

use std::path::{Path, PathBuf};

use testwright_agent::job::RESULT_FILES;
use testwright_comparisons::compare::PLAN;
use testwright_evals::result::results_file;

use testwright_config::error::{Error, Result};

/// Checks that the path of `--out` can be a folder.
///
/// # Errors
///
/// Fails if the path is a file.
pub(super) fn check_is_folder(out: &Path) -> Result<()> {
    match out.metadata() {
        Ok(metadata) if !metadata.is_dir() => {
            Err(Error::usage(format!("use --out {}", out.display()))
                .cause(format!("{} is a file", out.display()))
                .hint("pass a folder with --out"))
        }
        // The first access reports other problems.
        _ => Ok(()),
    }
}

/// Checks that no folder of results is given twice, because its results would count twice.
///
/// # Errors
///
/// Fails if a folder is given twice.
pub(super) fn check_each_once(folders: &[PathBuf]) -> Result<()> {
    let mut seen_folders = Vec::new();
    for folder in folders {
        // The first access reports a missing folder.
        let place = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if seen_folders.contains(&place) {
            return Err(Error::usage("combine the folders")
                .cause(format!("{} is given twice", folder.display()))
                .hint("pass each folder once"));
        }
        seen_folders.push(place);
    }
    Ok(())
}

/// Checks that the folder has no file that the results of a run would overwrite.
///
/// # Errors
///
/// Fails if there is such a file.
pub(super) fn check_has_no_result_files(out: &Path) -> Result<()> {
    match RESULT_FILES.iter().find(|name| out.join(name).exists()) {
        Some(name) => Err(Error::usage(format!("use --out {}", out.display()))
            .cause(format!("the run would overwrite {name} in this folder"))
            .hint("pass another folder with --out")),
        None => Ok(()),
    }
}

/// Checks that the folder is not one of `testwright compare`, whose reports `eval` would overwrite.
///
/// # Errors
///
/// Fails if the folder contains the plan of a comparison.
pub(super) fn check_has_no_comparison(out: &Path) -> Result<()> {
    // `eval report` writes a file with the same name beside results.
    if out.join(PLAN).exists() && !out.join(results_file::FILE).exists() {
        return Err(foreign_folder(out, "compare"));
    }
    Ok(())
}

/// Checks that the folder is not one of `testwright eval`, whose reports `compare` would overwrite.
///
/// # Errors
///
/// Fails if the folder contains results of a grading.
pub(super) fn check_has_no_results(out: &Path) -> Result<()> {
    match out.join(results_file::FILE).exists() {
        true => Err(foreign_folder(out, "eval")),
        false => Ok(()),
    }
}

fn foreign_folder(out: &Path, command: &str) -> Error {
    Error::usage(format!("use --out {}", out.display()))
        .cause(format!(
            "{} contains the results of `testwright {command}`",
            out.display()
        ))
        .hint("pass another folder with --out")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn folder_given_twice_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("a")).unwrap();
        check_each_once(&[path("a"), path("b")]).unwrap();
        assert!(check_each_once(&[path("a"), path("b"), path("a/.")]).is_err());
    }

    #[test]
    fn folder_with_result_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        std::fs::write(out.join("notes.txt"), "").unwrap();
        check_has_no_result_files(out).unwrap();
        check_has_no_result_files(&out.join("missing/now")).unwrap();
        let patch = out.join("test.patch");
        std::fs::write(&patch, "").unwrap();
        let error = check_has_no_result_files(out).unwrap_err().render();
        assert!(error.contains("would overwrite test.patch"), "{error}");
        assert!(check_is_folder(&patch).is_err());
    }
}
