//! Checks of `testwright doctor`. Each one tries the thing it checks.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use testwright_sandboxes::{http_client, programs, recipe, uv};

use super::finding::{Finding, FindingStatus};
use testwright_agent::approaches::model_selection;
use testwright_agent::backends::{Connector, Examination, GuaranteeStatus};
use testwright_config::settings::{AZURE_KEY, Origin, RedactedUrl, Settings};

/// Timeout of one check.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the area of findings on a kind of sandbox.
pub(super) fn area(connector: &dyn Connector) -> String {
    format!("sandbox {}", connector.name())
}

/// Lists the files and variables that set something.
pub(super) fn configuration(settings: &Settings) -> Vec<Finding> {
    const AREA: &str = "configuration";
    let mut files: Vec<String> = Vec::new();
    let mut variables: Vec<&str> = Vec::new();
    for origin in settings.origins.values() {
        match origin {
            Origin::File(path, _) => files.push(path.display().to_string()),
            Origin::Variable(name) => variables.push(name),
            Origin::Default | Origin::Flag(_) => {}
        }
    }
    files.sort();
    files.dedup();
    let listed = |names: &[&str]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let mut findings = vec![
        Finding::ok(AREA, "files", listed(&files)),
        Finding::ok(AREA, "variables", listed(&variables)),
    ];
    findings.extend(
        settings
            .notes
            .iter()
            .map(|note| Finding::note(AREA, "settings", note)),
    );
    findings
}

pub(super) async fn programs(settings: &Settings) -> Vec<Finding> {
    const AREA: &str = "programs";
    let git = match version("git").await {
        Some(text) => Finding::ok(AREA, "git", text),
        None => {
            Finding::missing(AREA, "git", "not found in PATH").hint("install git: apt install git")
        }
    };
    let cache = settings.cache.clone();
    let lookup = tokio::task::spawn_blocking(move || uv::find(None, &cache, false)).await;
    let uv = match lookup {
        Ok(Ok(path)) => {
            let text = version(&path.to_string_lossy()).await.unwrap_or_default();
            Finding::ok(AREA, "uv", format!("{text} ({})", path.display()))
        }
        Ok(Err(error)) => Finding::note(AREA, "uv", error.message)
            .hint("install it with `pip install uv`, or let the first build fetch it from PyPI"),
        Err(error) => Finding::note(AREA, "uv", error.to_string()),
    };
    vec![git, uv]
}

/// Returns the first line that `PROGRAM --version` prints.
async fn version(program: &str) -> Option<String> {
    let output = tokio::process::Command::from(programs::command_outside_cwd(program))
        .arg("--version")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(REQUEST_TIMEOUT, output)
        .await
        .ok()?
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default().trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}

/// Checks a backend, its Python versions and its guarantees. With `clean`, cleans it and returns the removed items.
pub(super) async fn backend(
    settings: &Settings,
    connector: &dyn Connector,
    clean: bool,
) -> (Vec<Finding>, Vec<String>) {
    let area = area(connector);
    let what = connector.requirement();
    let missing = |text: String| Finding::missing(area.clone(), what, text);
    let examined = tokio::time::timeout(REQUEST_TIMEOUT, connector.examine(settings)).await;
    let examination = match examined {
        Ok(Ok(examination)) => examination,
        Ok(Err(error)) => {
            let text = error.cause.unwrap_or(error.message);
            return (vec![missing(text).hint_if(error.hint)], Vec::new());
        }
        Err(_) => {
            let text = format!("no response within {} s", REQUEST_TIMEOUT.as_secs());
            return (vec![missing(text)], Vec::new());
        }
    };
    let Examination {
        backend,
        summary,
        guarantees,
    } = examination;
    let mut findings = vec![match backend.isolation_warning() {
        Some(text) => Finding::note(area.clone(), what, text),
        None => Finding::ok(area.clone(), what, summary),
    }];
    let pythons =
        tokio::time::timeout(REQUEST_TIMEOUT, recipe::available_pythons(backend.as_ref())).await;
    let pythons = pythons.ok().and_then(Result::ok).unwrap_or_default();
    findings.push(match pythons.as_slice() {
        [] => {
            let hint = match backend.check_python("3.11").await {
                Ok(()) => None,
                Err(error) => error.hint,
            };
            let none = "no version to build environments from";
            Finding::missing(area.clone(), "Python", none).hint_if(hint)
        }
        some => Finding::ok(area.clone(), "Python", some.join(", ")),
    });
    let topic = format!("guarantees of {}", connector.name());
    findings.extend(guarantees.iter().map(|guarantee| Finding {
        state: match guarantee.holds {
            GuaranteeStatus::Yes => FindingStatus::Ok,
            GuaranteeStatus::Partly => FindingStatus::Note,
            GuaranteeStatus::No => FindingStatus::Missing,
        },
        ..Finding::ok(topic.clone(), guarantee.what, guarantee.text)
    }));
    let mut removed = Vec::new();
    if clean {
        match backend.clean().await {
            Ok(lines) => {
                removed = lines
                    .into_iter()
                    .map(|line| format!("{area}: {line}"))
                    .collect()
            }
            Err(error) => {
                findings.push(Finding::note(area, "cleaning", error.message).hint_if(error.hint))
            }
        }
    }
    (findings, removed)
}

