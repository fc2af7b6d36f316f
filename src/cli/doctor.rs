//! `testwright doctor`: checks this machine and prints each finding on a line, with a hint.
//!
//! It changes nothing without `--clean`, and shows no secrets.

mod cache;
mod checks;
mod finding;

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::output::escape_line;
use cache::CachedEnvironment;
use finding::{Finding, FindingStatus};
use testwright_agent::backends::{self, Connector};
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Flags, Settings, Sources};

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
}

#[derive(Debug, Serialize)]
struct Setting {
    key: String,
    value: String,
    origin: String,
}

/// Prints the report. Fails with exit code 3 if no run is possible on this machine.
pub(super) async fn run(args: &Args) -> Result<()> {
    let settings = super::repository_args::load_settings(
        &Sources::of_process(Flags::default()).config(args.config.clone()),
    )?;
    let report = collect_report(args, Arc::new(settings)).await;
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
        (cache::contents(&folder), cache::environments(&folder))
    });
    let (cache_findings, environments) = cache_scan.await.unwrap_or_default();
    findings.extend(cache_findings);
    let cache_sizes = testwright_sandboxes::environment::cached_bytes(&settings.cache).await;
    findings.extend(cache::check_cache_size(
        &cache_sizes,
        settings.build.cache_size,
    ));
    DoctorReport {
        testwright: env!("CARGO_PKG_VERSION"),
        findings,
        environments,
        settings: settings
            .describe()
            .into_iter()
            .map(|(key, value, origin)| Setting {
                key,
                value,
                origin: origin.to_string(),
            })
            .collect(),
        removed,
    }
}

/// Fails unless git and at least one kind of sandbox are available, since every run needs them.
fn check_requirements(findings: &[Finding]) -> Result<()> {
    let works = |area: &str, what: &str| {
        let mut findings = findings.iter();
        findings.any(|f| f.area == area && f.name == what && f.state != FindingStatus::Missing)
    };
    let error = |cause: &str| Error::infrastructure("find everything a run needs").cause(cause);
    if !works("programs", "git") {
        return Err(error("git is missing").hint("install git"));
    }
    let is_there = |kind: &&dyn Connector| works(&checks::area(*kind), kind.requirement());
    if !backends::ALL.iter().any(is_there) {
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

fn render(report: &DoctorReport, args: &Args) -> String {
    let mut text = format!("testwright {}\n", report.testwright);
    let mut area = "";
    for finding in &report.findings {
        if finding.area != area {
            area = &finding.area;
            text.push_str(&format!("\n{area}\n"));
        }
        text.push_str(&finding.render());
    }
    if !report.environments.is_empty() {
        text.push_str("\nenvironments in the cache\n");
        for environment in &report.environments {
            text.push_str(&environment.render());
        }
    }
    if args.settings {
        text.push_str("\nactive settings\n");
        for Setting { key, value, origin } in &report.settings {
            text.push_str(&format!(
                "  {key} = {}  ({})\n",
                escape_line(value),
                escape_line(origin)
            ));
        }
    }
    if args.clean {
        text.push_str("\nremoved\n");
        for line in &report.removed {
            text.push_str(&format!("  {}\n", escape_line(line)));
        }
        if report.removed.is_empty() {
            text.push_str("  nothing: no killed run left anything behind\n");
        }
    }
    text
}

#[cfg(test)]
mod tests;
