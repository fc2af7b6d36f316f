//! Reads the tests that the arguments of `check` name.

use std::io::ErrorKind;
use std::path::Path;

use testwright_sandboxes::plain_file;

use crate::cli::repository_args::patch_of_project;
use testwright_agent::approaches::extra_inputs::{contains_diff, test_path};
use testwright_agent::check::TestInput;
use testwright_config::error::{Error, Result};

/// Maximum bytes of a test.
const MAX_TEST_BYTES: u64 = 32 << 20;

/// A test, under the name that the user gave it.
#[derive(Debug, PartialEq)]
pub(super) struct GivenTest {
    pub name: String,
    pub input: TestInput,
}

/// Reads all tests. `repository` is the folder or URL of the old code.
pub(super) fn read(arguments: &[String], repository: &str) -> Result<Vec<GivenTest>> {
    let tests = arguments.iter().map(|argument| {
        Ok(GivenTest {
            name: argument.clone(),
            input: read_test(argument, repository)?,
        })
    });
    tests.collect()
}

fn read_test(argument: &str, repository: &str) -> Result<TestInput> {
    let wrong = |cause: &str, hint: &str| {
        Err(Error::usage(format!("read the test {argument}"))
            .cause(cause)
            .hint(hint))
    };
    let (target, file) = split_target(argument);
    let target = target.map(test_path).transpose()?;
    let content = match plain_file::read_user_file(Path::new(file), MAX_TEST_BYTES) {
        Ok(content) => content,
        Err(error) => {
            let cause = match error.kind() {
                ErrorKind::NotFound => format!("the file {file} does not exist"),
                _ => error.to_string(),
            };
            return wrong(&cause, "pass a patch, a Python file, or PATH=FILE");
        }
    };
    if let Some(path) = target {
        return Ok(TestInput::File { path, content });
    }
    let is_named_patch = file.ends_with(".patch") || file.ends_with(".diff");
    let text = std::str::from_utf8(&content).ok();
    if is_named_patch || text.is_some_and(begins_like_diff) {
        return match text.filter(|text| contains_diff(text)) {
            Some(text) => Ok(TestInput::Patch(patch_of_project(text, repository))),
            None => wrong(
                "it contains no diff",
                "pass a unified diff, as `git diff` prints it",
            ),
        };
    }
    if !file.ends_with(".py") {
        return wrong(
            "it is neither a patch nor a Python file",
            "pass a unified diff, or a file that ends in .py",
        );
    }
    match path_in_folder(file, repository) {
        Some(path) => Ok(TestInput::File { path, content }),
        None => wrong(
            "it is not in the repository's folder",
            "write PATH=FILE, where PATH is the file's path in the repository",
        ),
    }
}

/// Splits `PATH=FILE`, unless a file has the whole argument as its name.
fn split_target(argument: &str) -> (Option<&str>, &str) {
    match argument.split_once('=') {
        Some((path, file)) if !Path::new(argument).exists() => (Some(path), file),
        _ => (None, argument),
    }
}

fn begins_like_diff(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let starts = ["diff --git ", "--- ", "Index: "];
    lines
        .next()
        .is_some_and(|line| starts.iter().any(|start| line.starts_with(start)))
}

/// Returns the path of a file relative to a folder; `None` if it is not in the folder.
fn path_in_folder(file: &str, folder: &str) -> Option<String> {
    let file = Path::new(file).canonicalize().ok()?;
    let folder = Path::new(folder).canonicalize().ok()?;
    Some(file.strip_prefix(folder).ok()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const DIFF: &str = "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b\n";

    #[test]
    fn tests_are_patches_or_python_files() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join("repository");
        std::fs::create_dir_all(repository.join("tests")).unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let read = |argument: &str| read_test(argument, repository.to_str().unwrap());
        let file = |path: &str, text: &str| TestInput::File {
            path: path.to_owned(),
            content: text.as_bytes().to_vec(),
        };

        let diff = write("answer.txt", DIFF);
        let draft = write("draft.py", "x = 1\n");
        let inside = write("repository/tests/test_a.py", "y = 1\n");
        let odd = write("repository/tests/a=b.py", "z = 1\n");
        assert_eq!(read(&diff), Ok(TestInput::Patch(DIFF.to_owned())));
        assert_eq!(read(&inside), Ok(file("tests/test_a.py", "y = 1\n")));
        assert_eq!(read(&odd), Ok(file("tests/a=b.py", "z = 1\n")));
        let placed = read(&format!("./tests/test_b.py={draft}"));
        assert_eq!(placed, Ok(file("tests/test_b.py", "x = 1\n")));

        let empty = write("empty.patch", "x = 1\n");
        let other = write("notes.txt", "notes\n");
        let outside = format!("../test_b.py={draft}");
        let prose = format!("notes.md={draft}");
        for (argument, cause) in [
            (&*draft, "it is not in the repository's folder"),
            (&*empty, "it contains no diff"),
            (&*other, "it is neither a patch nor a Python file"),
            ("no/such.patch", "the file no/such.patch does not exist"),
            ("tests/test_b.py=no.py", "the file no.py does not exist"),
            (&*outside, "it is outside the repository"),
            (&*prose, "it is not a Python file"),
        ] {
            let error = read(argument).unwrap_err();
            assert_eq!(error.cause.as_deref(), Some(cause), "{argument}");
            assert!(error.hint.is_some(), "{argument}");
        }

        // The patch of a run is relative to the root of the git repository.
        for name in ["objects", "refs"] {
            std::fs::create_dir_all(folder.path().join(".git").join(name)).unwrap();
        }
        write(".git/HEAD", "ref: refs/heads/main\n");
        let of_root = write("root.patch", &DIFF.replace("t.py", "repository/t.py"));
        for patch in [&diff, &of_root] {
            assert_eq!(
                read(patch),
                Ok(TestInput::Patch(DIFF.to_owned())),
                "{patch}"
            );
        }
    }
}
