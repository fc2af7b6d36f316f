//! Extra inputs of an approach beyond the issue (SWT-bench §5, Table 5): the test files to change, a code
//! patch that may be right or wrong, and the files that this patch changes instead of those found by BM25.
//! A user can also say what the test should be like, or have an earlier test revised.
//!
//! All of it goes into prompts and into the record, and nothing but an earlier test into a sandbox. Of a test
//! file, only its name and old content are given, never the tests to be written.

pub mod hint;
pub mod lines;

use std::collections::BTreeSet;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::plain_file;
use testwright_sandboxes::repository::{self, Files, Source, Tree};
use testwright_tools::workspace::Layout;

use super::variant::{ApproachOption, Options, Variant};
use super::{ALL, Approach, CHECK, COVER, ModelKind, Workflow};
use crate::issues::{Issue, Wish};
use testwright_config::error::{Error, Result};

/// Shows the test files to change.
pub const GIVEN_TESTS: ApproachOption = ApproachOption::off_by_default(
    "given-tests",
    "the test files to change are named and shown",
);
/// Shows a code patch.
pub const GIVEN_PATCH: ApproachOption = ApproachOption::off_by_default(
    "given-patch",
    "a code patch for the issue is shown, which may be right or wrong",
);
/// Shows the files of a code patch instead of retrieved ones.
pub const GIVEN_FILES: ApproachOption = ApproachOption::off_by_default(
    "given-files",
    "the files that this patch changes are shown instead of those found by BM25",
);
/// Replaces the golden code patch by another one in a comparison.
pub const OTHER_PATCH: ApproachOption = ApproachOption::off_by_default(
    "other-patch",
    "in a comparison this patch is the one of --code-patches instead of the golden one",
);

/// Options of an approach that retrieves code in the stage `retrieve`.
pub const OPTIONS: &[ApproachOption] = &[GIVEN_TESTS, GIVEN_PATCH, GIVEN_FILES, OTHER_PATCH];

/// Maximum bytes of a code patch; a larger one is not for review.
const MAX_PATCH_BYTES: u64 = 32 << 20;

/// Inputs of an approach in addition to the issue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExtraInputs {
    /// Code patch for the issue; it may be right or wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_patch: Option<String>,
    /// Description of the wanted test, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Test of an earlier run to revise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revises: Option<EarlierTest>,
    /// Paths of the test files to change; those missing in the old code are created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test_files: Vec<String>,
    /// Lines to write tests for: `FILE::FUNCTION` or `FILE:FIRST-LAST`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// Test that should run these lines, as `FILE::CLASS::FUNCTION`. Only its body is missing, and no other
    /// test is in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// Test to check, as a patch for `git apply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_patch: Option<String>,
}

/// A test that an earlier run wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierTest {
    /// Folder of that run, or its id on a server.
    pub run: String,
    /// The test, as a patch for `git apply`.
    pub patch: String,
}

/// Checks that an approach can revise a test: it needs tools and a language model.
///
/// # Errors
///
/// Fails if the approach cannot.
pub fn check_can_revise(variant: &Variant) -> Result<()> {
    let name = variant.approach.name;
    let writes_for_issues = ALL.iter().any(|approach| approach.name == name);
    match (variant.approach.workflow, variant.approach.model) {
        (Workflow::Agent { .. }, ModelKind::Language) if writes_for_issues => Ok(()),
        _ => Err(Error::usage(format!("revise a test of `{name}`"))
            .cause("only an agent with a language model can revise its test")
            .hint("start a new run with --hint, for example with --approach testwright")),
    }
}

/// Returns whether the approach needs a code patch.
pub fn takes_patch(options: &Options) -> bool {
    options.is_on(&GIVEN_PATCH) || options.is_on(&GIVEN_FILES)
}

/// Returns whether the approach needs the test files to change.
pub fn takes_tests(options: &Options) -> bool {
    options.is_on(&GIVEN_TESTS)
}

/// Returns whether the patch is another one than the golden patch.
pub fn takes_other_patch(options: &Options) -> bool {
    takes_patch(options) && options.is_on(&OTHER_PATCH)
}

