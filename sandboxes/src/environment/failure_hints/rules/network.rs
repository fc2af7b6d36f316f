//! Failures to reach hosts that a build may not reach.

use super::super::decisive::Failure;
use crate::pattern::Pattern;

/// Signs that an error is about a connection.
static CONNECTION: Pattern = Pattern::new(concat!(
    "403|Forbidden|[Tt]unnel|URLError|HTTPError|ConnectionError|ConnectError|ProxyError|Max retries|unable to access",
    "|[Cc]ould not connect|Connection refused|name resolution|Failed to clone|[Ff]ailed to fetch",
    "|Git operation failed|[Dd]ownload|Caused by",
));

/// Signs that a build finds no toolchain of Rust.
static NO_RUST: Pattern = Pattern::new(concat!(
    "can't find Rust compiler|Rust not found|Cargo, the Rust package manager, is not installed|failed to start `cargo",
    "|Do you have cargo in your PATH|cargo: (?:command )?not found|rustc: not found",
    "|No such file or directory: '(?:cargo|rustc)'|is rust-toolchain installed",
));

static HAS_RUST: Pattern = Pattern::new(r"rustc 1\.|requires rustc");

/// Returns the last host that the network of the build refused.
fn refused(failure: &Failure<'_>) -> Option<String> {
    let mut lines = failure.output.lines().rev();
    let host = |line: &str| {
        let rest = line.trim().strip_prefix("network: ")?;
        let (host, rest) = rest.split_once(" was refused")?;
        rest.contains("build.allowed-hosts")
            .then(|| host.to_owned())
    };
    lines.find_map(host)
}

pub(super) fn rust_toolchain(failure: &Failure<'_>) -> Option<String> {
    let wants_toolchain = refused(failure).is_some_and(|host| host.contains("rust-lang.org"))
        || NO_RUST.is_match(&failure.error);
    let is_missing = wants_toolchain && !HAS_RUST.is_match(&failure.error);
    is_missing.then(|| {
        "the package is compiled with Rust, whose toolchain is missing: install it on this machine with rustup, or \
         with --sandbox docker use an image that has it (--image)"
            .to_owned()
    })
}

pub(super) fn refused_host(failure: &Failure<'_>) -> Option<String> {
    let host = refused(failure).filter(|_| CONNECTION.is_match(&failure.error))?;
    Some(allow_host("the build", &host))
}

/// Returns the advice for work that needs a host which was refused.
pub(super) fn allow_host(what: &str, host: &str) -> String {
    let host = host.split(':').next().unwrap_or(host);
    format!(
        "{what} needs {host}, but can reach only the package index: if you trust the code with that host, add it \
         to build.allowed-hosts in your settings (TESTWRIGHT_BUILD_ALLOWED_HOSTS={host})"
    )
}
