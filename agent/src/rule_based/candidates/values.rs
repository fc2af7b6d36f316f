//! Candidates about the value of an expression.

mod layout;
mod printed;

use super::{Candidate, Expects, Tested};
use crate::rule_based::extract::{has_long_string, reports_a_fault};
use crate::rule_based::probe::{Check, Statement};
use crate::rule_based::stated_output::{Role, StatedOutput};
use crate::rule_based::test_body;
use crate::rule_based::test_name::Behaviour;
use layout::Layout;

pub(super) fn candidates(tested: Tested<'_>) -> Vec<Candidate> {
    let mut all = of_expression(tested);
    all.extend(printed::candidate(tested));
    all
}

/// Returns the candidates about the value that the statement gives or prints.
fn of_expression(tested: Tested<'_>) -> Vec<Candidate> {
    let (evidence, statement, step) = (tested.evidence, tested.statement, tested.step);
    let Some(expression) = expression(statement) else {
        return Vec::new();
    };
    let stated: Vec<(&StatedOutput, &Check)> = step.outputs.iter().zip(&statement.checks).collect();
    let cause = evidence.cause(statement);
    // Form in which the issue shows the value, if it shows today's.
    let today = stated.iter().find(|(_, c)| is_today(c)).copied();
    let today_check = today.map(|(_, c)| c);
    // The issue may be about another call if it shows another value than today's.
    let is_output = |s: &StatedOutput| step.prompt || !s.sentence.is_empty();
    let is_actual =
        |s: &StatedOutput| s.role == Role::Wrong || s.role == Role::Shown && is_output(s);
    let mut actual = stated.iter().filter(|(s, _)| is_actual(s)).peekable();
    // A sentence may be about a part of the output.
    let is_confirmed = |(s, c): &(&StatedOutput, &Check)| {
        is_today(c) || c.part && !s.sentence.is_empty() && statement.kind_of_value == "str"
    };
    if cause.raised.is_none() && actual.peek().is_some() && !actual.any(is_confirmed) {
        return Vec::new();
    }
    let differs_from_today = |role: &[Role]| {
        stated
            .iter()
            .any(|(s, c)| role.contains(&s.role) && !is_today(c))
    };
    let contradicted = differs_from_today(&[Role::Fine, Role::Shown]);
    let is_change_expected = differs_from_today(&[Role::Right]);
    let is_of_block = |s: &StatedOutput| s.sentence.is_empty() && step.is_of_code();
    let steps_of_block = evidence.steps.iter().filter(|other| {
        other.block == step.block && other.is_of_code() && other.outputs.iter().any(is_of_block)
    });
    let is_line = steps_of_block.count() > 1;
    let mut all = Vec::new();
    for &(stated, check) in &stated {
        let comparison = Comparison {
            expression: &expression,
            stated,
            check,
            statement,
        };
        let proposal = match stated.role {
            _ if failed_outside_repository(cause) => None,
            // This says more than that the exception is gone.
            _ if cause.raised.is_some() => {
                (stated.role == Role::Right).then(|| (95, equals_anew(comparison)))
            }
            Role::Right if !is_today(check) => {
                let today_text = today.map(|(s, _)| s.text.as_str());
                let is_exact = !is_hand_written(&stated.text, today_text);
                let trust = if is_exact { 84 } else { 56 };
                Some((trust, equals(comparison, today_check)))
            }
            Role::Part if !check.part => Some((82, contains(comparison))),
            // The issue shows it as the result of another version, for example, and today's result differs.
            Role::Fine | Role::Shown
                if today.is_some_and(|(s, _)| s.role == Role::Wrong) && !is_today(check) =>
            {
                Some((76, equals(comparison, today_check)))
            }
            _ if evidence.raises_elsewhere(step) => None,
            // Not every line of an output may be wrong.
            Role::Wrong if is_line && is_of_block(stated) && !is_change_expected => None,
            Role::Wrong if is_today(check) => {
                let trust = if step.vague { 58 } else { 66 };
                Some((trust, differs(comparison)))
            }
            Role::Shown if is_today(check) && is_change_expected => Some((60, differs(comparison))),
            Role::Shown
                if is_today(check)
                    && step.ends_block
                    && !contradicted
                    && reports_a_fault(&evidence.issue.title, &evidence.prose) =>
            {
                Some((44, differs(comparison)))
            }
            _ => None,
        };
        let not_as_it_is = || {
            let other = stated.role == Role::Right
                && cause.raised.is_none()
                && !is_today(check)
                && today.is_none();
            other.then(|| (50, is_not(&expression, statement)))
        };
        let proposal = proposal
            .filter(|(_, parts)| parts.is_some())
            .or_else(not_as_it_is);
        if let Some((trust, Some(parts))) = proposal {
            all.push(candidate(tested, stated, trust, parts));
        }
    }
    all
}

