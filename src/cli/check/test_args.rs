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
mod tests;
