//! The code of an issue as a list of steps to run, each with what the issue says comes of it.

use std::sync::LazyLock;

use regex::Regex;

use super::comment_annotations;
use super::extract::{
    Claim, Entry, Issue, Kind, Raised, Stance, claims, pattern, stance_after, stance_before,
};

/// Code to run, and what the issue says about its last statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    pub source: String,
    /// It was typed at a prompt: what follows goes on after an exception.
    pub prompt: bool,
    pub number: Option<u32>,
    pub said: Vec<Said>,
    pub raised: Option<Raised>,
    /// It stands in a sentence, not in a block.
    pub in_prose: bool,
    /// The issue says that it works.
    pub works: bool,
    /// The last with an output of its block.
    pub ends_block: bool,
    /// Which part of the issue it stands in.
    pub block: usize,
    /// Only the words before the block say what its outputs are worth.
    pub vague: bool,
}

/// A text that the issue gives for what a step returns or prints.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub text: String,
    pub role: Role,
    /// Where the issue says so, if it was a sentence.
    pub sentence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What should come.
    Right,
    /// What comes, and should not.
    Wrong,
    /// What comes, and is fine.
    Fine,
    /// What comes.
    Shown,
}

impl From<Stance> for Role {
    fn from(stance: Stance) -> Role {
        match stance {
            Stance::Expected => Role::Right,
            Stance::Bad => Role::Wrong,
            Stance::Good => Role::Fine,
            Stance::Unknown => Role::Shown,
        }
    }
}