/// Returns the candidate with these assertions, run after the statements before them.
fn candidate(
    tested: Tested<'_>,
    stated: &StatedOutput,
    trust: u32,
    (lines, imports, behaviour): AssertionParts,
) -> Candidate {
    let evidence = tested.evidence;
    let more: Vec<String> = lines.iter().flat_map(|line| names_in(line)).collect();
    let mut body = tested.before(&more);
    body.lines.extend(lines);
    body.imports.extend(imports);
    body.imports = test_body::merged(&body.imports);
    let prose = if tested.step.in_prose { 2 } else { 0 };
    let cause = evidence.cause(tested.statement);
    let mut candidate = Candidate::new(evidence, cause, trust - prose, body, behaviour);
    if let Some(raised) = cause.raised.as_ref().filter(|raised| !raised.own) {
        candidate.expects = Expects::Raised(raised.exception.clone());
    }
    if !stated.sentence.is_empty() {
        candidate.sentence.clone_from(&stated.sentence);
    }
    candidate
}

/// Returns whether the statement gives no value for reasons outside of the code.
fn failed_outside_repository(statement: &Statement) -> bool {
    statement.raised.as_ref().is_some_and(|r| r.outside)
}

/// An expression of a statement, compared with a value that the issue states for it.
#[derive(Clone, Copy)]
struct Comparison<'a> {
    expression: &'a str,
    stated: &'a StatedOutput,
    check: &'a Check,
    statement: &'a Statement,
}

/// Lines, imports and the behaviour that they check.
type AssertionParts = (Vec<String>, Vec<String>, Behaviour);

pub(in crate::rule_based) fn is_today(check: &Check) -> bool {
    check.same.is_some() || check.equal == Some(true)
}

/// Returns whether the right text is formatted by hand, unlike the program's output. Then its meaning counts,
/// not its exact form.
fn is_hand_written(right: &str, today_text: Option<&str>) -> bool {
    let tight = right.contains(',') && !right.contains(", ");
    tight && today_text.is_some_and(|s| s.contains(", "))
}

/// Returns the expression whose value counts, on one line if possible.
pub(super) fn expression(statement: &Statement) -> Option<String> {
    match statement.kind.as_str() {
        "Print" => statement.shown.clone(),
        "Expr" => Some(statement.source.trim().trim_end_matches(';').to_owned()),
        _ => None,
    }
}

/// Tests for a value in place of today's exception.
fn equals_anew(comparison: Comparison<'_>) -> Option<AssertionParts> {
    if !comparison.check.evaluates {
        return None;
    }
    let right = comparison.stated.text.trim();
    let (mut lines, value) = bound(comparison.expression);
    lines.push(match right {
        "True" => format!("assert {value}"),
        "False" => format!("assert not {value}"),
        "None" => format!("assert {value} is None"),
        _ => format!("assert {value} == {right}"),
    });
    Some((lines, Vec::new(), Behaviour::Gives(right.to_owned())))
}

