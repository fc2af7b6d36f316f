//! Custom prompts, which replace built-in ones, and a digest to check that a resumed run has the same.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use sha2::{Digest, Sha256};
use testwright_agent_prompts::{ALL, FolderError, own_templates, use_folder};
use testwright_sandboxes::plain_file::{self, Links};

use testwright_config::error::{Error, Result};
use testwright_config::hex::hex;

/// Maximum bytes of one prompt.
const MAX_PROMPT: u64 = 4 << 20;

/// Loads custom prompts for use from now on.
///
/// # Errors
///
/// Fails if the folder or a prompt cannot be read, or if a prompt is unknown or broken.
pub fn load(folder: &Path) -> Result<()> {
    let failed = Error::usage("use custom prompts");
    if !folder.is_dir() {
        return Err(failed
            .cause(format!("{} is not a folder", folder.display()))
            .hint("pass a folder with files such as libro/judge.md"));
    }
    let read = |path: &Path| plain_file::read_text(path, Links::Refuse, MAX_PROMPT);
    use_folder(folder, &read).map_err(|error| match error {
        FolderError::Read { path, source } => {
            failed.cause(format!("{} cannot be read: {source}", path.display()))
        }
        FolderError::Unknown { name } => {
            let names = ALL.iter().map(|(prompt, _)| *prompt);
            let nearest = names.max_by(|a, b| {
                let score = |prompt| strsim::jaro_winkler(&name, prompt);
                score(a).total_cmp(&score(b))
            });
            failed
                .cause(format!("there is no prompt `{name}`"))
                .hint(format!(
                    "use a name such as {}.md; `testwright approaches` lists all",
                    nearest.unwrap_or_default()
                ))
        }
        FolderError::Broken { name, problem } => failed.cause(format!("{name}.md: {problem}")),
    })
}

/// Writes the built-in prompts to a folder as a base for custom ones, and returns their number. Existing files are not
/// replaced.
///
/// # Errors
///
/// Fails if a file exists or cannot be written.
pub fn export(folder: &Path) -> Result<usize> {
    for (name, template) in ALL {
        let path = folder.join(format!("{name}.md"));
        let write = || {
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            let mut file = File::options().write(true).create_new(true).open(&path)?;
            file.write_all(template.as_bytes())
        };
        let written: std::io::Result<()> = write();
        written.map_err(|error| {
            let message = format!("write {}", path.display());
            match error.kind() {
                std::io::ErrorKind::AlreadyExists => Error::usage(message)
                    .cause("the file exists")
                    .hint("choose another folder"),
                _ => Error::io(message, &error),
            }
        })?;
    }
    Ok(ALL.len())
}

/// Returns a digest of the names and contents; `None` if there are no custom prompts.
pub fn digest() -> Option<String> {
    let own: Vec<(&str, &str)> = own_templates().collect();
    if own.is_empty() {
        return None;
    }
    let text = serde_json::to_vec(&own).unwrap_or_default();
    Some(hex(&Sha256::digest(text)))
}

/// Checks that the custom prompts are those of the run to resume.
///
/// # Errors
///
/// Fails with `failed` if they are not.
pub fn check_same(earlier: Option<&str>, failed: Error) -> Result<()> {
    let now = digest();
    if earlier == now.as_deref() {
        return Ok(());
    }
    let (cause, hint) = match (earlier, now) {
        (None, _) => ("it was started without custom prompts", "omit --prompts"),
        (Some(_), None) => (
            "it was started with custom prompts",
            "pass their folder with --prompts",
        ),
        (Some(_), Some(_)) => (
            "it was started with other custom prompts, or they were changed",
            "pass the same unchanged folder with --prompts",
        ),
    };
    Err(failed.cause(cause).hint(hint))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn export_keeps_existing_files() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(export(folder.path()).unwrap(), ALL.len());
        let error = export(folder.path()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        load(folder.path()).unwrap();
    }
}
