//! The code of an issue as a list of steps to run, each with the outputs that the issue states.

mod prints;

use testwright_sandboxes::Pattern;
use testwright_tools::python::Module;

use super::extract::{
    Claim, Entry, Issue, Kind, Part, Polarity, RaisedException, bare_contrast, claims,
    classify_words, expected_exceptions, flat, sentences, stance_after, stance_before,
};
use super::stated_output::{Role, StatedOutput, right_in, value_in_section};
use super::{code_match, comment_annotations};

/// Maximum number of steps to run.
const MAX_STEPS: usize = 60;

/// Beginnings of the languages that issues give to blocks of output.
const OUTPUT_LANGUAGES: [&str; 6] = ["text", "txt", "plain", "output", "none", "py"];

/// Code to run, and the issue's statements about its last statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Step {
    pub source: String,
    /// Whether it was typed at a prompt, so that later steps run even after an exception.
    pub prompt: bool,
    pub number: Option<u32>,
    pub outputs: Vec<StatedOutput>,
    pub raised: Option<RaisedException>,
    /// Texts that the issue shows for everything that the block of code prints, at its last step.
    pub printed: Vec<StatedOutput>,
    /// Exception that a comment expects of the last statement.
    pub expected: Option<String>,
    /// Whether it comes from a sentence instead of a block.
    pub in_prose: bool,
    /// Whether the issue says that it works.
    pub works: bool,
    /// Whether it is the last step of its block with an output.
    pub ends_block: bool,
    /// Index of the part of the issue that it comes from.
    pub block: usize,
    /// Whether only the words before the block judge its outputs.
    pub vague: bool,
}

impl Step {
    /// Returns whether it comes from a block of code without prompts.
    pub(super) fn is_of_code(&self) -> bool {
        !self.prompt && !self.in_prose
    }
}

/// Returns the steps of an issue, in order.
pub(super) fn steps(issue: &Issue) -> Vec<Step> {
    let mut reader = StepReader::default();
    for (n, part) in issue.parts.iter().enumerate() {
        reader.part(n, part, &ContextProse::from_issue(issue, n));
    }
    let mut steps = reader.steps;
    pointed_at(&mut steps, issue);
    steps.truncate(MAX_STEPS);
    add_expected(&mut steps, issue);
    steps
}

/// Adds the code that sentences expect to raise an exception, unless a step has it.
fn add_expected(steps: &mut Vec<Step>, issue: &Issue) {
    if steps.is_empty() {
        return;
    }
    for expected in expected_exceptions(&issue.prose()) {
        for source in expected.code.iter().chain(&expected.functions) {
            let is_shown = steps.iter().any(|step| {
                code_match::contains(&step.source, source)
                    || expected.code.is_empty() && code_match::calls(&step.source, source)
            });
            let is_code =
                is_expression(source) && !Module::parse(source.as_str()).root().has_error();
            if !is_shown && is_code && steps.len() < MAX_STEPS {
                steps.push(Step {
                    source: source.clone(),
                    prompt: true,
                    in_prose: true,
                    block: issue.parts.len(),
                    ..Step::default()
                });
            }
        }
    }
}

/// The stance of the prose around a part of the issue.
struct ContextProse {
    before: Polarity,
    after: Polarity,
    /// Whether it contrasts with the text before.
    contrast: bool,
}

impl ContextProse {
    fn from_issue(issue: &Issue, n: usize) -> ContextProse {
        let prose = |at: Option<usize>| match at.and_then(|i| issue.parts.get(i)).map(|p| &p.kind) {
            Some(Kind::Prose(text)) => text.as_str(),
            _ => "",
        };
        let preceding = prose(n.checked_sub(1));
        ContextProse {
            before: stance_before(&issue.parts[n].heading, preceding),
            after: stance_after(prose(Some(n + 1))),
            contrast: bare_contrast(preceding),
        }
    }

    /// Returns the stance on a separate output; the text after it takes precedence.
    fn of_output(&self) -> Polarity {
        match self.after {
            Polarity::Unknown => self.before,
            after => after,
        }
    }

    /// Returns the stance on an output inside of a block. A complaint before the block is about the last one.
    fn of_inner_output(&self, is_last: bool) -> Polarity {
        match (is_last, self.before) {
            (true, _) if self.after != Polarity::Unknown => self.after,
            (false, Polarity::Bad) => Polarity::Unknown,
            _ if self.contrast => Polarity::Unknown,
            (_, before) => before,
        }
    }
}

