//! Retrieval of the code to show a model.

use testwright_agent_prompts::{CodeFile, TestFile, ZeroShotTask};
use testwright_sandboxes::repository::Tree;
use testwright_tools::tools::count;

use super::super::ApproachContext;
use super::super::extra_inputs::{self, GIVEN_FILES, GIVEN_PATCH, GIVEN_TESTS};
use crate::agent::{Flow, Outcome, Run};
use crate::retrieval::{self, Index, RetrievedFile, tokens};

/// Maximum tokens of code in a prompt (SWT-bench §5.1).
pub(crate) const CODE_TOKENS: usize = 27_000;

/// Builds the task from the issue and the files that share the most words with it (BM25), within the budget.
/// Extra inputs come first: the code patch, then the test files to change, which get half of the remaining
/// tokens. Lines are numbered if replies refer to line numbers.
pub(crate) fn retrieve(
    run: &mut Run,
    tree: &Tree,
    context: &ApproachContext,
    are_numbered: bool,
) -> Flow<ZeroShotTask> {
    let (inputs, options) = (&context.extra_inputs, &context.options);
    let is_there = (!extra_inputs::takes_patch(options) || inputs.code_patch.is_some())
        && (!extra_inputs::takes_tests(options) || !inputs.test_files.is_empty());
    if !is_there {
        return Err(Outcome::infrastructure(
            "an option of the approach needs an input that is missing",
        ));
    }
    let mut remaining_tokens = context.code_tokens();
    let (mut notes, mut beyond) = (Vec::new(), Vec::new());
    let patch = inputs.code_patch.as_deref().map(str::trim_end);
    let (mut code_patch, mut is_patch_cut) = (None, false);
    if let Some(full_patch) = patch.filter(|_| options.is_on(&GIVEN_PATCH)) {
        let excerpt = tokens::first(full_patch, remaining_tokens);
        let count = tokens::count(excerpt);
        remaining_tokens -= count;
        is_patch_cut = excerpt.len() < full_patch.len();
        code_patch = Some(excerpt.to_owned());
        beyond.push("a code patch".to_owned());
        let cut = if is_patch_cut { ", cut" } else { "" };
        notes.push(format!("given a code patch of {count} tokens{cut}"));
    }
    let mut test_files = Vec::new();
    if options.is_on(&GIVEN_TESTS) {
        test_files =
            shown_test_files(tree, &inputs.test_files, remaining_tokens / 2, are_numbered)?;
        let count = |file: &TestFile| tokens::count(&file.text);
        remaining_tokens -= test_files.iter().map(count).sum::<usize>();
        notes.push(format!("given {}", inputs.test_files.join(", ")));
        beyond.push(format!("test files: {}", inputs.test_files.join(", ")));
    }
    let are_of_patch = options.is_on(&GIVEN_FILES);
    if are_of_patch {
        beyond.push("the files that a code patch changes".to_owned());
    }
    run.set_extra_inputs(beyond);
    let retrieved_files = match patch.filter(|_| are_of_patch) {
        Some(patch) => {
            let mut paths = changed_files(tree, patch)?;
            paths.retain(|path| !test_files.iter().any(|file| file.path == *path));
            retrieval::within(&read(tree, paths)?, remaining_tokens, are_numbered)
        }
        None => {
            let index = Index::from_tree(tree)?;
            let mut ranked = index.ranked(&run.issue.folded_text());
            ranked.retain(|other| !test_files.iter().any(|file| file.path == other.path));
            retrieval::within(ranked, remaining_tokens, are_numbered)
        }
    };
    let count_omitted_lines = |file: &RetrievedFile| {
        let full_text = tree.text(&file.path).ok().flatten()?;
        let lines = full_text.lines().count();
        lines.checked_sub(file.text.lines().count())
    };
    let lines_left_out = retrieved_files.last().and_then(count_omitted_lines);
    let files = retrieved_files.iter();
    let tokens: usize = files.clone().map(|file| tokens::count(&file.text)).sum();
    let paths: Vec<&str> = files.map(|file| file.path.as_str()).collect();
    let which = match are_of_patch {
        true => " that the code patch changes",
        false => "",
    };
    let (files, paths) = (count(paths.len(), "file"), paths.join(", "));
    notes.push(format!("{files}{which}, {tokens} tokens: {paths}"));
    run.stage("retrieve", notes.join("; "))?;
    let files = retrieved_files.into_iter().map(|file| CodeFile {
        path: file.path,
        text: file.text,
    });
    Ok(ZeroShotTask {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
        code_patch,
        is_patch_cut,
        test_files,
        files: files.collect(),
        are_of_patch,
        lines_left_out: lines_left_out.unwrap_or_default(),
        are_numbered,
    })
}

/// Returns test files as they are in the old code, within the budget.
fn shown_test_files(
    tree: &Tree,
    paths: &[String],
    budget: usize,
    are_numbered: bool,
) -> Flow<Vec<TestFile>> {
    let mut remaining_tokens = budget;
    let mut files = Vec::new();
    for path in paths {
        let content = tree.text(path)?;
        let is_new = content.is_none();
        let full_text = retrieval::shown(&content.unwrap_or_default(), are_numbered);
        let text = tokens::first(&full_text, remaining_tokens);
        remaining_tokens -= tokens::count(text);
        files.push(TestFile {
            path: path.clone(),
            text: text.to_owned(),
            is_new,
            is_cut: text.len() < full_text.len(),
        });
    }
    Ok(files)
}

fn changed_files(tree: &Tree, patch: &str) -> Flow<Vec<String>> {
    let changed = extra_inputs::changed_files(tree, patch)?;
    changed.map_err(|why| {
        Outcome::infrastructure(format!(
            "the code patch does not apply to the old code: {why}"
        ))
    })
}

fn read(tree: &Tree, paths: Vec<String>) -> Flow<Vec<RetrievedFile>> {
    let mut files = Vec::new();
    for path in paths {
        if let Some(text) = tree.text(&path)? {
            files.push(RetrievedFile { path, text });
        }
    }
    Ok(files)
}
