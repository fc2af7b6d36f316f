//! Reduces statements that ran to the body of a test: those that the tested statements need by name, and those that
//! act on anything else.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use testwright_tools::python::edit::reindented;

use super::probe::{Effect, Probe, Statement};
use super::steps::Step;

/// The text that the captured lines print, as an expression.
pub(super) const CAPTURED: &str = "capsys.readouterr().out";

/// The lines of a test and the imports that they need.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TestBody {
    pub imports: Vec<String>,
    pub lines: Vec<String>,
    /// Lines that change the process, in order.
    pub changes: Vec<ProcessChange>,
    /// Lines whose output the test compares as `CAPTURED`; none of them changes the process.
    pub captured: Option<Range<usize>>,
}

/// Lines of a body that change the process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProcessChange {
    pub lines: Range<usize>,
    /// Lines that do the same with pytest's `monkeypatch`; may be empty.
    pub patched: Vec<String>,
    /// Parts of the process that change: `environ`, `folder`.
    pub leaks: Vec<String>,
}

/// Returns what has to run before the statements at `targets`; `more` has further names that the test will use.
pub(super) fn before(
    probe: &Probe,
    steps: &[Step],
    targets: &[usize],
    more: &[String],
    expected: &ExpectedRaises,
) -> TestBody {
    let all = &probe.statements;
    let tested: Vec<&Statement> = targets.iter().filter_map(|at| all.get(*at)).collect();
    let cause = tested.iter().find_map(|s| s.blocked);
    let is_apart = tested
        .iter()
        .all(|s| s.blocked.and_then(|at| all.get(at)).unwrap_or(s).apart);
    let reads = tested.iter().flat_map(|s| &s.reads);
    let mut needed: BTreeSet<String> = reads.chain(more).cloned().collect();
    let mut read = needed.clone();
    let mut stars: Vec<(String, String)> = tested.iter().flat_map(|s| s.stars.clone()).collect();
    let mut selection: Vec<(usize, Option<String>)> = Vec::new();
    for at in (0..targets.iter().copied().max().unwrap_or_default()).rev() {
        let statement = &all[at];
        if !can_run(statement, at, cause) || expected.dependent.contains(&at) {
            continue;
        }
        let label = label(statement, steps, &needed);
        let acts = match statement.effect {
            _ if statement.raised.is_some() && !statement.in_repr => cause == Some(at),
            Effect::Certain => true,
            Effect::Possible => !is_apart || statement.blocked.is_some(),
            Effect::None => false,
        };
        let is_needed = acts || statement.writes.iter().any(|n| needed.contains(n));
        if label.is_none() && (!is_needed || targets.contains(&at)) {
            continue;
        }
        if let Some(label) = &label {
            needed.remove(label);
        }
        if binds(&statement.kind) {
            for name in &statement.writes {
                needed.remove(name);
            }
        }
        if let Some(exception) = expected.exceptions.get(&at) {
            read.extend(words(exception));
        }
        needed.extend(statement.reads.iter().cloned());
        read.extend(statement.reads.iter().cloned());
        stars.extend(statement.stars.iter().cloned());
        selection.push((at, label));
    }
    selection.reverse();
    let mut body = TestBody::default();
    let bound: BTreeSet<&String> = selection
        .iter()
        .flat_map(|(at, _)| &all[*at].writes)
        .collect();
    supply(probe, &read, &bound, &mut body);
    for (module, name) in &stars {
        if read.contains(name) && !bound.contains(name) {
            body.imports.push(format!("from {module} import {name}"));
        }
    }
    let mut has_acted = false;
    for (at, label) in selection {
        let statement = &all[at];
        // A module that loads after a change may depend on it.
        let is_early = !has_acted || statement.effect == Effect::None;
        has_acted |= statement.effect == Effect::Certain;
        match statement.kind.as_str() {
            _ if expected.exceptions.contains_key(&at) => {
                body.push_raising(statement, &expected.exceptions[&at]);
            }
            "Import" | "ImportFrom" if statement.source.contains('*') => {}
            "Import" | "ImportFrom" if is_early && !statement.source.contains('\n') => {
                body.imports.push(statement.source.trim().to_owned())
            }
            _ => body.push(statement, label),
        }
    }
    body.imports = merged(&body.imports);
    body
}

/// Returns whether a statement ran without an exception. Those between a failed statement and a target that it kept
/// from running would run too.
fn can_run(statement: &Statement, at: usize, cause: Option<usize>) -> bool {
    let is_between = cause.is_some() && (statement.blocked == cause || cause == Some(at));
    let succeeded = statement.raised.is_none() || statement.in_repr;
    statement.syntax.is_none()
        && !statement.slow
        && (is_between || statement.blocked.is_none() && succeeded)
}

impl TestBody {
    /// Adds a statement that should raise an exception.
    pub(super) fn push_raising(&mut self, statement: &Statement, exception: &str) {
        self.imports.push("import pytest".to_owned());
        self.push_block(
            &format!("with pytest.raises({exception}):"),
            &statement.source,
        );
    }

    /// Adds the lines of a text.
    pub(super) fn push_text(&mut self, text: &str) {
        self.lines.extend(text.lines().map(str::to_owned));
    }

    /// Adds statements one level below a line that begins a block; lines inside strings stay unchanged.
    pub(super) fn push_block(&mut self, opening: &str, source: &str) {
        self.push_text(opening);
        self.push_text(&reindented(source, "    "));
    }

