//! Templates of a user's own, which stand in for ours: read and checked all at once, so that what is wrong with one shows
//! before the first is sent.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{ALL, FIELDS};

#[derive(Debug)]
pub enum FolderError {
    Read {
        path: PathBuf,
        source: io::Error,
    },
    /// There is no prompt of this name.
    Unknown {
        name: String,
    },
    /// It is no template, or speaks of what the prompt does not have.
    Broken {
        name: String,
        problem: String,
    },
}

/// By name.
static IN_USE: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Reads a file of text.
type ReadText<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// From now on, templates of this folder (`NAME.md`) stand in for ours of the same name. The first call counts.
pub fn use_folder(folder: &Path, read_text: ReadText<'_>) -> Result<(), FolderError> {
    let mut found = BTreeMap::new();
    read(folder, "", read_text, &mut found)?;
    for (name, template) in &found {
        check(name, template)?;
    }
    let _ = IN_USE.set(found);
    Ok(())
}

/// Templates of the user's own, by name.
pub fn own_templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    let found = IN_USE.get().into_iter().flatten();
    found.map(|(name, text)| (name.as_str(), text.as_str()))
}

pub(crate) fn own_template(name: &str) -> Option<&'static str> {
    IN_USE.get()?.get(name).map(String::as_str)
}

fn read(
    folder: &Path,
    before: &str,
    read_text: ReadText<'_>,
    found: &mut BTreeMap<String, String>,
) -> Result<(), FolderError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FolderError::Read { path, source }
    };
    for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
        let entry = entry.map_err(failed(folder))?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = format!("{before}{}", name.to_string_lossy());
        if path.is_dir() {
            read(&path, &format!("{name}/"), read_text, found)?;
        } else if let Some(name) = name.strip_suffix(".md") {
            let text = read_text(&path).map_err(failed(&path))?;
            found.insert(name.to_owned(), text);
        }
    }
    Ok(())
}

/// A template over ours may name nothing that ours may not.
fn check(name: &str, template: &str) -> Result<(), FolderError> {
    if !ALL.iter().any(|(known, _)| *known == name) {
        return Err(FolderError::Unknown {
            name: name.to_owned(),
        });
    }
    let broken = |problem: String| FolderError::Broken {
        name: name.to_owned(),
        problem,
    };
    let environment = minijinja::Environment::new();
    let compiled = environment.template_from_named_str(name, template);
    let compiled = compiled.map_err(|error| broken(format!("{error:#}")))?;
    let fields = FIELDS.iter().find(|(known, _)| *known == name);
    let fields = fields.map_or(&[][..], |(_, fields)| *fields);
    let is_known = |variable: &String| {
        let mut globals = environment.globals();
        fields.contains(&variable.as_str()) || globals.any(|(global, _)| global == variable)
    };
    let named = compiled.undeclared_variables(false).into_iter();
    let mut unknown: Vec<String> = named.filter(|variable| !is_known(variable)).collect();
    unknown.sort_unstable();
    match unknown.first() {
        None => Ok(()),
        Some(variable) => Err(broken(match fields {
            [] => format!("it speaks of `{variable}`, and this prompt has no fields"),
            fields => format!(
                "it speaks of `{variable}`; the fields of this prompt are: {}",
                fields.join(", ")
            ),
        })),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn our_own_templates_pass() {
        for (name, template) in ALL {
            check(name, template).unwrap();
        }
    }

    #[test]
    fn what_is_wrong_with_a_template_shows_before_it_is_used() {
        let problem = |name: &str, template: &str| match check(name, template).unwrap_err() {
            FolderError::Broken { problem, .. } => problem,
            other => format!("{other:?}"),
        };
        assert_eq!(
            problem("review-doubt", "{{ reasons }}"),
            "it speaks of `reasons`; the fields of this prompt are: opinion, reason, beyond"
        );
        assert_eq!(
            problem("try-a-fix", "{{ reason }}"),
            "it speaks of `reason`, and this prompt has no fields"
        );
        assert!(problem("review", "{% if issue %}").contains("syntax error"));
        assert!(problem("reviews", "").contains("Unknown"));
        check(
            "review-doubt",
            "{% for line in beyond %}{{ line }}{% endfor %}",
        )
        .unwrap();
    }

    #[test]
    fn names_are_paths_without_their_ending() {
        let folder = tempfile_dir();
        std::fs::create_dir_all(folder.join("zero-shot")).unwrap();
        std::fs::write(folder.join("zero-shot/task.md"), "x").unwrap();
        std::fs::write(folder.join("notes.txt"), "x").unwrap();
        let mut found = BTreeMap::new();
        let read_text = |path: &Path| std::fs::read_to_string(path);
        read(&folder, "", &read_text, &mut found).unwrap();
        assert_eq!(found.into_keys().collect::<Vec<_>>(), ["zero-shot/task"]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn tempfile_dir() -> PathBuf {
        let name = format!("testwright-prompts-{}", std::process::id());
        std::env::temp_dir().join(name)
    }
}
