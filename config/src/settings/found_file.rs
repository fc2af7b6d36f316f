//! Restricts a `testwright.toml` that was found in a folder. The folder may hold untrusted code, whether it
//! is the repository under test or just the current folder. So such a file never counts as the user's own.
//!
//! The keys here are an allowlist: any other key is ignored, including keys added later.

use std::path::Path;

use testwright_sandboxes::recipe::IMAGE_KEYS;
use toml::{Table, Value};

use super::layer::{Layer, insert};
use super::{FILE, Origin, Settings};
use crate::error::Result;

/// Section on how the repository is built and tested; all of that happens in the sandbox.
pub(super) const RECIPE: &str = "environment";

type Limit = fn(&Settings) -> Option<f64>;

/// Keys that a recipe in a found file must not have; see [`IMAGE_KEYS`].
pub(super) const NOT_IN_RECIPE: [&str; 2] = IMAGE_KEYS;

/// Limits, which are greater than 0, and which a found file may lower. `None` means that there is no limit.
pub(super) const LIMITS: [(&str, Limit); 11] = [
    ("run.max-steps", |s| Some(s.run.max_steps as f64)),
    ("run.max-dollars", |s| s.run.max_dollars),
    ("run.max-tokens", |s| s.run.max_tokens.map(|n| n as f64)),
    ("run.max-minutes", |s| Some(s.run.max_minutes)),
    ("limits.memory", |s| Some(s.limits.memory.bytes() as f64)),
    ("limits.processes", |s| Some(s.limits.processes as f64)),
    ("limits.cpus", |s| Some(s.limits.cpus)),
    ("limits.file-size", |s| {
        Some(s.limits.file_size.bytes() as f64)
    }),
    ("limits.disk", |s| Some(s.limits.disk.bytes() as f64)),
    ("limits.files", |s| Some(s.limits.files as f64)),
    ("limits.test-seconds", |s| {
        Some(s.limits.test_seconds as f64)
    }),
];

/// Maximum number of keys named in a note; it only counts the rest.
const MAX_NAMED_KEYS: usize = 8;

/// Returns the allowed part of a found file. `below` holds the values of the lower layers. `recipe` says
/// whether the folder is the repository under test, so that its recipe counts.
pub(super) fn restrict(
    layer: Layer,
    below: &Table,
    recipe: bool,
    file: &Path,
    user_file: Option<&Path>,
) -> Result<Layer> {
    let mut allowed_layer = Layer::default();
    let mut refused = Vec::new();
    let mut image = None;
    for (keys, mut value, origin) in layer.values {
        let key = keys.join(".");
        if key == RECIPE && recipe {
            if let Value::Table(recipe) = &mut value {
                let mut ignored_keys: Vec<String> = Vec::new();
                for key in NOT_IN_RECIPE {
                    ignored_keys.extend(recipe.remove(key).map(|_| format!("`{RECIPE}.{key}`")));
                }
                if !ignored_keys.is_empty() {
                    image = Some(format!("{origin}: ignored {}", ignored_keys.join(" and ")));
                }
            }
            allowed_layer.values.push((keys, value, origin));
            continue;
        }
        let Some((_, limit)) = LIMITS.iter().find(|(name, _)| *name == key) else {
            refused.push((key, origin));
            continue;
        };
        let mut with = below.clone();
        insert(&mut with, &keys, &value);
        let (before, after) = (limit(&settings(below)?), limit(&settings(&with)?));
        let lower = match (before, after) {
            (Some(before), Some(after)) => after < before,
            (None, Some(after)) => after.is_finite(),
            (_, None) => false,
        };
        if lower {
            allowed_layer.values.push((keys, value, origin));
        } else if after != before {
            allowed_layer.notes.push(format!(
                "{origin}: `{key}` = {value} is ignored: a file found in a folder may lower a limit, but not raise it"
            ));
        }
    }
    if let Some(image_note) = image {
        allowed_layer.notes.push(format!(
            "{image_note}: a file found in a folder must not set an image; set it with --image or with run.image in {}, or trust the whole file with --config {}",
            own(user_file),
            file.display()
        ));
    }
    if !refused.is_empty() {
        allowed_layer.notes.push(note(&refused, file, user_file));
    }
    Ok(allowed_layer)
}

fn settings(table: &Table) -> Result<Settings> {
    super::from_table(table.clone())
}

fn note(refused: &[(String, Origin)], file: &Path, user_file: Option<&Path>) -> String {
    let ignored_keys: Vec<String> = refused
        .iter()
        .take(MAX_NAMED_KEYS)
        .map(|(key, _)| format!("`{key}`"))
        .collect();
    let more = match refused.len().saturating_sub(MAX_NAMED_KEYS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let place = match refused.first() {
        Some((_, Origin::File(path, _))) => path.display().to_string(),
        _ => FILE.to_owned(),
    };
    let own = own(user_file);
    format!(
        "{place}: ignored {}{more}: a file found in a folder may only say how its own repository is built ([environment]) and reduce limits; put such keys into {own}, or trust the whole file with --config {}",
        ignored_keys.join(", "),
        file.display()
    )
}

fn own(user_file: Option<&Path>) -> String {
    user_file.map_or_else(
        || "your own settings".to_owned(),
        |path| path.display().to_string(),
    )
}