#[derive(Default)]
struct StepReader {
    steps: Vec<Step>,
    /// Claims made before any code.
    pending: Vec<Claim>,
}

impl StepReader {
    fn part(&mut self, n: usize, part: &Part, around: &ContextProse) {
        match &part.kind {
            Kind::Repl(entries) => self.session(entries, around, n),
            Kind::Code(source) if around.before == Polarity::Expected && self.is_value(source) => {
                self.output(source, Polarity::Expected);
            }
            Kind::Code(source) => self.code(source, around, n),
            Kind::Raised(raised) => self.raised(raised),
            Kind::Text { lang, text }
                if lang.is_empty() || OUTPUT_LANGUAGES.iter().any(|l| lang.starts_with(*l)) =>
            {
                self.output(text, around.of_output());
            }
            Kind::Prose(text) => match value_in_section(&part.heading, text) {
                Some(value) => self.output(&value, stance_before(&part.heading, "")),
                None => self.prose(text),
            },
            _ => {}
        }
    }

    fn session(&mut self, entries: &[Entry], around: &ContextProse, n: usize) {
        let from = self.steps.len();
        let tells = |e: &Entry| {
            (!e.output.is_empty() || e.raised.is_some()) && !e.source.contains("version")
        };
        let last = entries.iter().rposition(tells);
        for (at, entry) in entries.iter().enumerate() {
            self.steps
                .push(typed_step(entry, around, Some(at) == last, n));
        }
        if around.contrast {
            join(&mut self.steps, from);
        }
    }

    fn code(&mut self, source: &str, around: &ContextProse, n: usize) {
        let pieces = comment_annotations::pieces(source);
        let last = pieces.len() - 1;
        let last_stated = pieces.iter().rposition(|piece| !piece.outputs.is_empty());
        let step = |(at, mut piece): (usize, comment_annotations::Piece)| {
            let stance = around.of_inner_output(Some(at) == last_stated);
            let is_shown = |output: &StatedOutput| output.role == Role::Shown;
            let is_judged = !piece.outputs.iter().any(is_shown);
            for output in piece.outputs.iter_mut().filter(|output| is_shown(output)) {
                output.role = stance.into();
            }
            Step {
                source: piece.source,
                works: around.before == Polarity::Good || piece.stance == Polarity::Good,
                expected: piece
                    .outputs
                    .first()
                    .and_then(|o| expected_in_note(&o.sentence)),
                outputs: piece.outputs,
                ends_block: at == last,
                block: n,
                vague: !is_judged && stance == Polarity::Bad && around.after == Polarity::Unknown,
                ..Step::default()
            }
        };
        self.steps.extend(pieces.into_iter().enumerate().map(step));
        for claim in std::mem::take(&mut self.pending) {
            self.about_earlier(&claim, 0);
        }
    }

    fn raised(&mut self, raised: &RaisedException) {
        if !add_cell(&mut self.steps, raised)
            && let Some(step) = self.last_of_block()
            && step.raised.is_none()
        {
            step.raised = Some(raised.clone());
        }
    }

    /// Adds a block that is only an output to the code before it, line by line if each line is of another call.
    fn output(&mut self, text: &str, stance: Polarity) {
        let text = text.trim_start_matches('\n').trim_end();
        let stated = |text: &str| StatedOutput::new(text.trim_end(), stance.into(), "");
        let lines: Vec<&str> = text.lines().collect();
        let calls = self.calls(lines.len(), false);
        let (is_paired, is_line) = (calls.len() == lines.len(), lines.len() == 1);
        let texts = match is_paired {
            true => lines,
            false => vec![text],
        };
        for (at, text) in calls.into_iter().zip(texts) {
            self.steps[at].outputs.push(stated(text));
        }
        // Expected lines that have calls of their own are asserted one by one.
        if (is_line || !is_paired || stance != Polarity::Expected)
            && let Some(step) = self.last_of_block().filter(|step| step.is_of_code())
        {
            step.printed.push(stated(text));
        }
    }

