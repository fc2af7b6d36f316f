//! Services that tests need, and that do not run.

use serde::Deserialize;

use super::super::decisive::Failure;
use super::{HINTS, captured};
use crate::pattern::Pattern;

/// A service that tests can need.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownService {
    name: String,
    port: String,
    /// Parts of errors that only its clients raise.
    #[serde(default)]
    clients: Vec<String>,
    /// Whether a package of PyPI contains its program.
    #[serde(default)]
    wheel: bool,
    /// Debian package with its program.
    debian: Option<String>,
}

/// Signs that nothing accepts a connection, such as a socket of PostgreSQL that does not exist.
static REFUSED: Pattern = Pattern::new(concat!(
    r"Connection refused|ECONNREFUSED|Err(?:no|or) 111|Can't connect to (?:MySQL|local |server on)|\.s\.PGSQL\.",
    r"|AMQPConnectionError|ServerSelectionTimeoutError|NoBrokersAvailable|KazooTimeoutError",
));

/// Signs that a name of a host is unknown, such as that of another container.
static UNKNOWN_HOST: Pattern = Pattern::new(
    "name resolution|Name or service not known|could not translate host name|failed to resolve host",
);

/// Signs that tests cannot start containers.
static NO_CONTAINERS: Pattern = Pattern::new(concat!(
    "Error while fetching server API version|Cannot connect to the Docker daemon",
    "|No such file or directory: 'docker'|docker: not found",
));

/// Ports of web sites, which are not services of a sandbox.
const WEB_PORTS: [&str; 2] = ["80", "443"];

pub(super) fn service(failure: &Failure<'_>) -> Option<String> {
    if NO_CONTAINERS.is_match(&failure.error) {
        let hint = "the tests start containers, which a sandbox cannot do: add the servers that they need under \
                    [[environment.services]] of testwright.toml, with name, command and port";
        return Some(hint.to_owned());
    }
    let is_raised = |sign: &String| failure.line.contains(sign);
    let services = &HINTS.services;
    let client = services
        .iter()
        .find(|service| service.clients.iter().any(is_raised));
    let is_unknown_host = client.is_some() && UNKNOWN_HOST.is_match(&failure.error);
    if !is_unknown_host && !REFUSED.is_match(&failure.error) {
        return None;
    }
    let port = captured(
        r"(?:port[:=]?\s*|localhost:|127\.0\.0\.1[:',\s]+|\[?::1\]?:)(\d{2,5})\b",
        &failure.error,
    );
    if port
        .as_deref()
        .is_some_and(|port| WEB_PORTS.contains(&port))
    {
        return None;
    }
    let by_port = services.iter().find(|service| match &port {
        Some(port) => service.port == *port,
        None => client.is_none() && failure.error.contains(&service.port),
    });
    let service = by_port.or(client);
    let port = port.or_else(|| Some(service?.port.clone()))?;
    let name = service.map_or("the service at that port", |service| &service.name);
    let lack = match is_unknown_host {
        true => format!("the tests need {name} at a host that does not exist here"),
        false => format!("the tests need {name}, and nothing listens at port {port}"),
    };
    let env = match is_unknown_host {
        true => ", and under env the variable with its address, 127.0.0.1",
        false => "",
    };
    Some(match service {
        Some(KnownService {
            debian: Some(package),
            ..
        }) => format!(
            "{lack}: install the Debian package {package} (on this machine, or under system-packages with --sandbox \
             docker), and add it under [[environment.services]] of testwright.toml, with name, command and port{env}"
        ),
        Some(KnownService { wheel: false, .. }) => format!(
            "{lack}: install its server (on this machine, or in an image with --image), and add it under \
             [[environment.services]] of testwright.toml, with name, command and port{env}"
        ),
        _ => format!(
            "{lack}: add it under [[environment.services]] of testwright.toml, with name, command, requirements and \
             port{env}"
        ),
    })
}
