//! Custom templates that replace the built-in ones. All of them are read and checked at once, so that a
//! mistake is reported before the first prompt is sent.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{ALL, FIELDS};

/// A problem with a folder of custom templates.
#[derive(Debug)]
pub enum FolderError {
    /// The folder or a file in it cannot be read.
    Read {
        /// Folder or file.
        path: PathBuf,
        /// Cause reported by the system.
        source: io::Error,
    },
    /// The name is not the name of a prompt.
    Unknown {
        /// Path of the template in the folder, without `.md`.
        name: String,
    },
    /// The template has a syntax error, or uses a variable that the prompt does not have.
    Broken {
        /// Name of the prompt.
        name: String,
        /// Description of the problem, for the user.
        problem: String,
    },
}

/// Custom templates, by name.
static CUSTOM_TEMPLATES: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Reads a file of text.
type ReadText<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// Replaces built-in templates by those of the same name in this folder (`NAME.md`). Only the first call has
/// an effect.
///
/// # Errors
///
/// Fails if the folder or a file cannot be read, or if a template is unknown or broken.
pub fn use_folder(folder: &Path, read_text: ReadText<'_>) -> Result<(), FolderError> {
    let mut templates = BTreeMap::new();
    read(folder, "", read_text, &mut templates)?;
    for (name, template) in &templates {
        check(name, template)?;
    }
    let _ = CUSTOM_TEMPLATES.set(templates);
    Ok(())
}

/// Returns the custom templates in use, as names and texts.
pub fn own_templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    let templates = CUSTOM_TEMPLATES.get().into_iter().flatten();
    templates.map(|(name, text)| (name.as_str(), text.as_str()))
}

pub(crate) fn own_template(name: &str) -> Option<&'static str> {
    CUSTOM_TEMPLATES.get()?.get(name).map(String::as_str)
}

fn read(
    folder: &Path,
    before: &str,
    read_text: ReadText<'_>,
    templates: &mut BTreeMap<String, String>,
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
            read(&path, &format!("{name}/"), read_text, templates)?;
        } else if let Some(name) = name.strip_suffix(".md") {
            let text = read_text(&path).map_err(failed(&path))?;
            templates.insert(name.to_owned(), text);
        }
    }
    Ok(())
}

/// Checks that a custom template uses only the fields of the prompt it replaces.
fn check(name: &str, template: &str) -> Result<(), FolderError> {
    if !ALL.iter().any(|(prompt, _)| *prompt == name) {
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
    let fields = FIELDS.iter().find(|(prompt, _)| *prompt == name);
    let fields = fields.map_or(&[][..], |(_, fields)| *fields);
    let is_known = |variable: &String| {
        let mut globals = environment.globals();
        fields.contains(&variable.as_str()) || globals.any(|(global, _)| global == variable)
    };
    let variables = compiled.undeclared_variables(false).into_iter();
    let mut unknown: Vec<String> = variables.filter(|variable| !is_known(variable)).collect();
    unknown.sort_unstable();
    match unknown.first() {
        None => Ok(()),
        Some(variable) => Err(broken(match fields {
            [] => format!("it uses `{variable}`, and this prompt has no fields"),
            fields => format!(
                "it uses `{variable}`; the fields of this prompt are: {}",
                fields.join(", ")
            ),
        })),
    }
}

#[cfg(test)]
mod tests;
