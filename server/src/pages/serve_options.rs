//! How the server was started, for whoever looks at its settings. Nothing of it is secret: of the database its kind alone is told.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Serialize;

use testwright_config::settings::Size;

/// Options of `testwright serve`, as they are in force.
pub struct ServeOptions {
    pub listen: SocketAddr,
    /// By which it is reached.
    pub hosts: Vec<String>,
    pub tokens_required: bool,
    /// Runs that it works on at one time.
    pub workers: usize,
    /// Its address, which is not shown.
    pub database: String,
    /// The folder of runs while they are worked on.
    pub runs: PathBuf,
    /// Address of the store of files, without what it knows of its account.
    pub artifacts: String,
    pub metrics: Option<SocketAddr>,
    /// Days; `None`: for ever.
    pub keep_runs: Option<u32>,
    /// Bytes; `None`: any number.
    pub artifact_bytes: Option<u64>,
    pub allowed_repositories: Vec<String>,
    pub allows_recordings: bool,
    /// Of clients of MCP.
    pub sandboxes: usize,
    pub idle_seconds: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct OptionRow {
    name: &'static str,
    value: String,
    /// The flag that sets it.
    flag: &'static str,
}

impl ServeOptions {
    pub fn rows(&self) -> Vec<OptionRow> {
        let row = |name, flag, value| OptionRow { name, value, flag };
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let metrics = self.metrics.map_or_else(
            || "at no address of their own".to_owned(),
            |address| address.to_string(),
        );
        let kept = match self.keep_runs {
            None => "for ever".to_owned(),
            Some(1) => "a day after their end".to_owned(),
            Some(days) => format!("{days} days after their end"),
        };
        let most = self.artifact_bytes.map_or_else(
            || "any size".to_owned(),
            |bytes| Size::new(bytes).to_string(),
        );
        let idle = format!("{} s", self.idle_seconds);
        vec![
            row("Listens on", "--listen", self.listen.to_string()),
            row("Is reached as", "--host", self.hosts.join(", ")),
            row(
                "Asks for tokens",
                "--require-tokens",
                yes(self.tokens_required),
            ),
            row(
                "Runs that it works on at one time",
                "--workers",
                self.workers.to_string(),
            ),
            row("Database", "--database", database(&self.database)),
            row(
                "Folder of runs in progress",
                "--data",
                self.runs.display().to_string(),
            ),
            row("Artifact store", "--artifacts", self.artifacts.clone()),
            row("Artifact store has at most", "--artifacts-size", most),
            row("Metrics and probes", "--metrics", metrics),
            row("Keeps runs", "--keep-runs", kept),
            row(
                "Repositories that may be named",
                "--allow-repository",
                self.allowed_repositories.join(", "),
            ),
            row(
                "Models may be recordings",
                "--allow-recordings",
                yes(self.allows_recordings),
            ),
            row(
                "Sandboxes of MCP clients",
                "--mcp-sandboxes",
                self.sandboxes.to_string(),
            ),
            row("An unused MCP session ends after", "--mcp-idle", idle),
        ]
    }
}

/// Its kind; the address may hold a password.
fn database(url: &str) -> String {
    let kind = match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("sqlite") => "SQLite",
        Some("postgres" | "postgresql") => "Postgres",
        _ => "another",
    };
    kind.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_told_by_its_kind() {
        let secret = "postgres://someone:word@db.example.org/runs?sslpassword=word";
        assert_eq!(database(secret), "Postgres");
        assert_eq!(database("postgresql:///runs"), "Postgres");
        assert_eq!(database("sqlite:/data/runs.db"), "SQLite");
    }
}