fn equals(comparison: Comparison<'_>, today: Option<&Check>) -> Option<AssertionParts> {
    let (expression, stated) = (comparison.expression, comparison.stated);
    let (check, statement) = (comparison.check, comparison.statement);
    let joined = on_one_line(&stated.text, check);
    let right = joined.as_str();
    let (mut lines, value) = bound(expression);
    let mut imports = Vec::new();
    let behaviour = Behaviour::Gives(right.to_owned());
    // A much shorter text represents only a part of the value.
    let a_part = |text: &str| {
        let today = statement.value.as_deref().unwrap_or("");
        blankless(text).len() * 10 < blankless(today).len() * 6
    };
    let text_for_text = statement.kind_of_value == "str" && check.kind == "str";
    let is_full_value = text_for_text
        || stated.sentence.is_empty()
        || (check.evaluates && ["bool", "NoneType"].contains(&check.kind.as_str()));
    if statement.kind_of_value == "str" && !is_full_value && a_part(right) {
        // A call or a name is rather code than a part of a text.
        let is_code = right.contains('(') || plain(right);
        return match check.part || is_code {
            true => None,
            false => contains(comparison),
        };
    }
    // A printed text or a `repr()` looks like another type, but stays a text.
    let is_text = statement.kind == "Print" || expression.starts_with("repr(");
    let is_printed_text = is_text && statement.kind_of_value == "str" && check.kind != "str";
    if check.evaluates && check.equal == Some(false) && !is_printed_text {
        let shows_today = today.is_some_and(|c| c.exact || c.equal == Some(true));
        let is_exact = shows_today && !is_hand_written(right, statement.value.as_deref());
        let singleton = ["bool", "NoneType"].contains(&statement.kind_of_value.as_str());
        lines.push(match right {
            "True" | "False" | "None" if singleton => format!("assert {value} is {right}"),
            "True" => format!("assert {value}"),
            "False" => format!("assert not {value}"),
            _ if statement.kind_of_value == "ndarray" => {
                imports.push("import numpy".to_owned());
                format!("assert numpy.array_equal({value}, {right})")
            }
            // White space is not significant in a formula typed by hand.
            _ if check.kind == "str"
                && statement.kind_of_value == "str"
                && !is_exact
                && right.contains([',', '(', '[', '=', '+', '\\']) =>
            {
                format!("assert {value}.replace(' ', '') == {right}.replace(' ', '')")
            }
            _ => format!("assert {value} == {right}"),
        });
        return Some((lines, imports, behaviour));
    }
    if check.evaluates && !is_printed_text {
        return None;
    }
    let is_repr = resembles(right, statement.value.as_deref().unwrap_or_default());
    let layout = Layout::trusted(today, check)?;
    let text = match today.and_then(|c| c.same.as_deref()) {
        _ if statement.kind_of_value == "str" => value,
        _ if is_repr => format!("repr({value})"),
        // A sentence that is not Python hardly gives the exact output.
        _ if !stated.sentence.is_empty() => return None,
        Some("repr") if statement.kind == "Print" => format!("str({value})"),
        Some(form @ ("repr" | "str")) => format!("{form}({value})"),
        _ => return None,
    };
    // Without such an actual text, an indentation may be only that of the block.
    let expected = match today.is_some_and(|c| c.exact) {
        true => stated.text.as_str(),
        false => stated.text.trim(),
    };
    lines.extend(layout.equality(&text, expected, &mut imports));
    Some((lines, imports, behaviour))
}

/// Tests that a text contains the stated one.
fn contains(comparison: Comparison<'_>) -> Option<AssertionParts> {
    let (expression, stated) = (comparison.expression, comparison.stated);
    let (check, statement) = (comparison.check, comparison.statement);
    let part = stated.text.trim();
    let literal = match check.evaluates && check.kind == "str" {
        true => part.to_owned(),
        false => quoted(part),
    };
    let (mut lines, value) = bound(expression);
    let text = match statement.kind.as_str() {
        _ if statement.kind_of_value == "str" => value,
        "Print" => format!("str({value})"),
        _ => return None,
    };
    lines.push(format!("assert {literal} in {text}"));
    Some((lines, Vec::new(), Behaviour::Contains(part.to_owned())))
}

/// Returns the words of a line that may be names; those of an expected text are not.
fn names_in(line: &str) -> Vec<String> {
    let code = match line.strip_prefix("assert ") {
        Some(rest) if rest.starts_with("shown ") => "",
        Some(rest) if rest.starts_with(['\'', '"']) => {
            rest.rsplit_once(" in ").map_or(rest, |(_, text)| text)
        }
        _ => line.split(" == '").next().unwrap_or(line),
    };
    test_body::words(code)
}