/// Area of the findings about the model.
const MODEL: &str = "model";

/// Reports the model that a run would use and, with `online`, whether its endpoint responds.
pub(super) async fn model(settings: &Settings, online: bool) -> Vec<Finding> {
    let selection = model_selection::select(settings);
    let is_azure = (selection.as_ref())
        .is_ok_and(|selection| model_selection::is_on_azure(&selection.model, settings));
    let [key, endpoint] = key_and_endpoint(settings, is_azure);
    let chosen = match selection {
        // The model of a rule-based approach has the name of the approach.
        Ok(selection) if selection.approach == selection.model.as_str() => Finding::ok(
            MODEL,
            "selected",
            format!("the approach {} (no model)", selection.approach),
        ),
        Ok(selection) => Finding::ok(
            MODEL,
            "selected",
            format!(
                "{} with the approach {}",
                selection.model, selection.approach
            ),
        ),
        Err(error) => Finding::note(MODEL, "selected", error.cause.unwrap_or(error.message))
            .hint_if(error.hint),
    };
    let mut findings = vec![key, endpoint, chosen];
    if online && is_azure {
        let text = "a deployment of Azure cannot be checked without a model call";
        findings.push(Finding::note(MODEL, "online", text));
    } else if online {
        findings.push(match answers(settings).await {
            Ok(status) => Finding::ok(MODEL, "online", format!("the endpoint responds: {status}")),
            Err(cause) => Finding::missing(MODEL, "online", cause)
                .hint("check model.base-url, the key, and the network"),
        });
    }
    findings
}

/// Reports the key and the endpoint of the model. A deployment of Azure can have its own variables for both.
fn key_and_endpoint(settings: &Settings, is_azure: bool) -> [Finding; 2] {
    let azure_variable = |name: &str| {
        let value = std::env::var(name).ok().filter(|_| is_azure);
        value.filter(|value| !value.trim().is_empty())
    };
    let (azure_key, own_key) = (azure_variable(AZURE_KEY), settings.model_key());
    let name = match is_azure && (azure_key.is_some() || own_key.is_none()) {
        true => AZURE_KEY,
        false => settings.model.api_key_env.as_str(),
    };
    let key = match azure_key.is_some() || own_key.is_some() {
        true => Finding::ok(MODEL, "key", format!("{name} is set")),
        false => Finding::note(MODEL, "key", format!("{name} is not set")).hint(format!(
            "set {name}, or model.base-url for a local server; `snippet` needs neither"
        )),
    };
    let base_url = settings.model.base_url.as_ref().map(ToString::to_string);
    let azure_url = azure_variable("AZURE_OPENAI_ENDPOINT").map(RedactedUrl::new);
    let endpoint = match base_url.or(azure_url.map(|url| url.to_string())) {
        Some(url) => Finding::ok(MODEL, "endpoint", url),
        None if is_azure => Finding::note(MODEL, "endpoint", "AZURE_OPENAI_ENDPOINT is not set")
            .hint("set it to https://NAME.openai.azure.com"),
        None => Finding::ok(MODEL, "endpoint", "OpenAI"),
    };
    [key, endpoint]
}

/// Requests the list of models, which is free of charge and supported by all such servers.
async fn answers(settings: &Settings) -> std::result::Result<String, String> {
    let base = settings
        .model
        .base_url
        .as_ref()
        .map_or("https://api.openai.com/v1", |url| url.reveal());
    let client = http_client::builder()
        .timeout(REQUEST_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|e| e.to_string())?;
    let mut request = client.get(format!("{}/models", base.trim_end_matches('/')));
    if let Some(key) = settings.model_key() {
        request = request.header("Authorization", format!("Bearer {}", key.reveal()));
    }
    let answer = request.send().await.map_err(|e| {
        format!(
            "the endpoint cannot be reached: {}",
            http_client::describe(&e)
        )
    })?;
    match answer.status() {
        status if status.is_success() => Ok(status.to_string()),
        status => Err(format!("the endpoint responds: {status}")),
    }
}

pub(super) fn github(settings: &Settings) -> Finding {
    const AREA: &str = "GitHub";
    let name = &settings.github.token_env;
    match settings.github_token() {
        Some(_) => Finding::ok(AREA, "token", format!("{name} is set")),
        None => Finding::note(AREA, "token", format!("{name} is not set"))
            .hint("set it for private repositories, or for more than 60 requests per hour"),
    }
}

/// Returns the nearest existing folder at or above a path.
pub(super) fn existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|p| p.is_dir())
        .unwrap_or(Path::new("."))
}
