//! Options of the server for the settings page. They contain no secrets: only the kind of the database is shown.

use std::net::SocketAddr;

use serde::Serialize;

use crate::server_settings::ServerSettings;
use testwright_config::settings::Size;

/// An effective option of `testwright serve`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OptionRow {
    name: &'static str,
    value: String,
    /// Command-line flag for the option.
    flag: &'static str,
}

/// Returns the options of a server that listens on these addresses.
pub(crate) fn option_rows(
    settings: &ServerSettings,
    listen: SocketAddr,
    metrics: Option<SocketAddr>,
) -> Vec<OptionRow> {
    let mut hosts: Vec<&str> = Vec::new();
    for host in settings.access.hosts() {
        // The listening address may be a loopback one.
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    let row = |name, flag, value| OptionRow { name, value, flag };
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let metrics = metrics.map_or_else(
        || "no separate address".to_owned(),
        |address| address.to_string(),
    );
    let retention = match settings.keep_runs {
        None => "forever".to_owned(),
        Some(1) => "a day after their end".to_owned(),
        Some(days) => format!("{days} days after their end"),
    };
    let most = settings.artifact_bytes.map_or_else(
        || "no limit".to_owned(),
        |bytes| Size::new(bytes).to_string(),
    );
    let idle = format!("{} s", settings.sessions.idle.as_secs());
    vec![
        row("Listens on", "--listen", listen.to_string()),
        row("Host names", "--host", hosts.join(", ")),
        row(
            "Requires tokens",
            "--require-tokens",
            yes(settings.access.tokens_required),
        ),
        row("Concurrent runs", "--workers", settings.workers.to_string()),
        row("Database", "--database", database(&settings.database)),
        row(
            "Folder for runs in progress",
            "--data",
            settings.runs.display().to_string(),
        ),
        row(
            "Artifact store",
            "--artifacts",
            settings.artifacts.address().to_owned(),
        ),
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
            settings.allowed.patterns().join(", "),
        ),
        row(
            "Allows recordings as models",
            "--allow-recordings",
            yes(settings.allowed.allows_recordings()),
        ),
        row(
            "Sandboxes of MCP clients",
            "--mcp-sandboxes",
            settings.sessions.sandboxes.to_string(),
        ),
        row("Idle time of MCP sessions", "--mcp-idle", idle),
    ]
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
