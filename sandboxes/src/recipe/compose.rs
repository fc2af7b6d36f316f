//! Compose files: the values of their variables, and the files with a container's variables.

use std::collections::BTreeMap;

use regex::Captures;

use super::assignments::assignments;
use super::detect::{join, text};
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Endings of templates that are committed instead of a file, such as `.env.example`.
const TEMPLATES: [&str; 7] = [
    "",
    ".example",
    ".sample",
    ".dist",
    ".template",
    "-example",
    "-sample",
];

/// `${NAME}`, `${NAME:-default}` and `$NAME`.
static VARIABLE: Pattern = Pattern::new(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|([A-Za-z_]\w*))");

/// Returns the text of a compose file with the values of its variables: those in `.env` beside it, otherwise their
/// defaults. Returns other files unchanged.
pub(super) fn expanded(tree: &Tree, path: &str) -> Result<String> {
    let text = text(tree, path)?.unwrap_or_default();
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if !name.contains("compose") {
        return Ok(text);
    }
    let env = variables_file(tree, folder, ".env")?.unwrap_or_default();
    let values: BTreeMap<String, String> = assignments(&env).into_iter().collect();
    let value = |captures: &Captures<'_>| {
        let part = |at: usize| captures.get(at).map(|part| part.as_str());
        let name = part(1).or(part(3)).unwrap_or_default();
        let value = values.get(name).map(String::as_str).or(part(2));
        value.unwrap_or_default().to_owned()
    };
    Ok(VARIABLE.replace_all(&text, value).into_owned())
}

/// Adds the files with variables that the declaration of a container names. `path` is the file that declares it.
pub(super) fn with_variables(tree: &Tree, path: &str, declaration: &str) -> Result<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut all = declaration.to_owned();
    for word in declaration.split_whitespace() {
        if word.contains(".env") {
            let name = word.trim_matches(['"', '\'', '[', ']', ',']);
            all.push('\n');
            all.push_str(&variables_file(tree, folder, name)?.unwrap_or_default());
        }
    }
    Ok(all)
}

/// Returns the text of a file with variables, or of its template.
fn variables_file(tree: &Tree, folder: &str, name: &str) -> Result<Option<String>> {
    let paths = TEMPLATES.map(|ending| join(folder, &format!("{name}{ending}")));
    let path = paths.into_iter().flatten().find(|path| tree.contains(path));
    path.map_or(Ok(None), |path| text(tree, &path))
}
