//! The localizer: first finds files, then functions, both of tests and of the faulty code.

use testwright_agent_prompts::{CodeFile, OtterFiles, OtterFunctions};

use super::repository::{FunctionName, Repository};
use crate::agent::{Flow, Run};
use crate::approaches::stages::ask;

/// Maximum files, and functions, to name.
const MAX_LOCATIONS: usize = 10;

/// The localized files and functions of an issue.
#[derive(Debug, Clone, Default)]
pub(super) struct Localized {
    pub test_files: Vec<String>,
    pub tests: Vec<FunctionName>,
    pub focal: Vec<FunctionName>,
}

pub(super) async fn localize(
    run: &mut Run,
    repository: &Repository,
    tests: bool,
    focal: bool,
) -> Flow<Localized> {
    let mut localized = Localized::default();
    if tests {
        (localized.test_files, localized.tests) = of_kind(run, repository, true).await?;
    }
    if focal {
        localized.focal = of_kind(run, repository, false).await?.1;
    }
    Ok(localized)
}

async fn of_kind(
    run: &mut Run,
    repository: &Repository,
    tests: bool,
) -> Flow<(Vec<String>, Vec<FunctionName>)> {
    let (candidates, kind) = match tests {
        true => (&repository.tests, "tests"),
        false => (&repository.sources, "focal code"),
    };
    if candidates.is_empty() {
        run.stage("localize", format!("{kind}: there are no such files"))?;
        return Ok(Default::default());
    }
    let question = OtterFiles {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
        tests,
        files: candidates.clone(),
        most: MAX_LOCATIONS,
    };
    let files = known_files(&ask(run, &question).await?, candidates);
    run.stage("localize", format!("{kind}: {}", files.join(", ")))?;
    if files.is_empty() {
        return Ok(Default::default());
    }
    let with_functions = |path: &String| {
        let names = repository.functions(path, tests).into_iter();
        let lines: Vec<String> = names.map(|name| format!("  {name}")).collect();
        CodeFile {
            path: path.clone(),
            text: lines.join("\n"),
        }
    };
    let question = OtterFunctions {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
        tests,
        files: files.iter().map(with_functions).collect(),
    };
    let reply = ask(run, &question).await?;
    let functions = known_functions(&reply, repository, &files, tests);
    let names: Vec<String> = functions.iter().map(FunctionName::to_string).collect();
    run.stage("localize", format!("{kind}: {}", names.join(", ")))?;
    Ok((files, functions))
}

/// Returns the name in a line, without list markers and quotes.
pub(super) fn strip_list_markers(line: &str) -> &str {
    let line = line.trim().trim_start_matches(['-', '*', '+', ' ']);
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let numbered = digits > 0 && line[digits..].starts_with(['.', ')']);
    let line = if numbered { &line[digits + 1..] } else { line };
    line.trim()
        .trim_matches(['`', '"', '\'', '*', ','])
        .trim_end_matches("()")
}

/// Returns the distinct files that exist.
fn known_files(reply: &str, candidates: &[String]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for line in reply.lines() {
        let name = strip_list_markers(line).trim_start_matches("./");
        if candidates.iter().any(|path| path == name) && !files.iter().any(|path| path == name) {
            files.push(name.to_owned());
        }
    }
    files.truncate(MAX_LOCATIONS);
    files
}

/// Returns the functions that exist. An unknown file is replaced by the one with the nearest name.
fn known_functions(
    reply: &str,
    repository: &Repository,
    files: &[String],
    tests: bool,
) -> Vec<FunctionName> {
    let mut names: Vec<FunctionName> = Vec::new();
    for line in reply.lines() {
        let Some((path, function)) = strip_list_markers(line).split_once("::") else {
            continue;
        };
        let distance = |file: &&String| strsim::levenshtein(file, path);
        let Some(path) = files.iter().min_by_key(distance) else {
            continue;
        };
        let function = function.replace("::", ".");
        let functions = repository.functions(path, tests);
        let is_it = |candidate: &&String| {
            **candidate == function || candidate.ends_with(&format!(".{function}"))
        };
        if let Some(function) = functions.iter().find(is_it) {
            let name = FunctionName {
                path: path.clone(),
                function: function.clone(),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.truncate(MAX_LOCATIONS);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_lists() {
        for (line, name) in [
            ("a/b.py", "a/b.py"),
            ("- `a/b.py`", "a/b.py"),
            ("10. a/b.py", "a/b.py"),
            ("2) **a/b.py**", "a/b.py"),
            ("a/b.py::f()", "a/b.py::f"),
        ] {
            assert_eq!(strip_list_markers(line), name, "{line}");
        }
        let candidates = ["a.py", "b.py"].map(str::to_owned);
        assert_eq!(
            known_files("b.py\nc.py\n- `a.py`\nb.py\n", &candidates),
            ["b.py", "a.py"]
        );
    }
}
