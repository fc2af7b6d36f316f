//! Candidates about everything that a block of code prints.

use super::layout::Layout;
use super::{blankless, is_today, quoted};
use crate::rule_based::candidates::{Candidate, Evidence, Tested};
use crate::rule_based::probe::Check;
use crate::rule_based::stated_output::{Role, StatedOutput};
use crate::rule_based::steps::Step;
use crate::rule_based::test_body::{self, CAPTURED};
use crate::rule_based::test_name::Behaviour;

/// Tests the whole output of a block, if the issue shows today's. The value of a single `print(value)` is tested
/// without its output.
pub(super) fn candidate(tested: Tested<'_>) -> Option<Candidate> {
    let (evidence, at) = (tested.evidence, tested.at);
    let (statement, step) = (tested.statement, tested.step);
    let stated: Vec<(&StatedOutput, &Check)> =
        step.printed.iter().zip(&statement.printed_checks).collect();
    let is_actual = |(s, c): &(&StatedOutput, &Check)| {
        [Role::Wrong, Role::Shown].contains(&s.role) && is_today(c)
    };
    let (actual, today) = stated.iter().copied().find(is_actual)?;
    let targets = printing(evidence, at, step)?;
    let is_other = |(s, c): &(&StatedOutput, &Check)| {
        s.role == Role::Right && (!is_today(c) || today.ends && !c.ends)
    };
    let right = stated.iter().copied().find(is_other);
    let mut imports = Vec::new();
    let (trust, lines, behaviour) = match right {
        Some((right, check)) => {
            let layout = Layout::trusted(Some(today), check)?;
            let lines = layout.equality(CAPTURED, &right.text, &mut imports);
            (80, lines, Behaviour::Prints)
        }
        None if actual.role == Role::Wrong && !evidence.expects_exception() => {
            let line = match today.ends {
                true => format!(
                    "assert {CAPTURED}.strip() != {}",
                    quoted(actual.text.trim())
                ),
                false => format!(
                    "assert ''.join({CAPTURED}.split()) != {}",
                    quoted(&blankless(&actual.text))
                ),
            };
            (58, vec![line], Behaviour::DoesNotPrint)
        }
        None => return None,
    };
    let mut body = evidence.before(&targets, &[]);
    let statements = &evidence.probe.statements;
    let (first, last) = (*targets.first()?, *targets.last()?);
    body.push_printing(&statements[first..=last], lines);
    body.imports.extend(imports);
    body.imports = test_body::merged(&body.imports);
    Some(tested.candidate(trust, body, behaviour))
}

/// Returns the statements of a block from the first that prints to the last, if a test can repeat them.
fn printing(evidence: &Evidence<'_>, at: usize, step: &Step) -> Option<Vec<usize>> {
    let statements = &evidence.probe.statements;
    let is_of_block = |at: &usize| {
        let other = evidence.steps.get(statements[*at].step);
        other.is_some_and(|s| s.block == step.block && s.is_of_code())
    };
    let mut block: Vec<usize> = (0..=at).rev().take_while(is_of_block).collect();
    block.reverse();
    let first = block.iter().position(|at| statements[*at].prints)?;
    let last = block.iter().rposition(|at| statements[*at].prints)?;
    let targets = &block[first..=last];
    let has_run = |at: &usize| {
        let s = &statements[*at];
        s.syntax.is_none() && !s.slow && s.raised.is_none() && s.blocked.is_none()
    };
    // The lines go into a function, and into a `with` statement in `unittest`.
    let can_move = |at: &usize| {
        let s = &statements[*at];
        s.patched.is_empty() && s.leaks.is_empty() && !s.source.contains("import *")
    };
    let is_value = targets.len() == 1 && statements[targets[0]].kind == "Print";
    (!is_value && block.iter().all(has_run) && targets.iter().all(can_move))
        .then(|| targets.to_vec())
}
