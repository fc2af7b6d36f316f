//! The example of the documentation: an issue and a small package. The program contains it, so that a first run needs no
//! checkout.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use testwright_config::error::{Error, Result};

/// Folder of the example, in the current folder.
const FOLDER: &str = "testwright-example";
/// Issue of the example, below its folder.
pub(super) const ISSUE: &str = "issue.md";
/// Repository of the example, below its folder.
pub(super) const REPOSITORY: &str = "slugs";

macro_rules! files {
    ($($path:literal),+ $(,)?) => {
        [$(($path, include_str!(concat!("../../examples/", $path)))),+]
    };
}

const FILES: [(&str, &str); 10] = files![
    "issue.md",
    "slugs/README.md",
    "slugs/pyproject.toml",
    "slugs/src/slugs/__init__.py",
    "slugs/src/slugs/letters.py",
    "slugs/src/slugs/slug.py",
    "slugs/src/slugs/unique.py",
    "slugs/tests/test_letters.py",
    "slugs/tests/test_slug.py",
    "slugs/tests/test_unique.py",
];

/// Writes the example to the current folder and returns its path. Existing files stay as they are.
pub(super) fn write() -> Result<PathBuf> {
    let folder = PathBuf::from(FOLDER);
    write_to(&folder).map_err(|error| {
        Error::usage(format!("write the example to {FOLDER}"))
            .cause(error)
            .hint("change to a folder in which you can create files")
    })?;
    Ok(folder)
}

fn write_to(folder: &Path) -> std::io::Result<()> {
    for (path, content) in FILES {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        match fs::File::create_new(&path) {
            Ok(mut file) => std::io::Write::write_all(&mut file, content.as_bytes())?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn existing_files_of_example_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        write_to(folder.path()).unwrap();
        let slug = folder.path().join("slugs/src/slugs/slug.py");
        assert!(folder.path().join(ISSUE).is_file());
        fs::write(&slug, "changed").unwrap();
        write_to(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(&slug).unwrap(), "changed");
    }

    #[test]
    fn example_contains_all_files_of_checkout() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        let mut there = vec![ISSUE.to_owned()];
        let mut folders = vec![examples.join(REPOSITORY)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_none_or(|suffix| suffix != "pyc") {
                    let path = path.strip_prefix(&examples).unwrap();
                    there.push(path.to_str().unwrap().to_owned());
                }
            }
        }
        there.sort();
        let mut listed = FILES.map(|(path, _)| path.to_owned()).to_vec();
        listed.sort();
        assert_eq!(listed, there);
    }
}