    /// Returns the steps of the last block that `count` values belong to: one for each value, or only the last step.
    /// Returns none if that is not clear; the actual value shows whether the last step is meant.
    fn calls(&mut self, count: usize, has_actual: bool) -> Vec<usize> {
        let Some(last) = self.steps.iter().rposition(|s| !s.in_prose) else {
            return Vec::new();
        };
        let step = &self.steps[last];
        let (block, is_prompt) = (step.block, step.prompt);
        if !is_prompt && prints::count(&step.source) > 1 {
            let pieces = prints::split(&step.source);
            let is_single = |piece: &String| prints::count(piece) == 1;
            // A call inside a loop may print any number of lines. Any call may if an earlier block does not fit.
            let has_block = !step.printed.is_empty();
            if pieces.len() != count || has_block || !pieces.iter().all(is_single) {
                return has_actual.then_some(last).into_iter().collect();
            }
            let step = step.clone();
            let pieces = pieces.into_iter().map(|source| Step {
                source,
                ..step.clone()
            });
            self.steps.splice(last..=last, pieces);
            return (last..last + count).collect();
        }
        let is_call = |at: &usize| {
            let s = &self.steps[*at];
            let is_line = |o: &StatedOutput| !o.text.contains('\n');
            let has_result = s.raised.is_some() || !s.outputs.is_empty();
            !s.in_prose && s.block == block && has_result && s.outputs.iter().all(is_line)
        };
        let calls: Vec<usize> = (0..=last).filter(is_call).collect();
        match calls.len() {
            n if n > 1 && n == count => calls,
            n if n > 1 && !is_prompt && !has_actual => Vec::new(),
            _ => vec![last],
        }
    }

    /// Returns whether code is a literal, or has the form of the last output.
    fn is_value(&self, source: &str) -> bool {
        let is_literal = source.starts_with(|c: char| c.is_ascii_digit() || "'\"[{-".contains(c));
        let head = source.split_inclusive('(').next().unwrap_or_default();
        let step = self.steps.iter().rfind(|s| !s.in_prose);
        step.is_some_and(|s| is_literal || s.outputs.iter().any(|o| o.text.starts_with(head)))
    }

    fn last_of_block(&mut self) -> Option<&mut Step> {
        self.steps.iter_mut().rev().find(|s| !s.in_prose)
    }

    fn prose(&mut self, text: &str) {
        let steps_before = self.steps.len();
        for claim in claims(text) {
            match &claim.expression {
                Some(source) if is_expression(source) => {
                    self.steps.push(Step {
                        source: source.clone(),
                        prompt: true,
                        in_prose: true,
                        ends_block: true,
                        ..Step::default()
                    });
                    attach(self.steps.last_mut(), &claim);
                }
                Some(_) => {}
                None if self.steps.is_empty() => self.pending.push(claim),
                None => self.about_earlier(&claim, steps_before),
            }
        }
    }

    /// Applies a claim without code of its own; `steps_before` is the number of steps before its paragraph.
    fn about_earlier(&mut self, claim: &Claim, steps_before: usize) {
        if !claim.further.is_empty() {
            let calls = self.calls(claim.further.len() + 1, false);
            let values = claim.right.iter().chain(&claim.further).cloned();
            let is_clear = calls.len() > claim.further.len();
            for (at, right) in calls.into_iter().zip(values).filter(|_| is_clear) {
                let mut single = claim.clone();
                (single.right, single.wrong, single.shown) = (Some(right), None, None);
                attach(self.steps.get_mut(at), &single);
            }
            return;
        }
        let is_actual = |output: &StatedOutput| Some(&output.text) == claim.wrong.as_ref();
        let shows = |s: &Step| !s.in_prose && s.outputs.iter().any(is_actual);
        let at = match self.steps.iter().rposition(shows) {
            // Without a code block, the claim is about the sentence before.
            None if self.steps.iter().all(|s| s.in_prose) => {
                (self.steps.len() > steps_before).then(|| self.steps.len() - 1)
            }
            None => self.calls(1, claim.wrong.is_some()).first().copied(),
            at => at,
        };
        attach(at.and_then(|at| self.steps.get_mut(at)), claim);
    }
}