/// Describes the extra inputs of a comparison's system, for its report.
pub fn labels(options: &Options) -> Vec<String> {
    let patch = match options.is_on(&OTHER_PATCH) {
        true => "other code patch",
        false => "golden code patch",
    };
    let mut labels = Vec::new();
    if options.is_on(&GIVEN_TESTS) {
        labels.push("test files".to_owned());
    }
    if options.is_on(&GIVEN_PATCH) {
        labels.push(patch.to_owned());
    }
    if options.is_on(&GIVEN_FILES) {
        labels.push(format!("files of the {patch}"));
    }
    labels
}

/// Rejects options that have no effect together.
///
/// # Errors
///
/// Fails if the option `other-patch` is on, but no patch is used.
pub fn check_options(variant: &Variant) -> Result<()> {
    if variant.is_on(&OTHER_PATCH) && !takes_patch(variant.options()) {
        return Err(Error::usage(format!("use `{}`", variant.name()))
            .cause("`other-patch` selects a code patch, but none is given")
            .hint("add given-patch=on or given-files=on"));
    }
    Ok(())
}

impl ExtraInputs {
    /// Returns whether there are no extra inputs.
    pub fn is_empty(&self) -> bool {
        *self == ExtraInputs::default()
    }

    /// Returns the paths of all files that the inputs name.
    pub fn paths(&self) -> BTreeSet<String> {
        let revised = self.revises.as_ref().map(|test| &test.patch);
        let patches = [self.code_patch.as_ref(), self.test_patch.as_ref(), revised];
        let patches = patches.into_iter().flatten();
        let changed = patches.flat_map(|patch| repository::touched_paths(patch));
        let lines = self.lines.iter();
        let lines = lines.filter_map(|lines| lines.split(':').next());
        let files = self.test_files.iter().map(String::as_str).chain(lines);
        changed.chain(files.map(str::to_owned)).collect()
    }

    /// Reads the extra inputs from the settings at the start of a trajectory.
    ///
    /// # Errors
    ///
    /// Fails if the recorded inputs cannot be read.
    pub fn of_record(settings: &Value) -> Result<ExtraInputs> {
        let Some(inputs) = settings.get("extra_inputs") else {
            return Ok(ExtraInputs::default());
        };
        serde_json::from_value(inputs.clone()).map_err(|error| {
            Error::usage("read what the recorded run was given beyond the issue")
                .cause(error.to_string())
        })
    }

    /// Checks that the inputs are those that the options require, and no others.
    ///
    /// # Errors
    ///
    /// Fails if an input is missing that an option requires, or given without its option.
    pub fn check_options(&self, variant: &Variant) -> Result<()> {
        check_options(variant)?;
        if variant.approach.name == COVER.name && self.lines.is_empty() {
            return Err(Error::usage("use the approach `cover`")
                .cause("it writes tests for lines, but no lines were given")
                .hint("use `testwright cover FILE::FUNCTION`"));
        }
        if variant.approach.name == CHECK.name && self.test_patch.is_none() {
            return Err(Error::usage("use the approach `check`")
                .cause("it tries fixes on a given test, but no test was given")
                .hint("use `testwright check ISSUE TEST --model NAME`"));
        }
        let options = variant.options();
        let parts = [
            (
                "a code patch",
                "--code-patch FILE",
                takes_patch(options),
                self.code_patch.is_some(),
                &GIVEN_PATCH,
            ),
            (
                "test files",
                "--test-file PATH",
                takes_tests(options),
                !self.test_files.is_empty(),
                &GIVEN_TESTS,
            ),
        ];
        for (what, flag, is_required, is_there, option) in parts {
            if is_required && !is_there {
                return Err(Error::usage(format!("give `{}` {what}", variant.name()))
                    .cause("the input is missing")
                    .hint(format!("add {flag}")));
            }
            if is_there && !is_required {
                let name = variant.approach.name;
                let has_option = |approach: &Approach| {
                    let mut options = approach.options.iter();
                    options.any(|own| own.name == option.name)
                };
                let is_wish = option.name == GIVEN_TESTS.name
                    && !has_option(variant.approach)
                    && variant.approach.model == ModelKind::Language;
                if is_wish {
                    continue;
                }
                let others = ALL.iter().filter(|approach| has_option(approach));
                let others: Vec<&str> = others.map(|approach| approach.name).collect();
                let error = Error::usage(format!("give `{}` {what}", variant.name()));
                return Err(match has_option(variant.approach) {
                    true => error
                        .cause(format!("its option `{}` is off", option.name))
                        .hint(format!("write --approach {name}:{}=on", option.name)),
                    false => error
                        .cause(format!("it has no option `{}`", option.name))
                        .hint(format!("these have it: {}", others.join(", "))),
                });
            }
        }
        Ok(())
    }

