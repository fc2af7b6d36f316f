//! `testwright runs`: lists, shows and controls the runs of a server.

use std::path::{Path, PathBuf};

use anstyle::Style;
use secrecy::SecretString;
use serde_json::Value;

use super::output::{self, escape_line};
use testwright_agent::trajectory::{Event, entries};
use testwright_config::error::{Error, Kind, Result};
use testwright_server::client::ApiClient;
use testwright_server::run_files::is_file_name;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: RunsCommand,
    /// Address of the server; the token is read from TESTWRIGHT_TOKEN
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "TESTWRIGHT_SERVER",
        hide_env_values = true,
        default_value = "http://127.0.0.1:8420"
    )]
    server: String,
    /// Print the server's JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum RunsCommand {
    /// List runs, newest first
    List {
        /// Show only runs with this status: queued, running, accepted, refused (the test was rejected
        /// or withheld), nothing (there is no test), infrastructure (the machine or the model service
        /// failed) or cancelled
        #[arg(long)]
        status: Option<String>,
        /// Show only runs of this repository
        #[arg(long, value_name = "URL|PATH")]
        repository: Option<String>,
        /// Maximum number of runs, up to 500
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Show a run and its test
    Show {
        /// Id of the run
        id: String,
    },
    /// Stream the events of a run until it ends
    Follow {
        /// Id of the run
        id: String,
    },
    /// Cancel a run
    Cancel {
        /// Id of the run
        id: String,
    },
    /// Resume a run that was cancelled, or that failed because of the machine or the model service
    /// (status infrastructure)
    Retry {
        /// Id of the run
        id: String,
    },
    /// Export a run to a folder: trajectory, test, evidence, and the log of its environment
    Export {
        /// Id of the run
        id: String,
        /// Folder to create
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

pub(super) async fn run(args: &Args) -> Result<u8> {
    let client = ApiClient::new(&args.server, token())?;
    match &args.what {
        RunsCommand::List {
            status,
            repository,
            limit,
        } => {
            let filters = [("status", status), ("repository", repository)];
            let mut query: Vec<(&str, String)> = filters
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.clone()?)))
                .collect();
            query.push(("limit", limit.to_string()));
            let response = client.get(&["runs"], &query).await?;
            if args.json {
                output::print_json(&response)?;
                return Ok(0);
            }
            let runs = response["runs"].as_array().map_or(&[][..], Vec::as_slice);
            if runs.is_empty() {
                output::print_stderr("no runs");
            }
            for run in runs {
                output::print_stdout(format!("{}\n", format_run(run)));
            }
        }
        RunsCommand::Show { id } => {
            let run = client.get(&["runs", id], &[]).await?;
            show(&run, args.json)?;
            if !args.json && run["status"] == "accepted" {
                output::print_stdout(format!("\n{}", client.text(&["runs", id, "patch"]).await?));
            }
        }
        RunsCommand::Follow { id } => {
            let json = args.json;
            let run = client
                .follow(id, |number, line| print_event(number, line, json))
                .await?;
            show(&run, args.json)?;
            return Ok(exit_code(&run));
        }
        RunsCommand::Cancel { id } => {
            show(&client.post(&["runs", id, "cancel"]).await?, args.json)?
        }
        RunsCommand::Retry { id } => show(&client.post(&["runs", id, "retry"]).await?, args.json)?,
        RunsCommand::Export { id, out } => export(&client, id, out).await?,
    }
    Ok(0)
}

/// Reads the token from the environment. A flag would expose it, because other users can see command lines.
fn token() -> Option<SecretString> {
    let token = std::env::var("TESTWRIGHT_TOKEN").ok()?;
    let token = token.trim();
    (!token.is_empty()).then(|| token.into())
}

fn text_field<'v>(run: &'v Value, name: &str) -> &'v str {
    run[name].as_str().unwrap_or_default()
}

/// Formats a run as one line.
fn format_run(run: &Value) -> String {
    let title = match text_field(run, "title") {
        "" => "(not read yet)",
        title => title,
    };
    let created: String = text_field(run, "created_at").chars().take(16).collect();
    escape_line(&format!(
        "{}  {:<14}  {}  {}  {title}",
        text_field(run, "id"),
        text_field(run, "status"),
        created.replace('T', " "),
        text_field(run, "repository"),
    ))
    .into_owned()
}