/// Returns whether a text has the form of today's `repr()`, as `Grid(1, 2)` and `Grid(3)` have.
fn resembles(right: &str, today: &str) -> bool {
    let head = |text: &str| text.split(['(', ' ', '{']).next().map(str::to_owned);
    let is_form = right.ends_with([')', '>']) && !right.contains('\n');
    is_form && !right.contains(" at 0x") && head(right) == head(today)
}

fn differs(comparison: Comparison<'_>) -> Option<AssertionParts> {
    let (expression, stated) = (comparison.expression, comparison.stated);
    let (check, statement) = (comparison.check, comparison.statement);
    let joined = on_one_line(&stated.text, check);
    let wrong = joined.as_str();
    let (mut lines, value) = bound(expression);
    let mut imports = Vec::new();
    let behaviour = Behaviour::DoesNotGive(wrong.to_owned());
    if check.evaluates && check.equal == Some(true) {
        let singleton = ["bool", "NoneType"].contains(&statement.kind_of_value.as_str());
        lines.push(match wrong {
            "True" | "False" | "None" if singleton => format!("assert {value} is not {wrong}"),
            _ if statement.kind_of_value == "ndarray" => {
                imports.push("import numpy".to_owned());
                format!("assert not numpy.array_equal({value}, {wrong})")
            }
            _ => format!("assert {value} != {wrong}"),
        });
        return Some((lines, imports, behaviour));
    }
    let text = match check.same.as_deref()? {
        "repr" if statement.kind == "Print" => format!("str({value})"),
        "pretty" => {
            imports.push("from sympy import pretty".to_owned());
            let unicode = if wrong.is_ascii() { "False" } else { "True" };
            format!("pretty({value}, use_unicode={unicode})")
        }
        form @ ("repr" | "str") => format!("{form}({value})"),
        _ => return None,
    };
    let layout = check.lines && wrong.contains('\n');
    if layout && !check.exact {
        lines.push(layout::shown_lines(&text, &mut imports));
    }
    lines.push(match check.exact {
        true => format!("assert {text} != {}", quoted(wrong)),
        false if layout => format!("assert shown != {}", layout::list_of_lines(&stated.text)),
        false => format!(
            "assert ''.join({text}.split()) != {}",
            quoted(&blankless(wrong))
        ),
    });
    Some((lines, imports, behaviour))
}

/// Tests that today's value is gone, if the expected value cannot be compared in Python.
fn is_not(expression: &str, statement: &Statement) -> Option<AssertionParts> {
    let today = statement.value.as_deref()?;
    let fleeting = today.contains(" at 0x") || today.contains(" object>");
    if fleeting || today.len() > 150 || statement.none || expression.contains("repr(") {
        return None;
    }
    let (mut lines, value) = bound(expression);
    lines.push(match today {
        "True" | "False" => format!("assert {value} is not {today}"),
        _ => format!("assert repr({value}) != {}", quoted(today)),
    });
    Some((lines, Vec::new(), Behaviour::DoesNotGive(today.to_owned())))
}

/// Binds a long expression to a name of its own.
fn bound(expression: &str) -> (Vec<String>, String) {
    let simple = !expression.contains([' ', '\n']) && expression.len() < 60;
    if simple {
        return (Vec::new(), expression.to_owned());
    }
    if expression.contains('\n') {
        let mut lines: Vec<String> = format!("result = ({expression})")
            .lines()
            .map(str::to_owned)
            .collect();
        if !has_long_string(expression) {
            lines.retain(|l| !l.trim().is_empty());
        }
        return (lines, "result".to_owned());
    }
    (vec![format!("result = {expression}")], "result".to_owned())
}

/// Puts an expression that was shown over several lines on one.
pub(super) fn on_one_line(text: &str, check: &Check) -> String {
    let text = text.trim();
    match check.evaluates && !has_long_string(text) {
        true => text.lines().map(str::trim).collect::<Vec<_>>().join(" "),
        false => text.to_owned(),
    }
}

fn blankless(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Returns a Python string literal.
pub(super) fn quoted(text: &str) -> String {
    let inner = text
        .replace('\\', "\\\\")
        .replace('\'', "\\'")
        .replace('\n', "\\n");
    format!("'{inner}'")
}

/// Returns whether the expression is only a name.
pub(super) fn plain(expression: &str) -> bool {
    expression.chars().all(|c| c.is_alphanumeric() || c == '_')
}
