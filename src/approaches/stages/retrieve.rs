//! Finding the code that a model is shown.

use testwright_agent_prompts::{CodeFile, ZeroShotTask};
use testwright_sandboxes::repository::Tree;

use crate::agent::{Outcome, Run, infrastructure};
use crate::retrieval::{Index, RetrievedFile, tokens};

/// Tokens of code that a prompt may hold (SWT-bench §5.1).
pub const CODE_TOKENS: usize = 27_000;

/// The issue, and the files that share the most words with it (BM25), as far as the budget goes, in tokens.
pub fn retrieve(run: &mut Run, tree: &Tree, budget: usize) -> Result<ZeroShotTask, Outcome> {
    let index = Index::of(tree).map_err(infrastructure)?;
    let found = index.within(&run.issue.folded_text(), budget);
    let is_cut = |file: &RetrievedFile| {
        let whole = tree.text(&file.path).ok().flatten();
        whole.is_some_and(|whole| whole.len() > file.text.len())
    };
    let is_cut = found.last().is_some_and(is_cut);
    let tokens: usize = found.iter().map(|file| tokens::count(&file.text)).sum();
    let paths: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
    run.stage(
        "retrieve",
        format!(
            "{} files, {tokens} tokens: {}",
            found.len(),
            paths.join(", ")
        ),
    )?;
    let files = found.into_iter().map(|file| CodeFile {
        path: file.path,
        text: file.text,
    });
    Ok(ZeroShotTask {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
        files: files.collect(),
        is_cut,
    })
}
