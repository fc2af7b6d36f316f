//! The policy of the rule-based model: read the issue, run the code in it, and turn the result into a test.

use std::collections::BTreeMap;

use serde_json::json;

use super::candidates::{Candidate, Evidence, candidates, is_today};
use super::extract::extract;
use super::outcome::Conflict;
use super::policy_runner::{PolicyRunner, Turn};
use super::probe::{self, Probe};
use super::stated_output::Role;
use super::steps::{Step, steps};
use super::test_body::words;
use super::test_location::{self, Location};
use super::test_name::test_name;
use super::test_style::TestStyle;
use super::{functions, outcome, test_code};

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
    let mut columns = None;
    if !steps.is_empty() {
        let exceptions = super::extract::wanted_exceptions(&issue.prose());
        let probe = observe(runner, &steps, &exceptions)?;
        match &probe {
            Some(probe) => {
                columns = probe.columns;
                let evidence = Evidence::new(&issue, &steps, probe);
                all.extend(candidates(&evidence));
                if all.is_empty() {
                    return Err(Turn::Final(nothing(&steps, probe)));
                }
            }
            None => tried.push("the issue's code could not be run".to_owned()),
        }
    }
    all.sort_by_key(|c| std::cmp::Reverse(c.trust));
    for candidate in all.iter().take(TRIES) {
        let why_not = attempt(runner, candidate, &issue.title, columns)?;
        tried.push(format!(
            "a test that the code {}: {why_not}",
            candidate.behaviour
        ));
    }
    Err(Turn::Final(format!(
        "I have nothing that shows what the issue shows. Tried: {}.",
        tried.join("; ").trim_end_matches('.')
    )))
}

/// Runs the steps, searches the repository for undefined names, and runs the steps again.
fn observe(
    runner: &mut PolicyRunner,
    steps: &[Step],
    exceptions: &[String],
) -> Result<Option<Probe>, Turn> {
    let mut imports = BTreeMap::new();
    let run = |runner: &mut PolicyRunner, imports: &_, why: &str| -> Result<Option<Probe>, Turn> {
        let code = probe::script(steps, exceptions, imports);
        let answer = runner.call("run_python", json!({"code": code, "timeout": 120}), why)?;
        Ok(probe::read(&answer))
    };
    let why = "What does the code of the issue do today?";
    let Some(first) = run(runner, &imports, why)? else {
        return Ok(None);
    };
    for name in missing(&first).into_iter().take(LOOKED_FOR) {
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
    let second = run(runner, &imports, "Again, with what was found.")?;
    Ok(second.or(Some(first)))
}

/// Returns the undefined names without which a statement did not run.
fn missing(probe: &Probe) -> Vec<&String> {
    let raised = || probe.statements.iter().filter_map(|s| s.raised.as_ref());
    let stops = |name: &&String| {
        raised().any(|r| r.exception == "NameError" && r.message.contains(&format!("'{name}'")))
    };
    probe.missing.iter().filter(stops).collect()
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

/// Writes a candidate, runs it, and submits it if it fails as it should. Returns the reason why it was not accepted.
fn attempt(
    runner: &mut PolicyRunner,
    candidate: &Candidate,
    title: &str,
    columns: Option<usize>,
) -> Result<String, Turn> {
    let place = test_location::locate(runner, candidate)?.unwrap_or_else(|| Location {
        path: "tests/test_issue.py".to_owned(),
        ..Location::default()
    });
    let wanted = test_name(&candidate.subject, &candidate.behaviour, title);
    let why_not = attempt_at(runner, candidate, &wanted, &place, columns)?;
    if place.class.is_none() || !outcome::never_started(&why_not) {
        return Ok(why_not);
    }
    // A class may need arguments, or run only in subclasses.
    let outside = Location {
        class: None,
        ..place
    };
    attempt_at(runner, candidate, &wanted, &outside, columns)
}

fn attempt_at(
    runner: &mut PolicyRunner,
    candidate: &Candidate,
    wanted: &str,
    place: &Location,
    columns: Option<usize>,
) -> Result<String, Turn> {
    let style = TestStyle::read(&place.text, place.class.as_deref(), columns);
    let mut name = wanted.to_owned();
    // Names whose imports would clash with the file.
    let mut inside: Vec<String> = Vec::new();
    let mut written = String::new();
    for number in 2..2 + TRIES {
        let test = test_code::write(candidate, &name, &style, &inside);
        let mut arguments = json!({"path": place.path, "code": test.code, "imports": test.imports});
        if let Some(class) = &place.class {
            arguments["class"] = json!(class);
        } else if let Some(after) = &place.after {
            arguments["after"] = json!(after);
        }
        let why = format!(
            "Write a test that passes if the code {}.",
            candidate.behaviour
        );
        written = runner.call("insert_function", arguments, &why)?;
        match outcome::conflict(&written) {
            _ if candidate.function.is_some() => break,
            Some(Conflict::Test) => name = format!("{wanted}_{number}"),
            Some(Conflict::Import(import)) if !inside.contains(&import) => inside.push(import),
            None if outcome::refused(&written) && inside.is_empty() => {
                inside = words(&test.imports.join(" "));
            }
            _ => break,
        }
    }
    if outcome::refused(&written) {
        let why = outcome::first_line(&written);
        return Ok(format!("it could not be written ({why})"));
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
    Ok(why_not)
}

/// Explains why code that did run led to no test.
pub(super) fn nothing(steps: &[Step], probe: &Probe) -> String {
    let ran = probe
        .statements
        .iter()
        .filter(|s| s.syntax.is_none() && s.raised.is_none() && s.blocked.is_none())
        .count();
    let raised = probe.statements.iter().filter_map(|s| s.raised.as_ref());
    let raised: Vec<String> = raised
        .take(3)
        .map(|r| match r.message.trim_end_matches('.') {
            "" => r.exception.clone(),
            message => format!("{}: {message}", r.exception),
        })
        .collect();
    let expects = |step: &Step| step.outputs.iter().any(|output| output.role == Role::Right);
    let checks = probe.statements.iter().flat_map(|statement| {
        let outputs = steps
            .get(statement.step)
            .map_or(&[][..], |s| s.outputs.as_slice());
        outputs.iter().zip(&statement.checks)
    });
    let mut checks = checks
        .filter(|(output, _)| output.role == Role::Right)
        .peekable();
    let is_fixed = checks.peek().is_some() && checks.all(|(_, check)| is_today(check));
    let verdict = match is_fixed {
        true => "already gives the expected result",
        false => "does not show the reported fault",
    };
    let total = probe.statements.len();
    let mut words = format!("the issue's code {verdict}: {ran} of {total} statements ran");
    let missing: Vec<String> = missing(probe).into_iter().cloned().collect();
    for (label, items) in [("raised", &raised), ("not found", &missing)] {
        if !items.is_empty() {
            words.push_str(&format!("; {label}: {}", items.join(", ")));
        }
    }
    words.push_str(match steps.iter().any(expects) {
        false => ". Add the actual and the expected result next to the code.",
        true if raised.is_empty() => ".",
        true => ". Complete the code, so that it runs in this repository.",
    });
    words
}