    /// Returns these inputs for a run that revises a test. What the user said before still holds.
    ///
    /// # Errors
    ///
    /// Fails if the words are not usable, or all hints together are too long.
    pub fn revising(self, earlier: EarlierTest, words: &str) -> Result<Self> {
        Ok(ExtraInputs {
            hint: Some(hint::join(self.hint.as_deref(), words)?),
            revises: Some(earlier),
            ..self
        })
    }

    /// Returns the issue with the user's wish for this approach. Rules do not read it, and the option
    /// `given-tests` has its own prompt for test files.
    pub fn add_wish(&self, mut issue: Issue, variant: &Variant) -> Issue {
        if variant.approach.model != ModelKind::Language {
            return issue;
        }
        issue.wish = Wish {
            hint: self.hint.clone(),
            test_files: match takes_tests(variant.options()) {
                true => Vec::new(),
                false => self.test_files.clone(),
            },
            earlier_test: self.revises.as_ref().map(|earlier| earlier.patch.clone()),
        };
        issue
    }

    /// Returns a note if the approach ignores the hint.
    pub fn ignored_hint(&self, variant: &Variant) -> Option<String> {
        let is_ignored = self.hint.is_some() && variant.approach.model != ModelKind::Language;
        is_ignored.then(|| {
            let name = variant.approach.name;
            format!("`{name}` has no language model, so the hint is ignored")
        })
    }

    /// Checks the inputs against the old code.
    ///
    /// # Errors
    ///
    /// Fails if the earlier test or the code patch does not apply, or a test file's path cannot be used. Also fails
    /// if the code patch changes no text file although `given-files` is on.
    pub fn check_source(&self, source: &Source, options: &Options) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let tree = source.tree()?;
        for path in &self.test_files {
            check_test_file(&tree, path)?;
        }
        if let Some(earlier) = &self.revises
            && let Err(why) = repository::apply(&tree, &Files::new(), &earlier.patch)?
        {
            return Err(Error::usage("revise the test on this code")
                .cause(why.trim().replace('\n', "; "))
                .hint("use the code of the earlier run"));
        }
        let Some(patch) = &self.code_patch else {
            return Ok(());
        };
        let refused = |cause: String| {
            Err(Error::usage("use the code patch").cause(cause).hint(
                "use a unified diff of the old code, as `git diff` prints it; --commit selects that code",
            ))
        };
        match changed_files(&tree, patch)? {
            Err(why) => refused(why.trim().replace('\n', "; ")),
            Ok(files) if files.is_empty() && options.is_on(&GIVEN_FILES) => refused(
                "it changes no text file of the old code, but `given-files` needs one".to_owned(),
            ),
            Ok(_) => Ok(()),
        }
    }

    /// Checks that the test files are test files by the repository's own configuration.
    ///
    /// # Errors
    ///
    /// Fails if a path is not a test file, or the repository cannot be read.
    pub fn check_test_paths(&self, source: &Source) -> Result<()> {
        if self.test_files.is_empty() {
            return Ok(());
        }
        let tree = source.tree()?;
        let paths: Vec<&str> = tree.paths().collect();
        let layout = Layout::from_tree(paths.into_iter(), &|path| tree.text(path).ok().flatten());
        let mut files = self.test_files.iter();
        match files.find(|path| !layout.is_test_path(path)) {
            Some(path) => Err(wrong_test_file(
                path,
                "it is not a test file of this repository",
            )),
            None => Ok(()),
        }
    }

    /// Returns notes for the user, one line each.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be read.
    pub fn notes(&self, source: &Source) -> Result<Vec<String>> {
        if self.test_files.is_empty() {
            return Ok(Vec::new());
        }
        let tree = source.tree()?;
        let new = self.test_files.iter().filter(|path| !tree.contains(path));
        let note = |path: &String| {
            let tests = tree.paths().filter(|other| other.ends_with(".py"));
            let nearest = tests.min_by_key(|other| strsim::damerau_levenshtein(path, other));
            let nearest = nearest.map_or_else(String::new, |n| format!(" (the nearest is {n})"));
            format!("the test file {path} is not in the old code, so it will be created{nearest}")
        };
        Ok(new.map(note).collect())
    }
}

