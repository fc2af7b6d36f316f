//! `testwright doctor`: checks this machine and prints each finding on a line, with a hint.
//!
//! It changes nothing without `--clean`, and shows no secrets.

pub(super) mod cache;
mod checks;
mod finding;

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::config;
use super::evidence_card::PLAIN;
use super::output::{ProgressLine, Text, escape_line};
use cache::CachedEnvironment;
use finding::{Finding, FindingStatus};
use testwright_agent::approaches::model_selection;
use testwright_agent::backends::{self, Connector};
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Flags, Setting, Settings, Sources};

#[derive(Debug, Default, clap::Args)]
pub(super) struct Args {
    /// Remove the sandboxes, containers and partial states of killed runs
    #[arg(long)]
    clean: bool,
    /// Check that the model's endpoint responds
    #[arg(long)]
    online: bool,
    /// Show every setting and its source
    #[arg(long)]
    settings: bool,
    /// Print everything as JSON, for programs
    #[arg(long)]
    json: bool,
    #[arg(from_global)]
    config: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct DoctorReport {
    testwright: &'static str,
    findings: Vec<Finding>,
    environments: Vec<CachedEnvironment>,
    settings: Vec<Setting>,
    /// Sandboxes, containers and states that `--clean` removed.
    removed: Vec<String>,
    /// Whether runs work on this machine, in one sentence.
    verdict: String,
}

/// Prints the report. Fails with exit code 3 if no run is possible on this machine.
pub(super) async fn run(args: &Args) -> Result<()> {
    let settings = super::repository_args::load_settings(
        &Sources::of_process(Flags::default()).config(args.config.clone()),
    )?;
    let live = ProgressLine::new(None, args.json);
    live.set_status("checking this machine");
    let report = collect_report(args, Arc::new(settings)).await;
    live.clear();
    if args.json {
        super::output::print_json(&report)?;
    } else {
        super::output::print_stdout(render(&report, args));
    }
    check_requirements(&report.findings)
}

async fn collect_report(args: &Args, settings: Arc<Settings>) -> DoctorReport {
    let mut findings = checks::configuration(&settings);
    findings.extend(checks::programs(&settings).await);
    let mut removed = Vec::new();
    for connector in backends::ALL {
        let (backend_findings, cleaned) = checks::backend(&settings, *connector, args.clean).await;
        findings.extend(backend_findings);
        removed.extend(cleaned);
    }
    findings.extend(checks::model(&settings, args.online).await);
    findings.push(checks::github(&settings));
    findings.extend(cache::disk(&settings));
    let folder = settings.cache.clone();
    let cache_scan = tokio::task::spawn_blocking(move || {
        (
            cache::contents(&cache::folders(&folder)),
            cache::environments(&folder),
        )
    });
    let (cache_findings, environments) = cache_scan.await.unwrap_or_default();
    findings.extend(cache_findings);
    let cache_sizes = testwright_sandboxes::environment::cached_bytes(&settings.cache).await;
    findings.extend(cache::check_cache_size(
        &cache_sizes,
        settings.build.cache_size,
    ));
    let verdict = verdict(&settings, &findings);
    soften_optional(&settings, &mut findings);
    DoctorReport {
        testwright: env!("CARGO_PKG_VERSION"),
        findings,
        environments,
        settings: settings.describe(),
        removed,
        verdict,
    }
}

fn works(findings: &[Finding], area: &str, what: &str) -> bool {
    let mut findings = findings.iter();
    findings.any(|f| f.area == area && f.name == what && f.state != FindingStatus::Missing)
}

fn sandbox_works(findings: &[Finding], kind: &dyn Connector) -> bool {
    works(findings, &checks::area(kind), kind.requirement())
}

/// Says in one sentence whether runs work on this machine.
fn verdict(settings: &Settings, findings: &[Finding]) -> String {
    let selected = &settings.run.sandbox;
    let all = backends::ALL.iter().copied();
    let mut working = all.filter(|kind| sandbox_works(findings, *kind));
    let model = match model_selection::select(settings) {
        Ok(selection) if selection.approach == selection.model.as_str() => {
            "no model configured (fixed rules only)".to_owned()
        }
        Ok(selection) => format!("the model is {}", selection.model),
        Err(_) => "no model configured".to_owned(),
    };
    if !works(findings, "programs", "git") {
        return "Not ready: git is missing.".to_owned();
    }
    match (
        working.clone().any(|kind| kind.name() == selected),
        working.next(),
    ) {
        (true, _) => format!("Ready: runs work with --sandbox {selected}; {model}."),
        (false, Some(other)) => format!(
            "Not ready: --sandbox {selected} is not available; use --sandbox {}.",
            other.name()
        ),
        (false, None) => "Not ready: no sandbox is available.".to_owned(),
    }
}

/// Turns missing parts of other kinds of sandboxes into notes, if the selected kind works.
fn soften_optional(settings: &Settings, findings: &mut [Finding]) {
    let Some(selected) = backends::ALL
        .iter()
        .find(|kind| kind.name() == settings.run.sandbox)
    else {
        return;
    };
    if !sandbox_works(findings, *selected) {
        return;
    }
    for finding in findings {
        let kind = finding.area.strip_prefix("sandbox ");
        let kind = kind.or_else(|| finding.area.strip_prefix("guarantees of "));
        if kind.is_some_and(|kind| kind != selected.name())
            && finding.state == FindingStatus::Missing
        {
            finding.state = FindingStatus::Note;
        }
    }
}

/// Fails unless git and at least one kind of sandbox are available, since every run needs them.
fn check_requirements(findings: &[Finding]) -> Result<()> {
    let error = |cause: &str| Error::infrastructure("find everything a run needs").cause(cause);
    if !works(findings, "programs", "git") {
        return Err(error("git is missing").hint("install git"));
    }
    if !backends::ALL
        .iter()
        .any(|kind| sandbox_works(findings, *kind))
    {
        let kinds: Vec<String> = backends::ALL
            .iter()
            .map(|kind| format!("`--sandbox {}`", kind.name()))
            .collect();
        return Err(
            error(&format!("no sandbox is available ({})", kinds.join(", ")))
                .hint("follow the hints above"),
        );
    }
    Ok(())
}

fn render(report: &DoctorReport, args: &Args) -> Text {
    let mut text = Text::from(format!("testwright {}\n", report.testwright));
    let mut area = "";
    for finding in &report.findings {
        if finding.area != area {
            area = &finding.area;
            add_heading(&mut text, area);
        }
        finding.render(&mut text);
    }
    if !report.environments.is_empty() {
        add_heading(&mut text, "environments in the cache");
        for environment in &report.environments {
            text.push(PLAIN, environment.render());
        }
    }
    if args.settings {
        add_heading(&mut text, "active settings");
        for setting in &report.settings {
            text.push(PLAIN, format!("  {}", config::render(setting)));
        }
    }
    if args.clean {
        add_heading(&mut text, "removed");
        for line in &report.removed {
            text.push(PLAIN, format!("  {}\n", escape_line(line)));
        }
        if report.removed.is_empty() {
            text.push(PLAIN, "  nothing: no killed run left anything behind\n");
        }
    }
    text.push(PLAIN, format!("\n{}\n", escape_line(&report.verdict)));
    text
}

fn add_heading(text: &mut Text, title: &str) {
    text.push(PLAIN, "\n")
        .push(PLAIN.bold(), title)
        .push(PLAIN, "\n");
}

#[cfg(test)]
mod tests;
