//! `testwright mcp`: serves the tools over MCP on stdio.
//!
//! stdout carries the protocol, so all other output goes to stderr.

use std::path::Path;
use std::sync::Arc;

use super::repository_args::RepositoryArgs;
use super::serve::SessionArgs;
use super::terminal::RunProgress;
use testwright_agent::agent::Progress;
use testwright_agent::issues::Options;
use testwright_agent::setup::{Setup, interrupted};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_sandboxes::repository;
use testwright_server::allow_list::{self, AllowList};
use testwright_server::artifacts::shared_environments;
use testwright_server::embedded::Embedded;
use testwright_server::mcp::{McpClient, McpParts, OpenSessions, RawTools, serve_stdio};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Issue to write tests for: a GitHub issue URL, or a Markdown or text file. A test may use a
    /// name that does not exist yet only if the issue contains it
    #[arg(long, value_name = "ISSUE")]
    issue: Option<String>,
    /// Repositories that clients may name: a glob for URLs and absolute paths; may be repeated
    /// [default: repositories on GitHub, and the git repository of the current folder]
    #[arg(long, value_name = "GLOB")]
    allow_repository: Vec<String>,
    /// Let clients name recordings (`replay:FILE`) as models
    #[arg(long)]
    allow_recordings: bool,
    /// Database of a server whose workers execute the runs [default: a temporary database, with
    /// runs in this process]
    #[arg(
        long,
        value_name = "URL",
        env = "TESTWRIGHT_DATABASE",
        hide_env_values = true
    )]
    database: Option<String>,
    #[command(flatten)]
    sessions: SessionArgs,
    #[command(flatten)]
    place: RepositoryArgs,
}

pub(super) async fn run(args: &Args) -> Result<()> {
    let settings = args.place.settings(|_| {})?;
    let terminal = Arc::new(RunProgress::new(false));
    settings.notes.iter().for_each(|note| terminal.note(note));
    let patterns = match args.allow_repository.is_empty() {
        true => default_patterns(),
        false => args.allow_repository.clone(),
    };
    let allowed = AllowList::new(&patterns, args.allow_recordings)?;
    let raw_tools = match args.issue.is_some() || args.place.has_repository() {
        true => Some(Arc::new(named_place(args, &settings, &terminal).await?)),
        false => None,
    };
    let served = serve(args, settings, allowed, raw_tools.clone()).await;
    // The server holds the session until its last call ends. The sandbox must stop even if the server failed.
    let stopped = match raw_tools {
        Some(tools) => tools.stop().await,
        None => Ok(()),
    };
    served?;
    stopped.map_err(Error::from)
}

/// Returns the patterns of the repositories that clients may name by default. Clients usually start this process in the
/// folder of their project.
fn default_patterns() -> Vec<String> {
    let current = repository::work_tree(Path::new("."));
    let folder = current.as_deref().and_then(allow_list::folder_pattern);
    let github = allow_list::DEFAULT.to_owned();
    std::iter::once(github).chain(folder).collect()
}

/// Starts a session for the repository and the issue that the command names.
async fn named_place(
    args: &Args,
    settings: &Settings,
    terminal: &Arc<RunProgress>,
) -> Result<RawTools> {
    let issue = match &args.issue {
        Some(issue_arg) if issue_arg == "-" => {
            return Err(Error::usage("read the issue from standard input")
                .hint("pass a file, because standard input carries the protocol"));
        }
        Some(issue_arg) => {
            let options = Options::from_settings(settings, false);
            Some(args.place.load_issue(issue_arg, &options).await?)
        }
        None => None,
    };
    let setup = Setup::new(settings, shared_environments(settings)?, terminal.clone())
        .await?
        .for_issue(issue.as_ref());
    let (source, _, session) = setup
        .start_session(&args.place.repository_location(issue.as_ref()), None)
        .await?;
    terminal.clear();
    let text = issue.map(|issue| issue.text()).unwrap_or_default();
    Ok(RawTools::new(Arc::new(session), source, text))
}

async fn serve(
    args: &Args,
    settings: Settings,
    allowed: AllowList,
    raw_tools: Option<Arc<RawTools>>,
) -> Result<()> {
    let (database, limits) = (args.database.as_deref(), args.sessions.limits());
    let embedded = Embedded::start(settings, allowed, database, limits.sandboxes).await?;
    let sandboxes = embedded.api.sandboxes.clone();
    let sessions = Arc::new(OpenSessions::new(limits.idle, sandboxes));
    let parts = Arc::new(McpParts {
        api: embedded.api.clone(),
        sessions: sessions.clone(),
    });
    let client = McpClient::of_stdio(parts, raw_tools);
    let serving = async move {
        let served = tokio::select! {
            served = serve_stdio(client) => served,
            () = interrupted() => Ok(()),
        };
        sessions.close_all().await;
        served
    };
    embedded.serve(serving).await
}