/// Joins the session from step `from` on with the one before it, if neither was judged.
fn join(steps: &mut [Step], from: usize) {
    let Some(block) = from.checked_sub(1).map(|last| steps[last].block) else {
        return;
    };
    let is_judged = |s: &Step| s.works || s.outputs.iter().any(|s| s.role != Role::Shown);
    if steps.iter().any(|s| s.block == block && is_judged(s)) {
        return;
    }
    for step in &mut steps[from..] {
        step.block = block;
    }
    for step in steps.iter_mut().filter(|s| s.block == block) {
        step.ends_block = false;
    }
}

/// Applies statements such as "`Out[3]` is wrong" to the output with that number.
fn pointed_at(steps: &mut [Step], issue: &Issue) {
    static OUT: Pattern = Pattern::new(r"\bOut ?\[(\d+)\]");
    let prose = issue.parts.iter().filter_map(|part| match &part.kind {
        Kind::Prose(text) => Some(flat(text)),
        _ => None,
    });
    for text in prose {
        let bad = sentences(&text)
            .filter(|s| classify_words(s) == Polarity::Bad)
            .filter_map(|s| OUT.captures(s)?[1].parse::<u32>().ok());
        for number in bad {
            for step in steps.iter_mut().filter(|s| s.number == Some(number)) {
                step.vague = false;
                for output in step.outputs.iter_mut().filter(|s| s.role == Role::Shown) {
                    output.role = Role::Wrong;
                }
            }
        }
    }
}

/// Adds the cell that IPython shows in a traceback: new code, or lines missing in the issue's code.
fn add_cell(steps: &mut Vec<Step>, raised: &RaisedException) -> bool {
    let mut lines = raised.cell.lines().map(str::trim);
    let Some(last) = lines.rfind(|line| !line.is_empty()) else {
        return false;
    };
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
        let missing_lines: Vec<&str> = raised
            .cell
            .lines()
            .filter(|l| !l.starts_with(' ') && l.contains(" = ") && !step.source.contains(l.trim()))
            .collect();
        if let Some(at) = step.source.rfind(last)
            && !missing_lines.is_empty()
        {
            step.source
                .insert_str(at, &format!("{}\n", missing_lines.join("\n")));
        }
    }
    true
}

/// Returns the step of an input of a session; `ends` tells whether its result is the last one.
fn typed_step(entry: &Entry, around: &ContextProse, ends: bool, block: usize) -> Step {
    let mut stance = classify_words(&entry.note);
    let mut outputs = Vec::new();
    let vague = stance == Polarity::Unknown && !(ends && around.after != Polarity::Unknown);
    if let Some(right) = right_in(&entry.note) {
        outputs.push(StatedOutput::new(&right, Role::Right, &entry.note));
        stance = Polarity::Bad;
    }
    stance = match stance {
        Polarity::Expected => Polarity::Bad,
        Polarity::Unknown => around.of_inner_output(ends),
        stance => stance,
    };
    if !entry.output.is_empty() {
        let output = StatedOutput::new(&entry.output, stance.into(), &entry.note);
        outputs.push(output);
    }
    Step {
        source: entry.source.clone(),
        prompt: true,
        number: entry.number,
        outputs,
        raised: entry.raised.clone(),
        expected: expected_in_note(&entry.note),
        works: stance == Polarity::Good,
        ends_block: ends,
        block,
        vague,
        ..Step::default()
    }
}

/// Returns the exception that a comment next to code expects.
fn expected_in_note(note: &str) -> Option<String> {
    expected_exceptions(note).pop()?.exception
}

fn attach(step: Option<&mut Step>, claim: &Claim) {
    let Some(step) = step else { return };
    let mut say = |text: &Option<String>, role: Role| {
        if let Some(text) = text {
            let output = StatedOutput::new(text, role, &claim.sentence);
            if !step.outputs.contains(&output) {
                step.outputs.push(output);
            }
        }
    };
    say(&claim.right, Role::Right);
    say(&claim.part, Role::Part);
    say(&claim.wrong, Role::Wrong);
    let role = match claim.stance {
        // The value in "gives 1, which is wrong", but also in "gives 1 as it should".
        Polarity::Expected => Role::Shown,
        stance => stance.into(),
    };
    say(&claim.shown, role);
}

/// Returns whether a text is more than a bare name or number.
fn is_expression(text: &str) -> bool {
    text.contains(['(', '+', '*', '/', '[', '@', '%', '<', '>', '='])
}
