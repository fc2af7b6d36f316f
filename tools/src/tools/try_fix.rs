//! `try_fix`: changes the code under test and runs tests on the changed code.
//!
//! The host calls it in a copy of the sandbox that is thrown away. The files of the fix are put back only where tests
//! are to be run without it; how the copy is left does not matter.

mod sibling_tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contribution;
use super::replacement::replace_text;
use super::run_pytest::deadline;
use crate::outcomes;
use crate::outcomes::report::Report;
use crate::python::{Module, flatten};
use crate::runners;
use crate::tool::{Answer, Context, Effect, Route, Tool, ToolError};
use crate::workspace::{Workspace, forward};
use sibling_tests::{Scope, SiblingTests};

pub struct TryFix;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The fix.
    edits: Vec<Edit>,
    /// Tests to run with it: node ids, files or folders. Default: the tests that you added or changed. The other
    /// tests of the same files are run after them.
    #[serde(default)]
    #[schemars(extend("unlisted" = true))]
    tests: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file.
    path: String,
    /// Text that occurs once; or give `function`.
    #[serde(default)]
    old: Option<String>,
    /// The line at which `old` begins, where it occurs more than once.
    #[serde(default)]
    #[schemars(extend("unlisted" = true))]
    line: Option<usize>,
    /// The function or class to replace; decorators stay unless `new` has some.
    #[serde(default)]
    function: Option<String>,
    /// The text or code instead.
    new: String,
}

/// For programs.
#[derive(Debug, Serialize)]
struct Trial<'a> {
    /// The fix as a patch.
    patch: String,
    /// The tests that were asked for.
    report: &'a Report,
    /// The other tests of the same files.
    neighbours: &'a SiblingTests,
}

impl Tool for TryFix {
    type Args = Args;
    const NAME: &'static str = "try_fix";
    const DESCRIPTION: &'static str = "Apply a fix of the issue to a copy of the repository, and run the tests and their neighbours there.";
    const EFFECT: Effect = Effect::Reads;
    const ROUTE: Route = Route::Fork;
    const SECONDS: u64 = 300;
    const RUNS_CODE: bool = true;

    fn call(&self, context: &mut Context<'_>, args: Args) -> Result<Answer, ToolError> {
        if args.edits.is_empty() {
            return Err(ToolError::refused(
                "`edits` is empty: give at least one change to the source.",
            ));
        }
        let asked = contribution::named_or_contributed(context.workspace, &args.tests)?;
        let scope = Scope::new(&asked, !args.tests.is_empty());
        // All of them are checked before the first is made.
        let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
        for edit in &args.edits {
            apply(context.workspace, edit, &mut files)?;
        }
        let before = context.workspace.changes()?;
        let mut fix = Vec::new();
        let mut without: BTreeMap<PathBuf, Option<String>> = BTreeMap::new();
        for (path, after) in &files {
            let shown = forward(path);
            let was = context.workspace.read_text(path).ok();
            check(&shown, was.as_deref().unwrap_or_default(), after)?;
            context.workspace.write_text(path, after)?;
            without.insert(path.clone(), was);
            fix.push(shown);
        }
        // Only what the fix changes; what was changed in the same file before shows too.
        let changes = context.workspace.changes()?;
        let of_fix: Vec<_> = changes
            .into_iter()
            .filter(|c| fix.contains(&c.path))
            .collect();
        let patch = context.workspace.patch(&of_fix);
        let options = scope.options(deadline(context, None));
        let report = runners::run(context.workspace.checkout(), &scope.run, &options)?;
        let (report, mut siblings) = scope.split(report);
        siblings.compare(context, &without)?;
        let mut shown = scope.verdict(&report);
        shown.push_str(&siblings.summary());
        if before.iter().any(|change| fix.contains(&change.path)) {
            shown.push_str(
                "\n(A file of the fix had been changed before; that change was there too.)",
            );
        }
        shown.push_str("\n\nWith the fix: ");
        shown.push_str(&outcomes::text::without_passed(&report));
        shown.push_str(&siblings.details());
        Answer::with_data(
            shown,
            &Trial {
                patch,
                report: &report,
                neighbours: &siblings,
            },
        )
    }
}