/// Returns the text files of the old code that a patch changes, Python files first. The inner error says why
/// the patch does not apply.
///
/// # Errors
///
/// Fails if the repository cannot be read.
pub fn changed_files(
    tree: &Tree,
    patch: &str,
) -> std::result::Result<std::result::Result<Vec<String>, String>, SandboxError> {
    let applied = match repository::apply(tree, &Files::new(), patch)? {
        Ok(applied) => applied,
        Err(why) => return Ok(Err(why)),
    };
    let mut files = Vec::new();
    for path in applied.files.into_keys() {
        if tree.text(&path)?.is_some_and(|text| is_text(&text)) {
            files.push(path);
        }
    }
    files.sort_by_key(|path| !path.ends_with(".py"));
    Ok(Ok(files))
}

fn is_text(text: &str) -> bool {
    !text.contains('\0')
}

/// Reads a code patch from a file.
///
/// # Errors
///
/// Fails if the file cannot be read, is not text, or contains no diff.
pub fn read_patch(path: &Path) -> Result<String> {
    let wrong = |cause: String| {
        Error::usage(format!("read the code patch {}", path.display()))
            .cause(cause)
            .hint("pass --code-patch a file with a unified diff, as `git diff` prints it")
    };
    let bytes = plain_file::read_user_file(path, MAX_PATCH_BYTES)
        .map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(bytes).ok().filter(|text| is_text(text));
    let text = text.ok_or_else(|| wrong("it is not a text file".to_owned()))?;
    match contains_diff(&text) {
        true => Ok(text),
        false => Err(wrong("it contains no diff".to_owned())),
    }
}

/// Returns whether the text has the header of a file's diff.
pub fn contains_diff(text: &str) -> bool {
    let is_header = |line: &str| line.starts_with("diff --git ") || line.starts_with("+++ ");
    text.lines().any(is_header)
}

/// Normalizes the path of a test file, relative to the repository's root.
///
/// # Errors
///
/// Fails if the path is outside the repository, has control characters, or is not a Python file.
pub fn test_path(input_path: &str) -> Result<String> {
    let wrong = |cause: &str| Err(wrong_test_file(input_path, cause));
    let mut parts = Vec::new();
    for part in input_path.split('/') {
        match part {
            "" if parts.is_empty() => return wrong("it is outside the repository"),
            ".." => return wrong("it is outside the repository"),
            "." => {}
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    if path.chars().any(char::is_control) {
        return wrong("its name has control characters");
    }
    if !path.ends_with(".py") {
        return wrong("it is not a Python file");
    }
    Ok(path)
}

fn wrong_test_file(path: &str, cause: &str) -> Error {
    Error::usage(format!("use the test file {path}"))
        .cause(cause)
        .hint("give the path of a Python file from the repository's root, such as tests/test_x.py")
}

fn check_test_file(tree: &Tree, path: &str) -> Result<()> {
    let wrong = |cause: &str| Err(wrong_test_file(path, cause));
    let text = tree.text(path)?;
    if tree.has_folder(path) {
        return wrong("it is a folder");
    }
    if tree.contains(path) && !text.as_deref().is_some_and(is_text) {
        return wrong("it is not a text file");
    }
    let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
    if folders.into_iter().any(|folder| tree.contains(folder)) {
        return wrong("one of its folders is a file or a link");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
