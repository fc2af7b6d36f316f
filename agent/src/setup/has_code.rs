//! Rejects a folder without code before anything is built for it.

use std::path::Path;

use testwright_config::error::{Error, Result};
use testwright_sandboxes::repository::Source;

/// Rejects a folder without git that has no Python code. The hint names a repository in the folder, if there is one.
pub(super) fn check(source: &Source, location: &str) -> Result<()> {
    if source.commit.is_some() || source.has_python()? {
        return Ok(());
    }
    let error = Error::usage(format!("read the repository {location}"));
    Err(match nested_repository(location) {
        Some(nested) => error
            .cause("the folder contains repositories, but no Python code of its own")
            .hint(format!("use --repo {nested}")),
        None => error
            .cause("the folder has neither a git repository nor Python code")
            .hint("name the repository with --repo"),
    })
}

/// Returns the path of the first repository in a folder, if a shell can read it without quotes.
fn nested_repository(location: &str) -> Option<String> {
    let entries = std::fs::read_dir(location).ok()?.flatten();
    let nested = entries.filter(|entry| entry.path().join(".git").exists());
    let mut names: Vec<String> = nested
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    let name = names.into_iter().next()?;
    let path = match location {
        "." => name,
        folder => Path::new(folder).join(name).to_str()?.to_owned(),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    (path.chars().all(is_plain) && !path.starts_with('-')).then_some(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn first_plain_nested_repository_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().to_str().unwrap();
        std::fs::create_dir(folder.path().join("also")).unwrap();
        assert_eq!(nested_repository(location), None);
        for name in ["flask", "click"] {
            std::fs::create_dir_all(folder.path().join(name).join(".git")).unwrap();
        }
        let expected = Some(format!("{location}/click"));
        assert_eq!(nested_repository(location), expected);
        std::fs::create_dir_all(folder.path().join("a b/.git")).unwrap();
        assert_eq!(nested_repository(location), None);
    }
}