fn apply(
    workspace: &Workspace,
    edit: &Edit,
    files: &mut BTreeMap<PathBuf, String>,
) -> Result<(), ToolError> {
    let path = workspace.resolve(&edit.path)?;
    let shown = forward(&path);
    if workspace.layout().is_test_path(&shown) && !shown.contains("/testing/") {
        return Err(ToolError::Refused(format!(
            "`{shown}` is test code. A fix changes the code under test; change tests with the editing tools."
        )));
    }
    let is_new = !workspace.root().join(&path).exists();
    let now = match files.get(&path) {
        Some(text) => text.clone(),
        None if is_new => String::new(),
        None => workspace.read_text(&path)?,
    };
    let after = match (&edit.old, &edit.function) {
        (Some(old), None) if !old.is_empty() => {
            replace_text(&shown, &now, old, &edit.new, edit.line)?
        }
        (None, Some(name)) => replace_definition(&shown, &now, name, &edit.new)?,
        (None | Some(_), None) if is_new => edit.new.clone(),
        (Some(_), Some(_)) => {
            return Err(ToolError::refused(
                "Give either `old` or `function` in an edit, not both.",
            ));
        }
        _ => {
            return Err(ToolError::Refused(format!(
                "Say what to replace in `{shown}`: `old` (text that occurs once) or `function` (its name)."
            )));
        }
    };
    files.insert(path, after);
    Ok(())
}

fn replace_definition(path: &str, now: &str, name: &str, new: &str) -> Result<String, ToolError> {
    let module = Module::parse(now);
    let found = module.find(name);
    let definition = match found.as_slice() {
        [one] => one,
        [] => {
            let outline = module.outline();
            let mut names: Vec<&str> = flatten(&outline)
                .into_iter()
                .map(|d| d.qualified.as_str())
                .collect();
            names.sort_by(|a, b| {
                let near = |n: &str| strsim::jaro_winkler(name, n);
                near(b).total_cmp(&near(a))
            });
            names.truncate(3);
            return Err(ToolError::Refused(format!(
                "There is no `{name}` in `{path}`. The nearest are: {}.",
                names.join(", ")
            )));
        }
        many => {
            let lines: Vec<String> = many.iter().map(|d| d.line.to_string()).collect();
            return Err(ToolError::Refused(format!(
                "`{name}` is defined {} times in `{path}` (lines {}). Use `old` instead.",
                many.len(),
                lines.join(", ")
            )));
        }
    };
    let lines: Vec<&str> = now.split_inclusive('\n').collect();
    // Decorators stay unless the new code brings its own.
    let keeps_decorators = !new.trim_start().starts_with('@');
    let first = if keeps_decorators {
        definition.line
    } else {
        definition.first
    };
    let mut out: String = lines[..first - 1].concat();
    out.push_str(&indented(new, definition.indent));
    out.push_str(&lines[definition.last.min(lines.len())..].concat());
    Ok(out)
}

/// Code with its common indentation replaced by `indent` spaces.
fn indented(code: &str, indent: usize) -> String {
    let code = code.trim_matches('\n').trim_end();
    let margin = code
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    code.lines().fold(String::new(), |mut out, line| {
        let rest = line.get(margin..).unwrap_or_default();
        if !rest.trim().is_empty() {
            out.push_str(&" ".repeat(indent));
            out.push_str(rest);
        }
        out.push('\n');
        out
    })
}

fn check(path: &str, was: &str, after: &str) -> Result<(), ToolError> {
    if !path.ends_with(".py") {
        return Ok(());
    }
    let errors = Module::parse(after).new_errors(Some(&Module::parse(was)));
    match errors.first() {
        None => Ok(()),
        Some(error) => Err(ToolError::Refused(format!(
            "With this edit `{path}` does not parse: line {}: {}. Nothing was changed.",
            error.line, error.what
        ))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const CODE: &str = "class A:\n    @property\n    def f(self):\n        return 1\n\n    def g(self):\n        return 1\n";

    fn refusal(result: Result<String, ToolError>) -> String {
        match result.unwrap_err() {
            ToolError::Refused(text) => text,
            ToolError::Broken(text) => panic!("{text}"),
        }
    }

    #[test]
    fn a_function_is_replaced_whole_and_keeps_its_decorators() {
        let after = replace_definition(
            "a.py",
            CODE,
            "A.f",
            "def f(self):\n    # new\n    return 2\n",
        )
        .unwrap();
        assert_eq!(
            after,
            CODE.replacen("        return 1", "        # new\n        return 2", 1)
        );
        let own = replace_definition(
            "a.py",
            CODE,
            "A.f",
            "    @cached\n    def f(self): return 3",
        )
        .unwrap();
        assert!(
            own.starts_with("class A:\n    @cached\n    def f(self): return 3\n\n    def g"),
            "{own}"
        );
        assert!(refusal(replace_definition("a.py", CODE, "A.ff", "")).contains("nearest are: A.f"));
    }

    #[test]
    fn a_fix_that_does_not_parse_is_refused() {
        assert!(check("a.py", CODE, "def f(:\n").is_err());
        assert!(check("a.txt", "", "def f(:\n").is_ok());
    }
}
