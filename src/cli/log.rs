//! Diagnostics on stderr, for finding the cause of a problem: warnings, or what TESTWRIGHT_LOG asks for, e.g. `debug`
//! or `testwright_sandboxes=debug,warn`.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::output;
use crate::error::{Error, Result};

const VARIABLE: &str = "TESTWRIGHT_LOG";

/// From now on; libraries are heard as far as the variable names them.
pub fn start() -> Result<()> {
    let filter = match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => text.trim().parse().map_err(|error| {
            Error::usage(format!("read {VARIABLE}={text}"))
                .cause(error)
                .hint("it is error, warn, info, debug or trace, or a list such as testwright_sandboxes=debug,warn")
        })?,
        _ => Targets::new().with_target("testwright", LevelFilter::WARN),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(Line::default)
        .with_timer(tracing_subscriber::fmt::time::uptime());
    // Fails where a library that uses this one has its own.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init();
    Ok(())
}

/// A line that is shown when it is whole, like everything that is printed.
#[derive(Default)]
struct Line(Vec<u8>);

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        output::err(String::from_utf8_lossy(&self.0).trim_end());
    }
}
