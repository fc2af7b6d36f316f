//! Diagnostics on stderr, to find the cause of a problem.
//!
//! The default level is warning. TESTWRIGHT_LOG sets another filter, such as `debug` or
//! `testwright_sandboxes=debug,warn`. TESTWRIGHT_LOG_FORMAT=json prints JSON for programs.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::output;
use testwright_config::error::{Error, Result};

const VARIABLE: &str = "TESTWRIGHT_LOG";
const FORMAT: &str = "TESTWRIGHT_LOG_FORMAT";

/// Starts logging. Messages of libraries appear only if the variable names them.
pub(super) fn start() -> Result<()> {
    let filter = match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => text.trim().parse().map_err(|error| {
            Error::usage(format!("read {VARIABLE}={text}"))
                .cause(error)
                .hint("use error, warn, info, debug or trace, or a list such as testwright_sandboxes=debug,warn")
        })?,
        _ => Targets::new().with_target("testwright", LevelFilter::WARN),
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(LogLine::default);
    let lines = match is_json()? {
        true => layer
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .boxed(),
        false => layer
            .with_timer(tracing_subscriber::fmt::time::uptime())
            .boxed(),
    };
    // Fails only if another subscriber is already installed, as in tests.
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .try_init();
    Ok(())
}

fn is_json() -> Result<bool> {
    match std::env::var(FORMAT).unwrap_or_default().trim() {
        "" | "text" => Ok(false),
        "json" => Ok(true),
        other => Err(Error::usage(format!("read {FORMAT}={other}")).hint("use text or json")),
    }
}

/// Buffer for one log line, which is printed through [`output`] once it is complete.
#[derive(Default)]
struct LogLine(Vec<u8>);

impl io::Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        output::print_stderr(String::from_utf8_lossy(&self.0).trim_end());
    }
}