    /// Adds statements that print, and the lines that compare their output.
    pub(super) fn push_printing(&mut self, statements: &[Statement], comparison: Vec<String>) {
        let first = self.lines.len();
        for statement in statements {
            self.push_text(&statement.source);
        }
        self.captured = Some(first..self.lines.len());
        self.lines.extend(comparison);
    }

    /// Adds a statement, whose value gets a name if `label` has one.
    fn push(&mut self, statement: &Statement, label: Option<String>) {
        let source = statement.shown.as_ref().unwrap_or(&statement.source);
        let first = self.lines.len();
        match &label {
            Some(label) => self.push_text(&format!("{label} = {source}")),
            None => self.push_text(source),
        }
        if !statement.patched.is_empty() || !statement.leaks.is_empty() {
            self.changes.push(ProcessChange {
                lines: first..self.lines.len(),
                patched: match label {
                    Some(_) => Vec::new(),
                    None => statement.patched.clone(),
                },
                leaks: statement.leaks.clone(),
            });
        }
    }
}

/// Statements that should raise an exception, but do not raise it today.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ExpectedRaises {
    /// Exceptions by the index of the statement.
    pub exceptions: BTreeMap<usize, String>,
    /// Statements that read a name which is not bound once the exceptions are raised.
    pub dependent: BTreeSet<usize>,
}

impl ExpectedRaises {
    pub(super) fn new(exceptions: BTreeMap<usize, String>, statements: &[Statement]) -> Self {
        let mut dependent = BTreeSet::new();
        let mut unbound: BTreeSet<&String> = BTreeSet::new();
        for (at, statement) in statements.iter().enumerate() {
            let raises = exceptions.contains_key(&at);
            let is_dependent = statement.reads.iter().any(|name| unbound.contains(name));
            if !raises && is_dependent {
                dependent.insert(at);
            }
            if binds(&statement.kind) {
                for name in &statement.writes {
                    match raises || is_dependent {
                        true => unbound.insert(name),
                        false => unbound.remove(name),
                    };
                }
            }
        }
        ExpectedRaises {
            exceptions,
            dependent,
        }
    }
}

/// Adds names that the issue omitted: imports, and symbols, which go into one line.
fn supply(probe: &Probe, read: &BTreeSet<String>, bound: &BTreeSet<&String>, body: &mut TestBody) {
    let mut makers: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, line) in &probe.added {
        if !read.contains(name) || bound.contains(name) {
            continue;
        }
        match line
            .split_once(" = ")
            .and_then(|(_, call)| call.split_once('('))
        {
            Some((maker, _)) if !line.starts_with("import ") && !line.starts_with("from ") => {
                value_of(&mut makers, maker).push(name);
            }
            _ => body.imports.push(line.clone()),
        }
    }
    for (maker, names) in makers {
        let module = probe.symbolic.as_deref().unwrap_or("sympy");
        body.imports.push(format!("from {module} import {maker}"));
        if maker == "symbols" {
            let (left, right) = (names.join(", "), names.join(" "));
            body.push_text(&format!("{left} = symbols('{right}')"));
        } else {
            let symbols = names.iter().map(|n| format!("{n} = {maker}('{n}')"));
            body.lines.extend(symbols);
        }
    }
}

/// Returns `_` or `_7`, if it is needed and refers to this statement's value.
fn label(statement: &Statement, steps: &[Step], needed: &BTreeSet<String>) -> Option<String> {
    if statement.kind != "Expr" || statement.none {
        return None;
    }
    let step = steps.get(statement.step);
    let numbered = step.and_then(|step| Some(format!("_{}", step.number?)));
    numbered
        .filter(|n| needed.contains(n))
        .or_else(|| needed.contains("_").then(|| "_".to_owned()))
}

/// Returns whether this kind of statement binds its names to new values.
fn binds(kind: &str) -> bool {
    ["Assign", "Import", "ImportFrom", "FunctionDef", "ClassDef"].contains(&kind)
}

/// Merges imports into one line per module, in the order of first mention.
pub(super) fn merged(imports: &[String]) -> Vec<String> {
    let mut modules: Vec<(String, Vec<String>)> = Vec::new();
    for line in imports {
        let split = line
            .strip_prefix("from ")
            .and_then(|l| l.split_once(" import "));
        let (module, names) = match split {
            Some((module, names)) if !names.contains('(') => (
                format!("from {module} import "),
                names.split(',').map(|n| n.trim().to_owned()).collect(),
            ),
            _ => (line.clone(), Vec::new()),
        };
        let module_names = value_of(&mut modules, module);
        for name in names {
            if !module_names.contains(&name) {
                module_names.push(name);
            }
        }
    }
    modules
        .into_iter()
        .map(|(module, names)| format!("{module}{}", names.join(", ")))
        .collect()
}

/// Returns the value of a key, which is added to the end of a list that lacks it.
pub(super) fn value_of<K: PartialEq, V: Default>(list: &mut Vec<(K, V)>, key: K) -> &mut V {
    let at = list.iter().position(|(other, _)| *other == key);
    let at = at.unwrap_or_else(|| {
        list.push((key, V::default()));
        list.len() - 1
    });
    &mut list[at].1
}

/// Returns the words of a text that could be names.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| w.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        .map(str::to_owned)
        .collect()
}
