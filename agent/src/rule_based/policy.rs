//! The policy of the rule-based model: read the issue, run the code in it, and turn the result into a test.

use std::collections::BTreeMap;

use serde_json::json;

use super::candidates::{Candidate, Evidence, candidates};
use super::extract::{Issue, extract};
use super::policy_runner::{PolicyRunner, Turn};
use super::probe::{self, Probe};
use super::steps::{Step, steps};
use super::{functions, outcome, test_body, test_location};

/// Maximum number of candidates to try.
const TRIES: usize = 6;
/// Maximum number of names to search for in the repository.
const LOOKED_FOR: usize = 4;

/// Plays on from the conversation so far; always ends with a turn.
pub(super) fn play(
    runner: &mut PolicyRunner,
    text: &str,
) -> Result<std::convert::Infallible, Turn> {
    let issue = extract(text);
    let steps = steps(&issue);
    let written = functions::candidates(&issue);
    if steps.is_empty() && written.is_empty() {
        return Err(Turn::Final(
            "the issue contains no code that `snippet` can run".to_owned(),
        ));
    }
    let mut tried = Vec::new();
    let mut all = written;
    if !steps.is_empty() {
        let exceptions = super::extract::wanted_exceptions(&issue.prose());
        let probe = observe(runner, &steps, &exceptions)?;
        match &probe {
            Some(probe) => {
                let evidence = Evidence::new(&issue, &steps, probe);
                all.extend(candidates(&evidence));
                if all.is_empty() {
                    return Err(Turn::Final(nothing(probe)));
                }
            }
            None => tried.push("the issue's code could not be run".to_owned()),
        }
    }
    all.sort_by_key(|c| std::cmp::Reverse(c.trust));
    for candidate in all.iter().take(TRIES) {
        match attempt(runner, &issue, candidate)? {
            Ok(()) => {}
            Err(why) => tried.push(format!("a test that the code {}: {why}", candidate.claim)),
        }
    }
    Err(Turn::Final(format!(
        "I have nothing that shows what the issue shows. Tried: {}.",
        tried.join("; ")
    )))
}

/// Runs the steps, searches the repository for undefined names, and runs the steps again.
fn observe(
    runner: &mut PolicyRunner,
    steps: &[Step],
    exceptions: &[String],
) -> Result<Option<Probe>, Turn> {
    let mut imports = BTreeMap::new();
    let why = "What does the code of the issue do today?";
    let answer = runner.call(
        "run_python",
        json!({"code": probe::script(steps, exceptions, &imports), "timeout": 120}),
        why,
    )?;
    let Some(first) = probe::read(&answer) else {
        return Ok(None);
    };
    // Only names without which a statement did not run are missing.
    let missing: Vec<&String> = first
        .missing
        .iter()
        .filter(|name| {
            first.statements.iter().any(|s| {
                s.raised.as_ref().is_some_and(|r| {
                    r.exception == "NameError" && r.message.contains(&format!("'{name}'"))
                })
            })
        })
        .collect();
    for name in missing.into_iter().take(LOOKED_FOR) {
        let pattern = format!(r"^(?:class|def) {name}\b|^{name}\s*=");
        let answer = runner.call(
            "search",
            json!({"pattern": pattern, "glob": "*.py"}),
            &format!("Where is `{name}` defined?"),
        )?;
        if let Some(line) = import_of(name, &answer) {
            imports.insert(name.clone(), line);
        }
    }
    if imports.is_empty() {
        return Ok(Some(first));
    }
    let code = probe::script(steps, exceptions, &imports);
    let answer = runner.call(
        "run_python",
        json!({"code": code, "timeout": 120}),
        "Again, with what was found.",
    )?;
    Ok(probe::read(&answer).or(Some(first)))
}

/// Returns the import of a name from the first source file that defines it.
fn import_of(name: &str, answer: &str) -> Option<String> {
    let file = answer
        .lines()
        .filter(|l| !l.starts_with(' ') && l.ends_with(".py"))
        .find(|l| !l.contains("test") && !l.contains("doc") && !l.contains("example"))?;
    let module = file
        .trim_end_matches(".py")
        .trim_start_matches("src/")
        .trim_start_matches("lib/");
    let module = module.trim_end_matches("/__init__").replace('/', ".");
    Some(format!("from {module} import {name}"))
}

