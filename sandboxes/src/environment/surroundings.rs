//! Environment variables and services that tests need besides packages. Both are added to an environment
//! that is already built, if the repository's files say what is needed.

use std::collections::BTreeMap;

use super::Environment;
use super::build::Build;
use super::failure_hints::{SET, missing_variables};
use super::import_folders;
use super::smoke_test::SmokeTestReport;
use crate::pattern::Pattern;
use crate::recipe::{self, NamedVariable, Recipe, Service};
use crate::repository::Tree;
use crate::sandbox::{Result, SandboxSource};

/// Parts of variables' names whose value does not matter to tests, only that there is one.
const ANY_VALUE: [&str; 6] = ["SECRET", "TOKEN", "PASSWORD", "API_KEY", "APIKEY", "SALT"];

/// Parts of the names of variables that hold the name of a server, which is this machine in tests.
const HOST_NAMES: [&str; 3] = ["SERVER_NAME", "HOST", "DOMAIN"];

/// Port of PostgreSQL, whose client does not print it for another machine.
const POSTGRESQL_PORT: u16 = 5432;

/// Patterns of connections and their ports, additional signs of failure, and whether the port is on this machine. Other
/// ports are in another container, whose name is unknown here.
static FAILED_CONNECTIONS: [(Pattern, &[&str], bool); 4] = [
    (Pattern::new(r"\.s\.PGSQL\.(\d+)\b"), &[], true),
    (
        Pattern::new(
            r#"(?:localhost|127\.0\.0\.1|\[?::1\]?)["')\s]*(?:\([^)]*\))?[:,\s]+(?:port[ =:]+)?(\d{2,5})\b"#,
        ),
        &[
            "Connection refused",
            "ECONNREFUSED",
            "Errno 111",
            "Error 111",
        ],
        true,
    ),
    (
        Pattern::new("could not translate host name|failed to resolve host"),
        &[],
        false,
    ),
    (
        Pattern::new(r"Error -\d+ connecting to [\w-]+:(\d+)"),
        &[],
        false,
    ),
];

/// Variables with the author of commits, for tests that create some. Developers have them in their configuration.
const GIT_IDENTITY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "testwright"),
    ("GIT_AUTHOR_EMAIL", "testwright@localhost"),
    ("GIT_COMMITTER_NAME", "testwright"),
    ("GIT_COMMITTER_EMAIL", "testwright@localhost"),
];

/// Variable that makes Qt draw into memory, because sandboxes have no display.
const WITHOUT_DISPLAY: [(&str, &str); 1] = [("QT_QPA_PLATFORM", "offscreen")];

/// Returns a recipe with what verification added to an environment.
pub(super) fn merged_recipe(recipe: &Recipe, environment: &Environment) -> Recipe {
    let mut env = environment.recipe.env.clone();
    env.extend(recipe.env.clone());
    Recipe {
        env,
        services: environment.recipe.services.clone(),
        before_tests: environment.recipe.before_tests.clone(),
        requirements: environment.recipe.requirements.clone(),
        ..recipe.clone()
    }
}

/// Returns the notes about variables whose values were guessed.
pub(super) fn guessed_variables(notes: &[String]) -> Vec<String> {
    let is_variable = |note: &&String| {
        let rest = note.strip_prefix(SET);
        rest.is_some_and(|rest| rest.contains('='))
    };
    notes.iter().filter(is_variable).cloned().collect()
}

impl Build<'_> {
    /// Adds the variables and services that a report asks for. Returns whether anything was added.
    pub(super) async fn complete_surroundings(
        &self,
        environment: &mut Environment,
        report: &SmokeTestReport,
        tree: &Tree,
    ) -> Result<bool> {
        let printed = report.printed_lines();
        let printed = [("pytest", printed.text.as_str())];
        let complaints: Vec<(&str, &str)> = report.complaints().chain(printed).collect();
        let mut added = add_variables(environment, &complaints, tree)?;
        for (asked_by, text) in &complaints {
            added |= import_folders::add(environment, asked_by, text, tree);
            if lacks_git_identity(text) {
                added |=
                    add_fixed_variables(environment, asked_by, "an author for git", &GIT_IDENTITY);
            }
            if lacks_display(text) {
                added |= add_fixed_variables(
                    environment,
                    asked_by,
                    "Qt to need no display",
                    &WITHOUT_DISPLAY,
                );
            }
        }
        if self.plan.guess.services && self.recipe.image.is_none() {
            for (asked_by, text) in &complaints {
                added |= self.add_service(environment, asked_by, text, tree).await?;
            }
        }
        Ok(added)
    }

    async fn add_service(
        &self,
        environment: &mut Environment,
        asked_by: &str,
        text: &str,
        tree: &Tree,
    ) -> Result<bool> {
        let Some((port, is_local)) = failed_port(text) else {
            return Ok(false);
        };
        let is_known = environment.recipe.services.iter().any(|s| s.port == port);
        // Code that asks for another machine finds the service only through a variable.
        let is_useful = |service: &Service| {
            let mut names = service.env.keys();
            is_local || names.any(|name| !recipe::LIBPQ.contains(&name.as_str()))
        };
        let service = recipe::service_for_port(tree, port)?.filter(is_useful);
        let service = service.filter(|_| !is_known);
        let Some(service) = service else {
            return Ok(false);
        };
        let builder = self
            .build_sandbox(SandboxSource::Saved(environment.saved.clone()))
            .await?;
        let services = std::slice::from_ref(&service);
        let done = self.install_services(&builder, services).await;
        self.finish(builder, done, &environment.saved).await?;
        environment.notes.push(format!(
            "added the service {} at port {port}: {asked_by} needs it",
            service.name
        ));
        // Only the variables of the given recipe are more certain than those of the service.
        for (name, value) in &service.env {
            if !self.recipe.env.contains_key(name) {
                environment.env.insert(name.clone(), value.clone());
                environment.recipe.env.remove(name);
            }
        }
        environment.recipe.services.push(service);
        Ok(true)
    }
}

