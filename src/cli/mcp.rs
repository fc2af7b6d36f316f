//! `testwright mcp`: the tools over MCP on stdio. stdout is the protocol; everything else goes to stderr.

use std::sync::Arc;

use rmcp::ServiceExt;

use super::place::PlaceArgs;
use super::terminal::Terminal;
use crate::agent::Progress;
use crate::daemon::mcp::ToolServer;
use crate::error::{Error, Result};
use crate::issues::{self, Options};
use crate::setup::{Setup, interrupted};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The issue, which the gate reads when a test asks for a name that does not exist yet
    #[arg(long, value_name = "ISSUE")]
    issue: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

pub async fn run(args: &Args) -> Result<()> {
    let settings = args.place.settings(|_| {})?;
    let terminal = Arc::new(Terminal::new(false));
    settings.notes.iter().for_each(|note| terminal.note(note));
    let issue = match &args.issue {
        Some(named) if named == "-" => {
            return Err(Error::usage("read the issue from standard input")
                .hint("it carries the protocol: name a file"));
        }
        Some(named) => Some(issues::load(named, &Options::from_settings(&settings, false)).await?),
        None => None,
    };
    let setup = Setup::new(&settings, terminal.clone()).await?;
    let (source, _, session) = setup
        .start_session(&args.place.place(issue.as_ref()), None)
        .await?;
    let session = Arc::new(session);
    terminal.clear();
    let text = issue.map(|issue| issue.text()).unwrap_or_default();
    let server = ToolServer::new(session.clone(), source, text);
    let served = tokio::select! {
        served = serve(server) => served,
        () = interrupted() => Ok(()),
    };
    // The server holds the session until its last call is over; the sandbox ends in any case.
    let stopped = session.stop().await;
    served?;
    stopped.map_err(Error::from)
}

async fn serve(server: ToolServer) -> Result<()> {
    let failed = |what: &str, error: String| {
        Error::infrastructure(format!("serve MCP: {what}")).cause(error)
    };
    let running = server
        .serve((tokio::io::stdin(), tokio::io::stdout()))
        .await
        .map_err(|error| failed("no client said hello", error.to_string()))?;
    running
        .waiting()
        .await
        .map(drop)
        .map_err(|error| failed("the connection broke", error.to_string()))
}
