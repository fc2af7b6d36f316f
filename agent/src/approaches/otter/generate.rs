//! The generator: one complete function, never a diff.

use testwright_agent_prompts::{CodeFile, OtterGenerate};
use testwright_tools::python::edit::{Code, InsertionPoint, LineEnding, insert, replace};
use testwright_tools::python::import_edit::add_imports;
use testwright_tools::python::{Definition, Module, flatten};

use super::imports;
use super::localize::strip_list_markers;
use super::plan::{Action, WriteMode};
use super::repository::{FunctionName, Repository};
use super::{IMPORT_REPAIR, IMPORTS};
use crate::agent::{Flow, Run};
use crate::approaches::Options;
use crate::approaches::stages::{Draft, ask};
use crate::formats::{FormatError, ProposedFiles, code_block};

/// Writes the test. Returns `None` if the reply cannot be put into the repository; the reason is recorded.
pub(super) async fn generate(
    run: &mut Run,
    repository: &Repository,
    reads: &[FunctionName],
    target: &Action,
    options: &Options,
) -> Flow<Option<Draft>> {
    let path = &target.name.path;
    let original = match target.mode {
        WriteMode::Modify => repository.source(&target.name).map(|code| code.text),
        WriteMode::Write => None,
    };
    let code = reads.iter().filter_map(|name| repository.source(name));
    let question = OtterGenerate {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
        code: code.collect::<Vec<CodeFile>>(),
        path: path.clone(),
        name: match original {
            Some(_) => String::new(),
            None => target.name.function.clone(),
        },
        original: original.unwrap_or_default(),
        structure: match options.is_on(&IMPORTS) {
            true => repository.structure(path),
            false => String::new(),
        },
    };
    let reply = ask(run, &question).await?;
    let text = match insert_function(&reply, &repository.text(path).unwrap_or_default(), target) {
        Ok(text) => text,
        Err(why) => {
            run.stage("write", format!("the reply cannot be used: {why}"))?;
            return Ok(None);
        }
    };
    run.stage("write", format!("changes {path}"))?;
    let text = match options.is_on(&IMPORT_REPAIR) {
        true => {
            let before = repository.text(path).unwrap_or_default();
            let (text, repaired) = imports::repair(repository, &before, &text);
            if !repaired.is_empty() {
                run.stage("repair", repaired.join("; "))?;
            }
            text
        }
        false => text,
    };
    Ok(Some(Draft {
        proposed: ProposedFiles {
            files: [(path.clone(), Some(text))].into(),
            repairs: Vec::new(),
        },
        reply,
    }))
}

/// Returns the file with the function from the reply.
fn insert_function(reply: &str, before: &str, target: &Action) -> Result<String, FormatError> {
    let source = code_block::code(reply)?;
    let code = Code::read(&source).map_err(FormatError::new)?;
    let (text, ends) = LineEnding::split(before);
    let module = Module::parse(text);
    let changed = match target.mode {
        WriteMode::Modify => {
            let function = module.find(&target.name.function).into_iter().next();
            let function =
                function.ok_or_else(|| FormatError(format!("there is no `{}`", target.name)))?;
            replace(&module, &function, &code).text
        }
        WriteMode::Write => {
            let outline = module.outline();
            let after = after(reply).and_then(|name| definition(&outline, &name));
            let class = target.name.function.rsplit_once('.');
            let class = class.and_then(|(name, _)| definition(&outline, name));
            let point = match (after, class) {
                // A function inserted into a class could not be called.
                (Some(after), _) if !is_method(&source) => {
                    InsertionPoint::After(at_top_level(&outline, after))
                }
                (Some(after), _) => InsertionPoint::After(after),
                (None, Some(class)) if is_method(&source) => InsertionPoint::In(class),
                (None, _) => InsertionPoint::End,
            };
            insert(&module, &code, point).text
        }
    };
    let module = Module::parse(changed);
    let done = add_imports(&module, &code.imports, &|_| false).map_err(FormatError::new)?;
    Ok(ends.join(&done.text))
}

/// Returns whether the first parameter is the object.
fn is_method(code: &str) -> bool {
    let test = code
        .lines()
        .map(str::trim_start)
        .find(|line| line.starts_with("def ") || line.starts_with("async def "));
    test.and_then(|line| line.split_once('('))
        .is_some_and(|(_, rest)| rest.starts_with("self"))
}

/// Returns the top-level definition that contains `inner`, or is it.
fn at_top_level<'o>(outline: &'o [Definition], inner: &'o Definition) -> &'o Definition {
    let around = outline
        .iter()
        .find(|d| (d.first..=d.last).contains(&inner.first));
    around.unwrap_or(inner)
}

/// Finds a definition by its qualified name, or otherwise by its plain name.
fn definition<'o>(outline: &'o [Definition], name: &str) -> Option<&'o Definition> {
    let all = flatten(outline);
    let qualified = all.iter().find(|definition| definition.qualified == name);
    let best_match = qualified.or_else(|| all.iter().find(|definition| definition.name == name));
    best_match.copied()
}

/// Returns the function that the reply names as the preceding one.
fn after(reply: &str) -> Option<String> {
    let line = reply.lines().find_map(|line| {
        let line = line.trim().trim_start_matches(['`', '*']);
        line.to_lowercase().starts_with("after:").then_some(line)
    })?;
    let name = strip_list_markers(line.split_once(':')?.1);
    let name = name.rsplit("::").next().unwrap_or(name);
    (name != "END").then(|| name.to_owned())
}

#[cfg(test)]
mod tests;