/// Adds the variables that errors say are missing, with their values from the repository's files.
fn add_variables(
    environment: &mut Environment,
    complaints: &[(&str, &str)],
    tree: &Tree,
) -> Result<bool> {
    let missing = complaints
        .iter()
        .map(|(asked_by, text)| (asked_by, missing_variables(text)));
    let mut all: Vec<_> = missing.collect();
    all.retain(|(_, missing)| !missing.names.is_empty());
    if all.is_empty() {
        return Ok(false);
    }
    // Many tests can miss the same fields, so the files are read once.
    let named = recipe::named_variables(tree)?;
    let prefix = match all.iter().any(|(_, missing)| missing.is_prefixed) {
        true => recipe::settings_prefix(tree)?,
        false => String::new(),
    };
    let mut added = false;
    for (asked_by, missing) in all {
        for name in missing.names {
            let prefixed = match missing.is_prefixed {
                true => format!("{prefix}{name}"),
                false => name.clone(),
            };
            added |= add_variable(environment, asked_by, &prefixed, &named)
                || add_variable(environment, asked_by, &name, &named);
        }
    }
    Ok(added)
}

/// Adds a variable, unless it is set or has no known value. Returns whether it was added.
fn add_variable(
    environment: &mut Environment,
    asked_by: &str,
    name: &str,
    named: &BTreeMap<String, NamedVariable>,
) -> bool {
    if environment.env.contains_key(name) {
        return false;
    }
    let file = named.get(name).map(|variable| variable.file.as_str());
    let value = named.get(name).map(|variable| variable.value.as_str());
    let Some(value) = value.or(placeholder(name)) else {
        return false;
    };
    let from = file.map_or(String::new(), |file| format!(", as {file} says"));
    environment
        .notes
        .push(format!("{SET}{name}={value}{from}: {asked_by} needs it"));
    environment.set_variable(name, value);
    // The same file usually has the other variables that the code reads.
    let file = file.filter(|file| is_plain(file));
    for (other, variable) in named {
        if file == Some(variable.file.as_str()) {
            environment.set_variable(other, &variable.value);
        }
    }
    true
}

/// Adds variables with fixed values, unless one of them is set. `what` describes their effect without `=`, which would
/// mark the note as one about a guessed value.
fn add_fixed_variables(
    environment: &mut Environment,
    asked_by: &str,
    what: &str,
    variables: &[(&str, &str)],
) -> bool {
    let mut names = variables.iter().map(|(name, _)| *name);
    if names.any(|name| environment.env.contains_key(name)) {
        return false;
    }
    for (name, value) in variables {
        environment.set_variable(name, value);
    }
    environment
        .notes
        .push(format!("{SET}{what}: {asked_by} needs it"));
    true
}

/// Returns whether Qt finds no display.
fn lacks_display(text: &str) -> bool {
    static SIGNS: Pattern =
        Pattern::new(r"qt\.qpa\.xcb|could not connect to display|Qt platform plugin");
    SIGNS.is_match(text)
}

/// Returns whether git says that it does not know the author of a commit, or exits as it does then.
fn lacks_git_identity(text: &str) -> bool {
    static SIGNS: Pattern = Pattern::new(
        "Please tell me who you are|unable to auto-detect (?:email address|name)|empty ident name",
    );
    let is_commit = text.contains("'git'") && text.contains("'commit'");
    SIGNS.is_match(text) || is_commit && text.contains("non-zero exit status 128")
}

/// Returns a value for a variable whose value does not matter, judged by its name.
fn placeholder(name: &str) -> Option<&'static str> {
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&ANY_VALUE) {
        return Some("testwright");
    }
    has(&HOST_NAMES).then_some("localhost")
}

/// Returns whether a file contains nothing but the variables of the program.
fn is_plain(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.starts_with(".env") || name.contains("env.") || file.contains(".envs/")
}

impl Environment {
    /// Sets a variable of tests, unless it is set.
    pub(super) fn set_variable(&mut self, name: &str, value: &str) {
        for env in [&mut self.env, &mut self.recipe.env] {
            env.entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
    }
}

/// Returns the port of a connection that failed, and whether it is one of this machine.
fn failed_port(text: &str) -> Option<(u16, bool)> {
    FAILED_CONNECTIONS
        .iter()
        .find_map(|(pattern, signs, is_local)| {
            let connection = pattern.captures_iter(text).last()?;
            let port = match connection.get(1) {
                Some(port) => port.as_str().parse().ok()?,
                None => POSTGRESQL_PORT,
            };
            let is_failed = signs.is_empty() || signs.iter().any(|sign| text.contains(sign));
            is_failed.then_some((port, *is_local))
        })
}

#[cfg(test)]
mod tests;
