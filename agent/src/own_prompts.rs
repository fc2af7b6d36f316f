//! Prompts of the user's own: which of ours they stand in for, and a digest by which a run knows them again.

use std::path::Path;

use sha2::{Digest, Sha256};
use testwright_agent_prompts::{ALL, FolderError, own_templates, use_folder};
use testwright_sandboxes::plain_file::{self, Links};

use testwright_config::error::{Error, Result};
use testwright_config::hex::hex;

/// Bytes of one prompt.
const MAX_PROMPT: u64 = 4 << 20;

/// From now on they are used; refused where one of them could not be.
pub fn load(folder: &Path) -> Result<()> {
    let failed = Error::usage("use prompts of your own");
    if !folder.is_dir() {
        return Err(failed
            .cause(format!("{} is not a folder", folder.display()))
            .hint("name a folder with files such as libro/judge.md"));
    }
    let read = |path: &Path| plain_file::read_text(path, Links::Refuse, MAX_PROMPT);
    use_folder(folder, &read).map_err(|error| match error {
        FolderError::Read { path, source } => {
            failed.cause(format!("{} cannot be read: {source}", path.display()))
        }
        FolderError::Unknown { name } => {
            let names = ALL.iter().map(|(known, _)| *known);
            let nearest = names.max_by(|a, b| {
                let score = |known| strsim::jaro_winkler(&name, known);
                score(a).total_cmp(&score(b))
            });
            failed
                .cause(format!("there is no prompt `{name}`"))
                .hint(format!(
                    "the nearest name is {}.md; `testwright approaches` shows all",
                    nearest.unwrap_or_default()
                ))
        }
        FolderError::Broken { name, problem } => failed.cause(format!("{name}.md: {problem}")),
    })
}

/// Of their names and contents; `None` where there are none.
pub fn digest() -> Option<String> {
    let own: Vec<(&str, &str)> = own_templates().collect();
    if own.is_empty() {
        return None;
    }
    let text = serde_json::to_vec(&own).unwrap_or_default();
    Some(hex(&Sha256::digest(text)))
}

/// Are they those of a run that is gone on with?
pub fn check_same(earlier: Option<&str>, failed: Error) -> Result<()> {
    let now = digest();
    if earlier == now.as_deref() {
        return Ok(());
    }
    let (cause, hint) = match (earlier, now) {
        (None, _) => (
            "it was begun without prompts of your own",
            "leave out --prompts",
        ),
        (Some(_), None) => (
            "it was begun with prompts of your own",
            "name their folder with --prompts",
        ),
        (Some(_), Some(_)) => (
            "it was begun with other prompts of your own, or they were changed",
            "name the same folder with --prompts, as it was",
        ),
    };
    Err(failed.cause(cause).hint(hint))
}
