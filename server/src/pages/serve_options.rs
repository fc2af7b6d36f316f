//! Options of the server for the settings page. They contain no secrets: only the kind of the database is shown.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Serialize;

use testwright_config::settings::Size;

/// Effective options of `testwright serve`.
pub(crate) struct ServeOptions {
    pub listen: SocketAddr,
    /// Host names of the server.
    pub hosts: Vec<String>,
    pub tokens_required: bool,
    /// Maximum concurrent runs.
    pub workers: usize,
    /// URL of the database, which is not shown.
    pub database: String,
    /// Folder for runs in progress.
    pub runs: PathBuf,
    /// Address of the artifact store, without credentials.
    pub artifacts: String,
    pub metrics: Option<SocketAddr>,
    /// Days to keep runs; `None` keeps them forever.
    pub keep_runs: Option<u32>,
    /// Maximum bytes of the artifact store; `None` means no limit.
    pub artifact_bytes: Option<u64>,
    pub allowed_repositories: Vec<String>,
    pub allows_recordings: bool,
    /// Maximum concurrent sandboxes of MCP clients and of checks over HTTP.
    pub sandboxes: usize,
    pub idle_seconds: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OptionRow {
    name: &'static str,
    value: String,
    /// Command-line flag for the option.
    flag: &'static str,
}

impl ServeOptions {
    pub(crate) fn rows(&self) -> Vec<OptionRow> {
        let row = |name, flag, value| OptionRow { name, value, flag };
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let metrics = self.metrics.map_or_else(
            || "no separate address".to_owned(),
            |address| address.to_string(),
        );
        let retention = match self.keep_runs {
            None => "forever".to_owned(),
            Some(1) => "a day after their end".to_owned(),
            Some(days) => format!("{days} days after their end"),
        };
        let most = self.artifact_bytes.map_or_else(
            || "no limit".to_owned(),
            |bytes| Size::new(bytes).to_string(),
        );
        let idle = format!("{} s", self.idle_seconds);
        vec![
            row("Listens on", "--listen", self.listen.to_string()),
            row("Host names", "--host", self.hosts.join(", ")),
            row(
                "Requires tokens",
                "--require-tokens",
                yes(self.tokens_required),
            ),
            row("Concurrent runs", "--workers", self.workers.to_string()),
            row("Database", "--database", database(&self.database)),
            row(
                "Folder for runs in progress",
                "--data",
                self.runs.display().to_string(),
            ),
            row("Artifact store", "--artifacts", self.artifacts.clone()),
            row(
                "Maximum size of the artifact store",
                "--artifacts-size",
                most,
            ),
            row("Metrics and probes", "--metrics", metrics),
            row("Keeps runs", "--keep-runs", retention),
            row(
                "Allowed repositories",
                "--allow-repository",
                self.allowed_repositories.join(", "),
            ),
            row(
                "Allows recordings as models",
                "--allow-recordings",
                yes(self.allows_recordings),
            ),
            row(
                "Sandboxes of MCP clients",
                "--mcp-sandboxes",
                self.sandboxes.to_string(),
            ),
            row("Idle time of MCP sessions", "--mcp-idle", idle),
        ]
    }
}

/// Returns the kind of a database; its URL may contain a password.
fn database(url: &str) -> String {
    let kind = match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("sqlite") => "SQLite",
        Some("postgres" | "postgresql") => "Postgres",
        _ => "other",
    };
    kind.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_is_shown_by_kind() {
        let secret = "postgres://someone:word@db.example.org/runs?sslpassword=word";
        assert_eq!(database(secret), "Postgres");
        assert_eq!(database("postgresql:///runs"), "Postgres");
        assert_eq!(database("sqlite:/data/runs.db"), "SQLite");
    }
}
