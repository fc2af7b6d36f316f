//! Failures to reach something: hosts that a build may not reach, the package index, web sites.

use super::super::decisive::Failure;
use crate::pattern::Pattern;

/// Signs that an error is about a connection.
static CONNECTION: Pattern = Pattern::new(concat!(
    "403|Forbidden|[Tt]unnel|URLError|HTTPError|ConnectionError|ConnectError|ProxyError|Max retries|unable to access",
    "|[Cc]ould not connect|Connection refused|name resolution|Failed to clone|[Ff]ailed to fetch",
    "|Git operation failed|[Dd]ownload|Caused by",
));

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

pub(super) fn offline(failure: &Failure<'_>) -> Option<String> {
    let offline = failure
        .output
        .contains("is not in the cache, and the build is offline")
        || failure.error_has(&[
            "Network connectivity is disabled",
            "needs to be downloaded from a registry",
        ]);
    let hint = "a package is not in the cache: build once without build.offline (TESTWRIGHT_BUILD_OFFLINE)";
    offline.then(|| hint.to_owned())
}

pub(super) fn rust_toolchain(failure: &Failure<'_>) -> Option<String> {
    let wants_toolchain = refused(failure).is_some_and(|host| host.contains("rust-lang.org"))
        || failure.error_has(&[
            "can't find Rust compiler",
            "Rust not found",
            "Cargo, the Rust package manager, is not installed",
            "failed to start `cargo",
            "Do you have cargo in your PATH",
            "cargo: not found",
            "cargo: command not found",
            "rustc: not found",
            "No such file or directory: 'cargo'",
            "No such file or directory: 'rustc'",
            "is rust-toolchain installed",
        ]);
    let is_missing = wants_toolchain && !failure.error_has(&["rustc 1.", "requires rustc"]);
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

pub(super) fn certificate(failure: &Failure<'_>) -> Option<String> {
    failure
        .error_has(&[
            "unable to get local issuer certificate",
            "invalid peer certificate",
            "CERTIFICATE_VERIFY_FAILED",
            "UnknownIssuer",
        ])
        .then(|| "a certificate is not trusted: set SSL_CERT_FILE to your CA bundle".to_owned())
}

pub(super) fn unreachable_index(failure: &Failure<'_>) -> Option<String> {
    let names_index = failure.error_has(&["/simple/", "/index/"])
        || failure
            .output
            .lines()
            .any(|line| line.starts_with("package index: "));
    let is_unreachable = failure.error_has(&[
        "error sending request",
        "dns error",
        "failed to lookup address",
        "Temporary failure in name resolution",
        "tunnel error",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "Connection refused",
    ]);
    (names_index && is_unreachable).then(|| {
        "the package index cannot be reached: check the network, the proxy variables (https_proxy) or the index in \
         the settings"
            .to_owned()
    })
}

/// Exceptions of clients whose host cannot be reached.
static OWN_DOWNLOAD: Pattern = Pattern::new(concat!(
    r"urllib\.error\.URLError|requests\.exceptions\.ConnectionError|socket\.gaierror|ConnectError|ClientConnector",
    r"|MaxRetryError|EndpointConnectionError|LocalEntryNotFoundError|couldn't connect to 'https://",
));

/// Messages of libraries that ask for a download of data.
static DATA: Pattern = Pattern::new(r"use the NLTK Downloader|\[E050\] Can't find model");

pub(super) fn own_download(failure: &Failure<'_>) -> Option<String> {
    (OWN_DOWNLOAD.is_match(&failure.line) || DATA.is_match(&failure.error)).then(|| {
        "the repository's own code needs the network: builds can reach only the package index and the hosts in \
         build.allowed-hosts, and tests have no network, so download their data in before-install"
            .to_owned()
    })
}
