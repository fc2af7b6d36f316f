//! Parser for recipes. An error for an unknown key suggests the nearest known one.

use serde::de::DeserializeOwned;

use super::Recipe;
use crate::error::SandboxError;
use crate::sandbox::Result;

/// Parses a recipe from TOML. `place` is the name of the file for error messages.
///
/// # Errors
///
/// Fails if the text is not valid TOML, or has an unknown key or an invalid value.
pub fn parse(text: &str, place: &str) -> Result<Recipe> {
    let recipe = read(text, place)?;
    check(&recipe, place)?;
    Ok(recipe)
}

/// Parses a recipe from a TOML table.
///
/// # Errors
///
/// Fails if the table has an unknown key or an invalid value.
pub fn parse_table(table: toml::Table, place: &str) -> Result<Recipe> {
    let recipe = table
        .try_into()
        .map_err(|e: toml::de::Error| refused(e.message(), place))?;
    check(&recipe, place)?;
    Ok(recipe)
}

/// Returns the `[environment]` table of a settings file, if it has one.
pub(super) fn environment_table(text: &str, place: &str) -> Result<Option<toml::Table>> {
    take_environment(&mut read(text, place)?, place)
}

/// Removes the table `environment` from the settings of a file, if they have one.
pub(super) fn take_environment(
    settings: &mut toml::Table,
    place: &str,
) -> Result<Option<toml::Table>> {
    match settings.remove("environment") {
        None => Ok(None),
        Some(toml::Value::Table(table)) => Ok(Some(table)),
        Some(_) => Err(SandboxError::input(format!(
            "{place}: `environment` is not a table"
        ))),
    }
}

/// Replaces keys of `recipe` by those of `table`. Nested tables (`env`, `runner`) are merged key by key.
pub(super) fn merge_recipe(recipe: &Recipe, table: toml::Table, place: &str) -> Result<Recipe> {
    let mut base =
        toml::Table::try_from(recipe).map_err(|e| SandboxError::system(format!("{place}: {e}")))?;
    merge(&mut base, table);
    parse_table(base, place)
}

pub(super) fn merge(base: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => merge(old, new),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

pub(super) fn read<T: DeserializeOwned>(text: &str, place: &str) -> Result<T> {
    toml::from_str(text).map_err(|e: toml::de::Error| {
        let line = e
            .span()
            .map(|s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        let place = match line {
            Some(line) => format!("{place}:{line}"),
            None => place.to_owned(),
        };
        refused(e.message(), &place)
    })
}

/// Builds the error from serde's message, such as ``unknown field `pyhton`, expected one of `python`, `image```.
fn refused(message: &str, place: &str) -> SandboxError {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field")
        && let Some(unknown) = quoted.next()
    {
        let error = SandboxError::input(format!("{place}: unknown key `{unknown}`"));
        let nearest = quoted.max_by(|a, b| {
            strsim::jaro_winkler(a, unknown).total_cmp(&strsim::jaro_winkler(b, unknown))
        });
        return match nearest {
            Some(suggestion) => error.hint(format!("did you mean `{suggestion}`?")),
            None => error,
        };
    }
    SandboxError::input(format!("{place}: {}", message.trim()))
}

/// Checks the constraints that the types alone cannot express.
pub(super) fn check(recipe: &Recipe, place: &str) -> Result<()> {
    let input = |message: String| SandboxError::input(format!("{place}: {message}"));
    if let Some(python) = &recipe.python
        && super::python_version::parse(python).is_none()
    {
        return Err(
            input(format!("invalid python `{python}`")).hint("write it as X.Y, e.g. \"3.11\"")
        );
    }
    for package in &recipe.system_packages {
        if !is_debian_package(package) {
            return Err(input(format!(
                "system-packages has `{package}`, which is not the name of a Debian package"
            ))
            .hint(
                "write names such as \"libpq-dev\", \"libpq-dev=15.5-0\" or \"libpq-dev:amd64\"",
            ));
        }
    }
    if !super::RUNNERS.contains(&recipe.runner.kind.as_str()) {
        return Err(input(format!("unknown runner `{}`", recipe.runner.kind))
            .hint(format!("use one of {}", super::RUNNERS.join(", "))));
    }
    if let Some(date) = &recipe.exclude_newer
        && date != "never"
        && super::python_version::timestamp(date).is_none()
    {
        return Err(input(format!("invalid exclude-newer `{date}`"))
            .hint("write a date such as \"2024-10-01\", a time such as \"2024-10-01T00:00:00Z\", or \"never\""));
    }
    let mut names = Vec::new();
    for service in &recipe.services {
        let name = &service.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(plain) || names.contains(&name) {
            return Err(input(format!("invalid or duplicate service name `{name}`"))
                .hint("use a unique name of letters, digits and hyphens, e.g. \"httpbin\""));
        }
        if service.command.is_empty() || service.port == 0 {
            return Err(input(format!(
                "the service `{name}` needs a command and a port"
            )));
        }
        names.push(name);
    }
    for folder in &recipe.projects {
        let is_outside = folder.starts_with('/') || folder.split('/').any(|part| part == "..");
        if folder.is_empty() || is_outside {
            return Err(input(format!("invalid project folder `{folder}`"))
                .hint("write a path below the root of the repository, e.g. \"packages/core\""));
        }
    }
    if recipe.interpreter.is_some() && recipe.image.is_none() {
        return Err(input("`interpreter` needs an `image`".to_owned()));
    }
    Ok(())
}

/// Returns whether the text is `NAME` or `NAME:ARCHITECTURE`, optionally followed by `=VERSION` (Debian Policy 5.6.1,
/// 5.6.8, 5.6.12).
///
/// Anything else that apt would accept is rejected: options, files, and `NAME-` to remove a package.
fn is_debian_package(text: &str) -> bool {
    let (name, version) = match text.split_once('=') {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    let (name, architecture) = match name.split_once(':') {
        Some((name, architecture)) => (name, Some(architecture)),
        None => (name, None),
    };
    let is_small = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let all = |text: &str, more: &[u8]| {
        let fits = |b: u8| b.is_ascii_alphanumeric() || more.contains(&b);
        text.bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
            && text.bytes().all(fits)
    };
    name.len() > 1
        && name.bytes().next().is_some_and(is_small)
        && name.bytes().all(|b| is_small(b) || b"+-.".contains(&b))
        && !name.ends_with('-')
        && architecture.is_none_or(|text| all(text, b"-"))
        && version.is_none_or(|text| all(text, b".+~:-"))
}