/// Writes a candidate, runs it, and submits it if it fails as it should. `Err` has the reason why not.
fn attempt(
    runner: &mut PolicyRunner,
    issue: &Issue,
    candidate: &Candidate,
) -> Result<Result<(), String>, Turn> {
    let names: Vec<String> = candidate
        .homes
        .iter()
        .rev()
        .map(|(name, _)| name.clone())
        .collect();
    let mut unique: Vec<String> = Vec::new();
    for name in names
        .into_iter()
        .chain(test_body::words(&candidate.body.imports.join(" ")))
    {
        if !unique.contains(&name) && !["from", "import", "as"].contains(&name.as_str()) {
            unique.push(name);
        }
    }
    let path = match test_location::test_file(runner, &candidate.homes, &unique)? {
        Some(path) => path,
        None => "tests/test_issue.py".to_owned(),
    };
    let name = test_name(&issue.title);
    let why = format!("Write a test that passes if the code {}.", candidate.claim);
    let mut written = runner.call(
        "insert_function",
        insertion(candidate, &path, &name, false),
        &why,
    )?;
    if outcome::refused(&written) {
        // An import may clash with a name in the file.
        written = runner.call(
            "insert_function",
            insertion(candidate, &path, &name, true),
            &why,
        )?;
    }
    if outcome::refused(&written) {
        return Ok(Err(format!(
            "it could not be written ({})",
            outcome::first_line(&written)
        )));
    }
    let report = runner.call("run_pytest", json!({}), "Does it fail as the issue shows?")?;
    let why_not = match outcome::check_failure(&report, &candidate.expects) {
        Ok(()) => {
            let answer = runner.call(
                "submit",
                json!({"reason": candidate.sentence}),
                "It fails as reported.",
            )?;
            format!("it was not accepted ({})", outcome::findings(&answer))
        }
        Err(why) => why,
    };
    runner.call("revert", json!({}), "Not that.")?;
    Ok(Err(why_not))
}

/// Returns the arguments of `insert_function`, with imports at the top of the file or within the function.
fn insertion(candidate: &Candidate, path: &str, name: &str, inside: bool) -> serde_json::Value {
    let mut code = String::new();
    if let Some(function) = &candidate.function {
        code.push_str(function);
        code.push('\n');
    } else {
        code.push_str(&format!("def {name}({}):\n", candidate.fixtures));
        let imports = candidate.body.imports.iter().filter(|_| inside);
        for line in imports.chain(&candidate.body.lines) {
            let indent = if line.is_empty() { "" } else { "    " };
            code.push_str(&format!("{indent}{line}\n"));
        }
    }
    let imports: &[String] = if inside && candidate.function.is_none() {
        &[]
    } else {
        &candidate.body.imports
    };
    json!({"path": path, "code": code, "imports": imports})
}

/// Returns `test_` and the words of the title.
fn test_name(title: &str) -> String {
    let title = title.replace('\'', "");
    let words: Vec<String> = title
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .filter(|w| {
            !["the", "a", "an", "of", "to", "in", "is", "bug", "issue"].contains(&w.as_str())
        })
        .take(7)
        .collect();
    format!("test_{}_as_reported", words.join("_")).replace("__", "_")
}

/// Explains why code that did run led to no test.
fn nothing(probe: &Probe) -> String {
    let ran = probe
        .statements
        .iter()
        .filter(|s| s.syntax.is_none() && s.raised.is_none())
        .count();
    let raised: Vec<String> = probe
        .statements
        .iter()
        .filter_map(|s| s.raised.as_ref())
        .take(3)
        .map(|r| format!("{}: {}", r.exception, r.message))
        .collect();
    let mut words = format!(
        "I have nothing: of the issue's code {ran} of {} statements ran",
        probe.statements.len()
    );
    if !raised.is_empty() {
        words.push_str(&format!(" ({} came up)", raised.join("; ")));
    }
    if !probe.missing.is_empty() {
        words.push_str(&format!(
            ", {} could not be found",
            probe.missing.join(", ")
        ));
    }
    words.push_str(", and nothing that it did is what the issue complains about.");
    words
}
