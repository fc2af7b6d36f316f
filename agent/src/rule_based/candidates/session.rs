//! Candidates from a session in which at least one output is wrong, but the issue does not say which.

use super::values::{expression, is_today, on_one_line, plain, quoted};
use super::{Candidate, Evidence, homes};
use crate::rule_based::extract::has_long_string;
use crate::rule_based::probe::Effect;
use crate::rule_based::stated_output::Role;
use crate::rule_based::test_body;
use crate::rule_based::test_name::Behaviour;

/// Maximum number of outputs to compare.
const MAX_OUTPUTS: usize = 4;

pub(super) fn candidates(evidence: &Evidence<'_>) -> Vec<Candidate> {
    if evidence.expects_exception() {
        return Vec::new();
    }
    let mut blocks: Vec<usize> = evidence
        .steps
        .iter()
        .filter(|s| s.vague && s.prompt)
        .map(|s| s.block)
        .collect();
    blocks.dedup();
    blocks
        .into_iter()
        .filter_map(|block| candidate(evidence, block))
        .collect()
}

fn candidate(evidence: &Evidence<'_>, block: usize) -> Option<Candidate> {
    let mut compared = Vec::new();
    let mut has_acted = false;
    for (at, statement) in evidence.probe.statements.iter().enumerate() {
        let step = evidence.steps.get(statement.step)?;
        has_acted |= statement.effect == Effect::Certain;
        if step.block != block
            || !step.prompt
            || step.in_prose
            || !statement.last
            || evidence.expected.exceptions.contains_key(&at)
            || evidence.expected.dependent.contains(&at)
            || evidence.raises_elsewhere(step)
        {
            continue;
        }
        let ([stated], Some(check)) = (step.outputs.as_slice(), statement.checks.first()) else {
            continue;
        };
        let doubtful = [Role::Shown, Role::Wrong].contains(&stated.role) && is_today(check);
        let Some(source) =
            expression(statement).filter(|e| doubtful && !plain(e) && !has_long_string(e))
        else {
            continue;
        };
        let output = on_one_line(&stated.text, check);
        let singleton = ["True", "False", "None"].contains(&output.as_str());
        let pair =
            if check.evaluates && check.equal == Some(true) && (singleton || output.len() < 60) {
                (source, output)
            } else {
                match check.same.as_deref() {
                    Some(form @ ("repr" | "str")) if check.exact => {
                        (format!("{form}({source})"), quoted(&output))
                    }
                    _ => continue,
                }
            };
        // The test evaluates all of them at its end, so nothing may change in between.
        if std::mem::take(&mut has_acted) {
            compared.clear();
        }
        compared.push((at, pair));
    }
    if compared.len() < 2 {
        return None;
    }
    let compared = &compared[compared.len().saturating_sub(MAX_OUTPUTS)..];
    let (last, _) = *compared.last()?;
    let statements = &evidence.probe.statements;
    let targets: Vec<usize> = compared.iter().map(|(at, _)| *at).collect();
    let more: Vec<String> = compared
        .iter()
        .flat_map(|(_, (source, output))| [source, output])
        .flat_map(|text| test_body::words(text))
        .collect();
    let mut body = evidence.before(&targets, &more);
    body.push_text("shown = [");
    for (_, (source, _)) in compared {
        body.push_text(&format!("    {},", source.replace('\n', " ")));
    }
    body.push_text("]");
    let outputs: Vec<&str> = compared.iter().map(|(_, pair)| pair.1.as_str()).collect();
    body.lines
        .push(format!("assert shown != [{}]", outputs.join(", ")));
    let last = &statements[last];
    Some(Candidate {
        homes: homes(last, None),
        ..Candidate::new(evidence, last, 62, body, Behaviour::DoesNotGiveAll)
    })
}
