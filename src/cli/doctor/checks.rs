//! The checks: each finds out by trying.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use testwright_sandboxes::{http_client, programs, recipe, uv};

use super::finding::{Finding, State};
use testwright_agent::approaches::model_selection;
use testwright_agent::backends::{Connector, Examination, Holds};
use testwright_config::settings::{Origin, Settings};

/// How long a check may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The area of what is found about a kind of sandbox.
pub fn area(connector: &dyn Connector) -> String {
    format!("sandbox {}", connector.name())
}

/// Which files and variables are in force.
pub fn configuration(settings: &Settings) -> Vec<Finding> {
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

pub async fn programs(settings: &Settings) -> Vec<Finding> {
    const AREA: &str = "programs";
    let git = match version("git").await {
        Some(text) => Finding::ok(AREA, "git", text),
        None => {
            Finding::missing(AREA, "git", "it is not in PATH").hint("install git: apt install git")
        }
    };
    let cache = settings.cache.clone();
    let found = tokio::task::spawn_blocking(move || uv::find(None, &cache, false)).await;
    let uv = match found {
        Ok(Ok(path)) => {
            let text = version(&path.to_string_lossy()).await.unwrap_or_default();
            Finding::ok(AREA, "uv", format!("{text} ({})", path.display()))
        }
        Ok(Err(error)) => Finding::note(AREA, "uv", error.message)
            .hint("it is fetched from PyPI when an environment is built; or: pip install uv"),
        Err(error) => Finding::note(AREA, "uv", error.to_string()),
    };
    vec![git, uv]
}

/// The first line that `PROGRAM --version` prints.
async fn version(program: &str) -> Option<String> {
    let output = tokio::process::Command::from(programs::outside(program))
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

/// A backend, the Pythons that it has and its promises; cleans it up, if asked to, and says what went.
pub async fn backend(
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
            let text = format!("no answer within {} s", REQUEST_TIMEOUT.as_secs());
            return (vec![missing(text)], Vec::new());
        }
    };
    let Examination {
        backend,
        summary,
        promises,
    } = examination;
    let mut findings = vec![match backend.caution() {
        Some(text) => Finding::note(area.clone(), what, text),
        None => Finding::ok(area.clone(), what, summary),
    }];
    let pythons =
        tokio::time::timeout(REQUEST_TIMEOUT, recipe::available_pythons(backend.as_ref())).await;
    findings.push(match pythons.unwrap_or_default().as_slice() {
        [] => {
            let hint = match backend.check_python("3.11").await {
                Ok(()) => None,
                Err(error) => error.hint,
            };
            let none = "none that environments could be built from";
            Finding::missing(area.clone(), "Python", none).hint_if(hint)
        }
        some => Finding::ok(area.clone(), "Python", some.join(", ")),
    });
    let promised = format!("promises of {}", connector.name());
    findings.extend(promises.iter().map(|promise| Finding {
        state: match promise.holds {
            Holds::Yes => State::Ok,
            Holds::Partly => State::Note,
            Holds::No => State::Missing,
        },
        ..Finding::ok(promised.clone(), promise.what, promise.text)
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

/// Which model a run would take, and whether its endpoint answers.
pub async fn model(settings: &Settings, online: bool) -> Vec<Finding> {
    const AREA: &str = "model";
    let name = &settings.model.api_key_env;
    let key = match settings.model_key() {
        Some(_) => Finding::ok(AREA, "key", format!("{name} is set")),
        None => Finding::note(AREA, "key", format!("{name} is not set")).hint(format!(
            "set {name}, or model.base-url for a server of your own; `snippet` needs neither"
        )),
    };
    let endpoint = settings
        .model
        .base_url
        .as_ref()
        .map_or("OpenAI".to_owned(), ToString::to_string);
    let chosen = match model_selection::select(settings) {
        Ok(selection) => Finding::ok(
            AREA,
            "chosen",
            format!("{} by the approach {}", selection.model, selection.approach),
        ),
        Err(error) => {
            Finding::note(AREA, "chosen", error.cause.unwrap_or(error.message)).hint_if(error.hint)
        }
    };
    let mut findings = vec![key, Finding::ok(AREA, "endpoint", &endpoint), chosen];
    if online {
        findings.push(match answers(settings).await {
            Ok(status) => Finding::ok(AREA, "online", format!("it answers: {status}")),
            Err(cause) => Finding::missing(AREA, "online", cause)
                .hint("look at model.base-url, the key, and the network"),
        });
    }
    findings
}

/// Asks for the list of models: free of charge, and understood by all such servers.
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
    // Without the address: a password may be in it.
    let answer = request
        .send()
        .await
        .map_err(|e| format!("it cannot be reached: {}", e.without_url()))?;
    match answer.status() {
        status if status.is_success() => Ok(status.to_string()),
        status => Err(format!("it answers: {status}")),
    }
}

pub fn github(settings: &Settings) -> Finding {
    const AREA: &str = "GitHub";
    let name = &settings.github.token_env;
    match settings.github_token() {
        Some(_) => Finding::ok(AREA, "token", format!("{name} is set")),
        None => Finding::note(AREA, "token", format!("{name} is not set"))
            .hint("needed for private repositories, and for more than 60 requests an hour"),
    }
}

/// The nearest folder that is there.
pub fn existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|p| p.is_dir())
        .unwrap_or(Path::new("."))
}