/// The steps of an issue, in order.
pub fn steps(issue: &Issue) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // What was said before there was any code.
    let mut pending: Vec<Claim> = Vec::new();
    for (n, part) in issue.parts.iter().enumerate() {
        let prose = |at: Option<usize>| match at.and_then(|i| issue.parts.get(i)).map(|p| &p.kind) {
            Some(Kind::Prose(text)) => text.as_str(),
            _ => "",
        };
        let before = stance_before(&part.heading, prose(n.checked_sub(1)));
        let after = stance_after(prose(Some(n + 1)));
        match &part.kind {
            Kind::Repl(entries) => {
                let from = steps.len();
                let contrast = super::extract::bare_contrast(prose(n.checked_sub(1)));
                let before = if contrast { Stance::Unknown } else { before };
                transcript(&mut steps, entries, before, after, n);
                if contrast {
                    join(&mut steps, from);
                }
            }
            Kind::Code(source) => {
                let pieces = comment_annotations::pieces(source);
                let last = pieces.len() - 1;
                steps.extend(pieces.into_iter().enumerate().map(|(at, piece)| Step {
                    source: piece.source,
                    works: before == Stance::Good || piece.stance == Stance::Good,
                    said: piece.said,
                    ends_block: at == last,
                    block: n,
                    ..Step::default()
                }));
                for claim in pending.drain(..) {
                    attach(steps.last_mut(), &claim);
                }
            }
            Kind::Raised(raised) => {
                if !add_cell(&mut steps, raised)
                    && let Some(step) = steps.iter_mut().rev().find(|s| !s.in_prose)
                    && step.raised.is_none()
                {
                    step.raised = Some(raised.clone());
                }
            }
            Kind::Text { lang, text }
                if lang.is_empty() || lang.starts_with("text") || lang.starts_with("py") =>
            {
                if let Some(step) = steps.iter_mut().rev().find(|s| !s.in_prose) {
                    let role = Role::from(if after == Stance::Unknown {
                        before
                    } else {
                        after
                    });
                    step.said.push(Said {
                        text: text.trim_end().to_owned(),
                        role,
                        sentence: String::new(),
                    });
                }
            }
            Kind::Prose(text) => {
                let known = steps.len();
                for claim in claims(text) {
                    match &claim.expression {
                        Some(source) if is_expression(source) => {
                            steps.push(Step {
                                source: source.clone(),
                                prompt: true,
                                in_prose: true,
                                ends_block: true,
                                ..Step::default()
                            });
                            attach(steps.last_mut(), &claim);
                        }
                        Some(_) => {}
                        None if steps.is_empty() => pending.push(claim),
                        None => {
                            let block = steps.iter().rposition(|s| !s.in_prose);
                            // Without any code set apart, the sentence before is what it is about.
                            let at =
                                block.or_else(|| (steps.len() > known).then(|| steps.len() - 1));
                            attach(at.and_then(|at| steps.get_mut(at)), &claim);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    pointed_at(&mut steps, issue);
    steps.truncate(60);
    steps
}

/// The session from step `from` on and the one before it, of which neither was called right or wrong, are one.
fn join(steps: &mut [Step], from: usize) {
    let Some(block) = from.checked_sub(1).map(|last| steps[last].block) else {
        return;
    };
    let told = |s: &Step| s.works || s.said.iter().any(|s| s.role != Role::Shown);
    if steps.iter().any(|s| s.block == block && told(s)) {
        return;
    }
    for step in &mut steps[from..] {
        step.block = block;
    }
    for step in steps.iter_mut().filter(|s| s.block == block) {
        step.ends_block = false;
    }
}

/// "`Out[3]` is wrong" speaks of the output with that number.
fn pointed_at(steps: &mut [Step], issue: &Issue) {
    static OUT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bOut ?\[(\d+)\]"));
    let prose = issue.parts.iter().filter_map(|part| match &part.kind {
        Kind::Prose(text) => Some(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        _ => None,
    });
    for text in prose {
        let bad = super::extract::sentences(&text)
            .filter(|s| super::extract::judge(s) == Stance::Bad)
            .filter_map(|s| OUT.captures(s)?[1].parse::<u32>().ok());
        for number in bad {
            for step in steps.iter_mut().filter(|s| s.number == Some(number)) {
                step.vague = false;
                for said in step.said.iter_mut().filter(|s| s.role == Role::Shown) {
                    said.role = Role::Wrong;
                }
            }
        }
    }
}

/// The cell that IPython shows in a traceback: new code, or lines that the issue's code left out.
fn add_cell(steps: &mut Vec<Step>, raised: &Raised) -> bool {
    let last = last_line(&raised.cell);
    if last.is_empty() {
        return false;
    }
    let Some(step) = steps.iter_mut().rev().find(|s| s.source.contains(last)) else {
        steps.push(Step {
            source: raised.cell.clone(),
            raised: Some(raised.clone()),
            ends_block: true,
            ..Step::default()
        });
        return true;
    };
    step.raised.get_or_insert_with(|| raised.clone());
    if !step.prompt {
        let left_out: Vec<&str> = raised
            .cell
            .lines()
            .filter(|l| !l.starts_with(' ') && l.contains(" = ") && !step.source.contains(l.trim()))
            .collect();
        if let Some(at) = step.source.rfind(last)
            && !left_out.is_empty()
        {
            step.source
                .insert_str(at, &format!("{}\n", left_out.join("\n")));
        }
    }
    true
}

fn transcript(
    steps: &mut Vec<Step>,
    entries: &[Entry],
    before: Stance,
    after: Stance,
    block: usize,
) {
    let tells =
        |e: &Entry| (!e.output.is_empty() || e.raised.is_some()) && !e.source.contains("version");
    let last = entries.iter().rposition(tells);
    for (n, entry) in entries.iter().enumerate() {
        let ends = Some(n) == last;
        let mut stance = super::extract::judge(&entry.note);
        let mut said = Vec::new();
        let vague = stance == Stance::Unknown && !(ends && after != Stance::Unknown);
        if let Some(right) = right_in(&entry.note) {
            said.push(Said {
                text: right,
                role: Role::Right,
                sentence: entry.note.clone(),
            });
            stance = Stance::Bad;
        } else if stance == Stance::Expected {
            stance = Stance::Bad;
        } else if stance == Stance::Unknown {
            stance = match (ends, before) {
                (true, _) if after != Stance::Unknown => after,
                (true, stance) => stance,
                (false, Stance::Bad) => Stance::Unknown,
                (false, stance) => stance,
            };
        }
        if !entry.output.is_empty() {
            said.push(Said {
                text: entry.output.clone(),
                role: stance.into(),
                sentence: entry.note.clone(),
            });
        }
        steps.push(Step {
            source: entry.source.clone(),
            prompt: true,
            number: entry.number,
            said,
            raised: entry.raised.clone(),
            in_prose: false,
            works: stance == Stance::Good,
            ends_block: ends,
            block,
            vague,
        });
    }
}

/// `should be 3`, `-> 3 expected`: the value in a remark.
pub(super) fn right_in(note: &str) -> Option<String> {
    static SHOULD: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?:should(?: be| return| give| print| equal| yield)|expected?(?: is| to be| to get)?:?|supposed to be|must be)\s+(`[^`]+`|\S.*)$",
        )
    });
    let found = SHOULD.captures(note)?;
    let text = found[1]
        .trim_matches('`')
        .trim()
        .trim_end_matches(['.', '!'])
        .to_owned();
    let plain = text.contains(['(', '[', '\'', '"', '{']) || !text.contains(' ');
    plain.then_some(text)
}

fn attach(step: Option<&mut Step>, claim: &Claim) {
    let Some(step) = step else { return };
    let mut say = |text: &Option<String>, role: Role| {
        if let Some(text) = text {
            let said = Said {
                text: text.clone(),
                role,
                sentence: claim.sentence.clone(),
            };
            if !step.said.contains(&said) {
                step.said.push(said);
            }
        }
    };
    say(&claim.right, Role::Right);
    say(&claim.wrong, Role::Wrong);
    let role = match claim.stance {
        // "gives 1, which is wrong", but also "gives 1 as it should".
        Stance::Expected => Role::Shown,
        stance => stance.into(),
    };
    say(&claim.shown, role);
}

/// More than a bare name or number.
fn is_expression(text: &str) -> bool {
    text.contains(['(', '+', '*', '/', '[', '@', '%', '<', '>', '='])
}

fn last_line(text: &str) -> &str {
    text.lines()
        .rev()
        .find(|l| !l.trim().is_empty())
        .unwrap_or("")
        .trim()
}
