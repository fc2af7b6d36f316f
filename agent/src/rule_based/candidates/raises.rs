//! Candidates for exceptions that the issue asks for.
//!
//! If a sentence names the code that should raise an exception, only statements with that code are tested for it.
//! Otherwise the last statement of a block is.

use std::collections::BTreeMap;

use testwright_sandboxes::Pattern;

use super::{Candidate, Evidence, Expects, Tested, builtin_or_exception};
use crate::rule_based::code_match;
use crate::rule_based::extract::expected_exceptions;
use crate::rule_based::probe::Statement;
use crate::rule_based::stated_output::Role;
use crate::rule_based::steps::Step;
use crate::rule_based::test_body::{self, ExpectedRaises};
use crate::rule_based::test_name::Behaviour;

/// Class for exceptions that the issue does not name.
const ANY: &str = "Exception";

/// Pairs the sentences that expect exceptions with the statements that they name.
pub(super) fn pair(evidence: &mut Evidence<'_>) {
    let mut exceptions = BTreeMap::new();
    for expected in expected_exceptions(&evidence.prose) {
        let exception = expected.exception.as_deref().unwrap_or(ANY);
        let mut paired: Vec<usize> = Vec::new();
        for code in &expected.code {
            paired.extend(with_code(evidence, code));
        }
        for function in &expected.functions {
            let (exact, called) = (
                with_code(evidence, function),
                last_call(evidence, function, exception),
            );
            // A name without parentheses may be that of a variable.
            evidence.names_raising_code |= function.contains('(');
            match function.contains('(') && !exact.is_empty() {
                true => paired.extend(exact),
                false => paired.extend(called),
            }
        }
        evidence.names_raising_code |= !expected.code.is_empty() || !paired.is_empty();
        for at in paired {
            exceptions.entry(at).or_insert_with(|| exception.to_owned());
            let sentence = evidence.sentences.entry(at);
            sentence.or_insert_with(|| expected.sentence.clone());
        }
    }
    for (at, statement) in evidence.probe.statements.iter().enumerate() {
        let step = step_of(evidence, at).filter(|_| statement.last && can_raise(statement));
        if let Some(exception) = step.and_then(|step| step.expected.as_ref()) {
            exceptions.entry(at).or_insert_with(|| exception.clone());
        }
    }
    evidence.expected = ExpectedRaises::new(exceptions, &evidence.probe.statements);
}

/// Returns the statements with a piece of code.
fn with_code(evidence: &Evidence<'_>, code: &str) -> Vec<usize> {
    let has_code = |at: &usize| {
        let (statement, step) = (&evidence.probe.statements[*at], step_of(evidence, *at));
        step.is_some_and(|step| match step.in_prose {
            true => step.source == code,
            false => !step.works && code_match::contains(&statement.source, code),
        })
    };
    let all = 0..evidence.probe.statements.len();
    all.filter(|at| can_raise(&evidence.probe.statements[*at]) && has_code(at))
        .collect()
}

/// Returns the last call of a function that does not raise the exception today.
fn last_call(evidence: &Evidence<'_>, function: &str, exception: &str) -> Option<usize> {
    evidence
        .probe
        .statements
        .iter()
        .enumerate()
        .rposition(|(at, statement)| {
            let is_shown = step_of(evidence, at).is_some_and(|step| !step.in_prose && !step.works);
            is_shown
                && can_raise(statement)
                && !raises_today(statement, exception)
                && code_match::calls(&statement.source, function)
        })
}

fn step_of<'a>(evidence: &Evidence<'a>, at: usize) -> Option<&'a Step> {
    evidence.steps.get(evidence.probe.statements.get(at)?.step)
}

/// Returns whether an exception in the code of the statement would leave the statement.
fn can_raise(statement: &Statement) -> bool {
    static OTHER: Pattern = Pattern::new(
        "^(?:Import|ImportFrom|FunctionDef|AsyncFunctionDef|ClassDef|Try|TryStar|With|AsyncWith|)$",
    );
    statement.syntax.is_none() && !OTHER.is_match(&statement.kind)
}

fn raises_today(statement: &Statement, exception: &str) -> bool {
    let name = exception.rsplit('.').next().unwrap_or(exception);
    statement.raised.as_ref().is_some_and(|raised| {
        name == ANY || raised.exception == name || raised.bases.iter().any(|base| base == name)
    })
}

