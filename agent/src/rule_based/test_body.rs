//! Reduces statements that ran to the body of a test, with only what the tested statement needs.

use std::collections::BTreeSet;

use super::probe::{Probe, Statement};

/// The lines of a test and the imports that they need.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TestBody {
    pub imports: Vec<String>,
    pub lines: Vec<String>,
}

/// Returns what has to run before the statement at `target`; `more` has further names that the test will use.
pub(super) fn before(
    probe: &Probe,
    numbers: &[Option<u32>],
    target: usize,
    more: &[String],
) -> TestBody {
    let all = &probe.statements;
    let mut needed: BTreeSet<String> = all[target].reads.iter().chain(more).cloned().collect();
    let mut read = needed.clone();
    let mut stars: Vec<(String, String)> = all[target].stars.clone();
    let mut selection: Vec<(usize, Option<String>)> = Vec::new();
    for at in (0..target).rev() {
        let statement = &all[at];
        if statement.syntax.is_some()
            || statement.slow
            || (statement.raised.is_some() && !statement.in_repr)
        {
            continue;
        }
        let label = label(statement, numbers, &needed);
        if label.is_none() && !statement.writes.iter().any(|n| needed.contains(n)) {
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
    for (at, label) in selection {
        let statement = &all[at];
        match statement.kind.as_str() {
            "Import" | "ImportFrom" if statement.source.contains('*') => {}
            "Import" | "ImportFrom" if !statement.source.contains('\n') => {
                body.imports.push(statement.source.trim().to_owned())
            }
            _ => {
                let text = match label {
                    Some(label) => format!("{label} = {}", statement.source),
                    None => statement.source.clone(),
                };
                body.lines.extend(text.lines().map(str::to_owned));
            }
        }
    }
    body.imports = merged(&body.imports);
    body
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
                match makers.iter_mut().find(|(m, _)| *m == maker) {
                    Some((_, names)) => names.push(name),
                    None => makers.push((maker, vec![name])),
                }
            }
            _ => body.imports.push(line.clone()),
        }
    }
    for (maker, names) in makers {
        let module = probe.symbolic.as_deref().unwrap_or("sympy");
        body.imports.push(format!("from {module} import {maker}"));
        if maker == "symbols" {
            body.lines.push(format!(
                "{} = symbols('{}')",
                names.join(", "),
                names.join(" ")
            ));
        } else {
            body.lines
                .extend(names.iter().map(|n| format!("{n} = {maker}('{n}')")));
        }
    }
}

/// Returns `_` or `_7`, if it is needed and refers to this statement's value.
fn label(
    statement: &Statement,
    numbers: &[Option<u32>],
    needed: &BTreeSet<String>,
) -> Option<String> {
    if statement.kind != "Expr" || statement.none {
        return None;
    }
    let numbered = numbers
        .get(statement.step)
        .copied()
        .flatten()
        .map(|n| format!("_{n}"));
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
        match modules.iter_mut().find(|(m, _)| *m == module) {
            Some((_, module_names)) => {
                for name in names {
                    if !module_names.contains(&name) {
                        module_names.push(name);
                    }
                }
            }
            None => modules.push((module, names)),
        }
    }
    modules
        .into_iter()
        .map(|(module, names)| format!("{module}{}", names.join(", ")))
        .collect()
}

/// Returns the words of a text that could be names.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| w.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        .map(str::to_owned)
        .collect()
}
