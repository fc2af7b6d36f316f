//! Generates the reference pages of the guide (`docs/src/reference/`) from the definitions that the program uses.
//!
//! Commands come from clap, settings and variables from the settings types, tools from the registry, and file formats
//! from the types that are written. A test compares the pages with the tree, or updates them if
//! `TESTWRIGHT_UPDATE_REFERENCE=1` is set.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod types;

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use serde_json::Value;
use testwright_tools::registry;

use crate::cli::{Cli, output};
use testwright_config::settings::keys::{Key, keys};
use testwright_config::settings::variables::{OTHER_VARIABLES, SHARED_VARIABLES};
use testwright_config::settings::{ModelLimits, Price, Settings};

/// Variables that belong to other services, as rows of the table.
const OTHER_SERVICES: &str = "\
| `AZURE_OPENAI_ENDPOINT`, `AZURE_OPENAI_API_KEY`, `AZURE_OPENAI_DEPLOYMENT`, `AZURE_OPENAI_API_VERSION` | Azure OpenAI: see [Providers](../models.md#providers). The last two mean the same as `model.azure-deployment` and `model.azure-api-version`. |
| `GITHUB_WEBHOOK_SECRET`, `GITHUB_APP_PRIVATE_KEY` | Secrets of a server: see [GitHub](../github.md#setup). |
| `GITLAB_TOKEN`, `GITLAB_HOST`, `GITEA_TOKEN`, `GITEA_SERVER_URL`, `CODEBERG_TOKEN`, `BITBUCKET_TOKEN` | Tokens for issues on [other forges](../first-run.md#on-an-issue-of-github-or-another-forge). |
| `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL` … | The account and address of an [artifact store](../operations.md#the-artifact-store) in S3. |
| `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME` … | The collector of [traces](../operations.md#traces). |
| `NO_COLOR` | Any value switches colours off. |
";

const UPDATE_VARIABLE: &str = "TESTWRIGHT_UPDATE_REFERENCE";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(title: &str, source: &str, body: &str) -> String {
    format!("# {title}\n\n<!-- Generated from {source}: see CONTRIBUTING.md. -->\n\n{body}")
}

/// Formats text for a table cell.
fn cell(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
        .replace('<', "&lt;")
}

fn commands() -> String {
    let mut command = Cli::command().term_width(100);
    command.build();
    let mut body = String::new();
    describe(&mut command, "testwright", &mut body);
    page("Commands", "`src/cli/`", &body)
}

fn describe(command: &mut clap::Command, name: &str, body: &mut String) {
    let help = command.render_long_help().to_string();
    let help = output::wrap(&help, output::HELP_WIDTH);
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    *body += &format!(
        "## `{name}`\n\n```text\n{}\n```\n\n",
        lines.join("\n").trim_end()
    );
    for inner in command.get_subcommands_mut() {
        if inner.get_name() != "help" {
            let name = format!("{name} {}", inner.get_name());
            describe(inner, &name, body);
        }
    }
}

/// Formats the default of a key as in a settings file.
fn default_of(key: &Key, defaults: &Value) -> String {
    let section = key.section.as_ref().map_or(defaults, |s| &defaults[s]);
    match &section[&key.key] {
        Value::Null => "–".to_owned(),
        Value::String(text) if text.is_empty() => "–".to_owned(),
        value => format!("`{value}`"),
    }
}

fn settings() -> String {
    let defaults = serde_json::to_value(Settings::default()).unwrap();
    let mut body = "Flags override environment variables, which override the file given with `--config`, which overrides \
                    `~/.config/testwright/testwright.toml`. A dash means that a setting has no \
                    fixed default value; its meaning says what applies instead, if anything.\n"
        .to_owned();
    let mut section = Some("none yet");
    for key in keys() {
        if key.section.as_deref() != section {
            section = key.section.as_deref();
            let title = section.map_or("Top level".to_owned(), |s| format!("`[{s}]`"));
            body += &format!(
                "\n## {title}\n\n| key | type | default | meaning | variable |\n|---|---|---|---|---|\n"
            );
        }
        let types: Vec<&str> = key.types.iter().map(String::as_str).collect();
        let types: Vec<&str> = types.into_iter().filter(|t| *t != "null").collect();
        body += &format!(
            "| `{}` | {} | {} | {} | `{}` |\n",
            key.key,
            if types.is_empty() {
                "string".to_owned()
            } else {
                types.join(" or ")
            },
            default_of(key, &defaults),
            cell(&key.help),
            key.variable()
        );
    }
    let tables = [
        (
            "prices",
            "Prices of one model, in US dollars per million tokens.",
            schemars::schema_for!(Price),
        ),
        (
            "model-limits",
            "Quota of one model, for all workers of a server together.",
            schemars::schema_for!(ModelLimits),
        ),
    ];
    for (section, about, schema) in tables {
        body += &format!(
            "\n## `[{section}.\"MODEL\"]`\n\n{about} Environment variables cannot set this table.\n\n| key | meaning |\n|---|---|\n"
        );
        for (name, value) in schema.as_value()["properties"].as_object().unwrap() {
            let help = value["description"].as_str().unwrap_or_default();
            body += &format!("| `{name}` | {} |\n", cell(help));
        }
    }
    body += "\n## `[environment]`\n\nThe build of a repository's environment: see [file formats](file-formats.md#testwrighttoml-environment).\n";
    page("Settings", "`config/src/settings/sections.rs`", &body)
}

fn variables() -> String {
    let mut body = "## Settings\n\n| variable | setting |\n|---|---|\n".to_owned();
    let path = |section: Option<&str>, key: &str| match section {
        Some(section) => format!("{section}.{key}"),
        None => key.to_owned(),
    };
    for key in keys() {
        let path = path(key.section.as_deref(), &key.key);
        body += &format!("| `{}` | `{path}` |\n", key.variable());
    }
    body += "\nA list is split at commas and spaces. A boolean is `1`, `true`, `yes` or `on` for true, and `0`, `false`, `no` or `off` for false.\n";
    body += "\n## Shared with other tools\n\nA variable that starts with `TESTWRIGHT_` overrides these. If several of these set the same setting, the first one in this table counts.\n\n| variable | setting |\n|---|---|\n";
    for (name, section, key) in SHARED_VARIABLES {
        body += &format!("| `{name}` | `{}` |\n", path(Some(section), key));
    }
    body += "\n## Others\n\n| variable | meaning |\n|---|---|\n";
    let defaults = Settings::default();
    for (name, meaning) in [
        (
            defaults.model.api_key_env.as_str(),
            "API key of the model. `model.api-key-env` names another variable.",
        ),
        (
            defaults.github.token_env.as_str(),
            "Token for GitHub. `github.token-env` names another variable.",
        ),
    ]
    .into_iter()
    .chain(OTHER_VARIABLES)
    {
        body += &format!("| `{name}` | {} |\n", cell(meaning));
    }
    body += OTHER_SERVICES;
    page(
        "Environment variables",
        "`config/src/settings/variables.rs`",
        &body,
    )
}

fn tools() -> String {
    let mut body =
        "The tools as a model and an MCP client see them. `testwright tools` prints the same.\n\n"
            .to_owned();
    for tool in registry::for_models() {
        let spec = tool.spec();
        body += &format!("## `{}`\n\n{}\n\n", spec.name, spec.description);
        let schema = serde_json::to_string_pretty(&spec.parameters).unwrap();
        body += &format!("```json\n{schema}\n```\n\n");
    }
    page("Tools", "`tools/src/registry.rs`", &body)
}

fn pages() -> Vec<(&'static str, String)> {
    vec![
        ("commands.md", commands()),
        ("settings.md", settings()),
        ("environment-variables.md", variables()),
        ("tools.md", tools()),
        ("file-formats.md", types::page()),
    ]
}

fn path(name: &str) -> PathBuf {
    root().join("docs/src/reference").join(name)
}

/// Returns the names of pages that are out of date.
fn stale_pages<'a>(
    pages: &'a [(&'static str, String)],
    read: &dyn Fn(&str) -> Option<String>,
) -> Vec<&'a str> {
    let differs =
        |(name, text): &&(&'static str, String)| read(name).as_deref() != Some(text.trim_end());
    pages
        .iter()
        .filter(differs)
        .map(|(name, _)| *name)
        .collect()
}

#[test]
fn reference_pages_are_up_to_date() {
    let pages = pages();
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        for (name, text) in &pages {
            std::fs::write(path(name), format!("{}\n", text.trim_end())).unwrap();
        }
    }
    let read = |name: &str| {
        let text = std::fs::read_to_string(path(name)).ok()?;
        Some(text.trim_end().to_owned())
    };
    let stale_now = stale_pages(&pages, &read);
    assert!(
        stale_now.is_empty(),
        "{} in docs/src/reference is out of date: run `{UPDATE_VARIABLE}=1 cargo nextest run --workspace -E 'test(reference_pages)'` to bring it \
         up to date",
        stale_now.join(", ")
    );
    let changed = |name: &str| read(name).map(|text| text.replacen("`testwright run`", "", 1));
    assert_eq!(stale_pages(&pages, &changed), ["commands.md"]);
}