fn show(run: &Value, json: bool) -> Result<()> {
    if json {
        return output::print_json(run);
    }
    let mut all = format!("{}\n", format_run(run));
    all.push_str(&format!(
        "  approach {}, model {}",
        text_field(run, "approach"),
        text_field(run, "model")
    ));
    let usage = &run["usage"];
    if let Some(calls) = usage["model_calls"].as_u64() {
        let tokens = usage["prompt_tokens"].as_u64().unwrap_or_default()
            + usage["completion_tokens"].as_u64().unwrap_or_default();
        // The model of a rule-based approach has the name of the approach.
        let calls = match text_field(run, "approach") == text_field(run, "model") {
            true => "no model calls".to_owned(),
            false if calls == 1 => "1 model call".to_owned(),
            false => format!("{calls} model calls"),
        };
        all.push_str(&format!(", {calls}, {tokens} tokens"));
        if let Some(dollars) = usage["dollars"].as_f64() {
            all.push_str(&format!(", ${dollars:.4}"));
        }
    }
    all.push('\n');
    for name in ["reason", "message", "hint", "limit"] {
        if let Some(text) = run["outcome"][name].as_str() {
            all.push_str(&format!("  {name}: {}\n", escape_line(text)));
        }
    }
    output::print_stdout(all);
    Ok(())
}

fn print_event(number: i64, line: &str, json: bool) {
    if json {
        output::print_stdout(format!("{line}\n"));
        return;
    }
    // A newer server may send events that this version does not know.
    let Ok(event) = serde_json::from_str::<Event>(line) else {
        output::print_stdout(format!("{number:>4}  (unknown)\n"));
        return;
    };
    for entry in entries(std::slice::from_ref(&event)) {
        let mut text = output::Text::default();
        text.push(
            Style::new().bold(),
            format!("{number:>4}  {}\n", escape_line(&entry.title)),
        );
        for line in entry
            .text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(3)
        {
            let line: String = line.chars().take(160).collect();
            text.push(Style::new(), format!("      {}\n", escape_line(&line)));
        }
        output::print_stdout(text);
    }
}

/// Returns the exit code that `testwright run` would have for this run.
fn exit_code(run: &Value) -> u8 {
    match text_field(run, "status") {
        "accepted" => 0,
        "refused" | "nothing" => 1,
        "infrastructure" => 3,
        _ => 130,
    }
}

async fn export(client: &ApiClient, id: &str, out: &Path) -> Result<()> {
    let run = client.get(&["runs", id], &[]).await?;
    if out.exists() {
        return Err(Error::usage(format!("write {}", out.display()))
            .cause("it already exists")
            .hint("pass a folder that does not exist"));
    }
    testwright_sandboxes::private::create(out)
        .map_err(|error| Error::io(format!("create {}", out.display()), &error))?;
    let written = write_parts(client, &run, id, out).await;
    if written.is_err() {
        // The user may run the same command again, which needs a folder that does not exist.
        let _ = std::fs::remove_dir_all(out);
    }
    written
}

/// Writes the parts of a run to an empty folder.
async fn write_parts(client: &ApiClient, run: &Value, id: &str, out: &Path) -> Result<()> {
    let write = |name: &str, content: &[u8]| {
        let path = out.join(name);
        std::fs::write(&path, content)
            .map_err(|error| Error::io(format!("write {}", path.display()), &error))
    };
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    write("run.json", pretty(run).as_bytes())?;
    let trajectory = client.bytes(&["runs", id, "trajectory"]).await?;
    write("trajectory.jsonl", &trajectory)?;
    // A run may lack a test, evidence, or both.
    if let Some(patch) = if_present(client.bytes(&["runs", id, "patch"]).await)? {
        write("test.patch", &patch)?;
    }
    if let Some(evidence) = if_present(client.get(&["runs", id, "evidence"], &[]).await)? {
        write("evidence.json", pretty(&evidence).as_bytes())?;
    }
    for name in other_files(client, id, out).await? {
        match client.bytes(&["runs", id, "artifacts", &name]).await {
            Ok(content) => write(&name, &content)?,
            // The file may be in an artifact store that the server cannot reach.
            Err(error) => output::print_stderr(escape_line(&format!(
                "skipped {name}: {}",
                error.with_cause()
            ))),
        }
    }
    output::print_status(escape_line(&format!("written to {}", out.display())));
    Ok(())
}

/// Returns `None` for a part that the run lacks. A rejected token and a busy server give other kinds of errors.
fn if_present<T>(part: Result<T>) -> Result<Option<T>> {
    match part {
        Err(error) if error.kind == Kind::Usage => Ok(None),
        part => part.map(Some),
    }
}

/// Lists the run's files on the server that are not in the folder yet, such as the log of its environment.
async fn other_files(client: &ApiClient, id: &str, out: &Path) -> Result<Vec<String>> {
    let listed = client.get(&["runs", id, "artifacts"], &[]).await?;
    let artifacts = listed["artifacts"].as_array().cloned().unwrap_or_default();
    let names = artifacts
        .iter()
        .map(|artifact| text_field(artifact, "name"));
    // A name from the server must not lead out of the folder.
    let names = names.filter(|name| is_file_name(name) && !out.join(name).exists());
    Ok(names.map(str::to_owned).collect())
}