/// Returns whether the name is that of an exception's class; the probe checks it after each step.
fn is_class(evidence: &Evidence<'_>, exception: &str) -> bool {
    let Some(n) = evidence.wanted.iter().position(|w| w == exception) else {
        // A comment named it.
        return exception == ANY || builtin_or_exception(exception) == exception;
    };
    evidence.probe.statements.iter().any(|statement| {
        let outputs = evidence
            .steps
            .get(statement.step)
            .map_or(0, |s| s.outputs.len());
        let check = statement.checks.get(outputs + n);
        check.is_some_and(|check| check.exception)
    })
}

/// Tests a statement for the exception that a sentence expects of its code.
pub(super) fn of_named_code(tested: Tested<'_>) -> Option<Candidate> {
    let (evidence, at) = (tested.evidence, tested.at);
    let (statement, step) = (tested.statement, tested.step);
    let exception = evidence.expected.exceptions.get(&at)?;
    if statement.blocked.is_some()
        || raises_today(statement, exception)
        || !is_class(evidence, exception)
    {
        return None;
    }
    let expects = match &statement.raised {
        None => Expects::Assertion,
        // Another exception may come from a sentence that is not exact code.
        Some(raised)
            if step.in_prose || raised.own || raised.outside || raised.frames.is_empty() =>
        {
            return None;
        }
        Some(_) if statement.in_repr => return None,
        Some(raised) => Expects::Raised(raised.exception.clone()),
    };
    let trust = match (exception.as_str(), step.in_prose) {
        (ANY, _) => 60,
        (_, true) => 84,
        (_, false) => 86,
    };
    let sentence = evidence.sentences.get(&at).cloned();
    Some(Candidate {
        expects,
        sentence: sentence.unwrap_or_else(|| evidence.issue.title.clone()),
        ..candidate(tested, trust, exception)
    })
}

/// Tests the last statement of a block for an exception, if the issue does not name the code that should raise it.
pub(super) fn of_last(tested: Tested<'_>) -> Option<Candidate> {
    let (evidence, statement, step) = (tested.evidence, tested.statement, tested.step);
    if evidence.names_raising_code
        || statement.raised.is_some()
        || !can_raise(statement)
        || step.works
        || step.outputs.iter().any(|s| s.role == Role::Right)
    {
        return None;
    }
    let is_exception = |n: usize| {
        let check = statement.checks.get(step.outputs.len() + n);
        check.is_some_and(|check| check.exception)
    };
    let mut names = evidence.wanted.iter().enumerate();
    let name = names.find(|(n, _)| is_exception(*n)).map(|(_, name)| name);
    let (trust, exception) = match name {
        Some(name) => (78, name.as_str()),
        None if should_fail(&evidence.prose) => (40, ANY),
        None => return None,
    };
    if !step.ends_block && !precedes_model(evidence, statement, exception) {
        return None;
    }
    Some(candidate(tested, trust, exception))
}

/// Returns whether the rest of the block only shows other code that raises the exception already.
fn precedes_model(evidence: &Evidence<'_>, statement: &Statement, exception: &str) -> bool {
    let Some(step) = evidence.steps.get(statement.step) else {
        return false;
    };
    let name = exception.rsplit('.').next();
    let rest = evidence.steps[statement.step + 1..].iter();
    let mut results = rest
        .take_while(|s| s.block == step.block)
        .filter(|s| s.raised.is_some() || !s.outputs.is_empty())
        .peekable();
    !step.outputs.is_empty()
        && results.peek().is_some()
        && results.all(|s| s.raised.as_ref().map(|raised| raised.name()) == name)
}

fn candidate(tested: Tested<'_>, trust: u32, exception: &str) -> Candidate {
    let mut body = tested.before(&test_body::words(exception));
    body.push_raising(tested.statement, exception);
    body.imports = test_body::merged(&body.imports);
    tested.candidate(trust, body, Behaviour::Raises(exception.to_owned()))
}

/// Returns whether the issue asks for a failure without the class of an exception.
pub(super) fn should_fail(prose: &str) -> bool {
    static FAILURE: Pattern =
        Pattern::new("(?i)should (?:fail|raise|throw|error|not be allowed)|must fail");
    FAILURE.is_match(prose)
}
