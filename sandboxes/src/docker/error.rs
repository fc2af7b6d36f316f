//! Converts errors of bollard and the engine into errors with a kind and a hint.

use std::io;

use bollard::errors::Error;

use crate::error::{ErrorKind, SandboxError, Shortage, sources};
use crate::sandbox::Result;

/// Converts an error. `doing` is the attempted action, and completes "failed to …".
pub(super) fn to_sandbox_error(doing: &str, error: Error) -> SandboxError {
    match &error {
        Error::DockerResponseServerError {
            status_code,
            message,
        } => refused(doing, *status_code, message),
        Error::RequestTimeoutError => SandboxError::unavailable(format!("{doing}: the engine did not answer in time"))
        .hint(
            "check that `docker info` answers at once; the machine may be overloaded, or the engine stuck",
        ),
        Error::SocketNotFoundError(path) => SandboxError::unavailable(format!("{doing}: the socket {path} does not exist"))
        .hint(NOT_RUNNING),
        Error::DockerStreamError { error } => refused(doing, 500, error),
        Error::UnsupportedURISchemeError { uri } => SandboxError::input(format!("{doing}: `{uri}` is not a valid engine address"))
        .hint("use unix:///path, tcp://host:port or ssh://user@host"),
        _ => lost(doing, &error),
    }
}

/// An answer of the engine.
pub(super) trait EngineResult<T> {
    /// Converts the error; `doing` is as for [`to_sandbox_error`].
    fn doing(self, doing: &str) -> Result<T>;
    /// Returns nothing if the object does not exist.
    fn if_exists(self, doing: &str) -> Result<Option<T>>;
}

impl<T> EngineResult<T> for std::result::Result<T, Error> {
    fn doing(self, doing: &str) -> Result<T> {
        self.map_err(|error| to_sandbox_error(doing, error))
    }

    fn if_exists(self, doing: &str) -> Result<Option<T>> {
        match self.doing(doing) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            result => result.map(Some),
        }
    }
}

const NOT_RUNNING: &str = "start Docker, set DOCKER_HOST to another engine, or use --sandbox local";

/// Converts a refusal by the engine.
fn refused(doing: &str, status: u16, message: &str) -> SandboxError {
    let says = |text: &str| message.contains(text);
    let full = format!("{doing}: {}", message.trim());
    if says("no space left on device") {
        return SandboxError::exhausted(Shortage::Disk, full)
            .hint("free disk space where the engine stores its images");
    }
    if says("container-init binary not found") {
        return SandboxError::system(full).hint(
            "install the package catatonit, which Podman needs to end a container's processes",
        );
    }
    let container_is_gone = match status {
        404 => {
            says("No such container")
                || says("no such container")
                || says("no container with")
                || says("No such exec")
                || says("no such exec")
                || says("no exec session")
        }
        409 | 500 => {
            says("is not running")
                || says("is marked for removal")
                || says("container state improper")
                || says("is dead")
                || says("removal in progress")
        }
        _ => false,
    };
    if container_is_gone {
        return SandboxError::dead(full);
    }
    match status {
        404 => SandboxError::not_found(full),
        400 => SandboxError::input(full),
        _ => SandboxError::system(full),
    }
}

/// Converts a failure of the connection.
fn lost(doing: &str, error: &Error) -> SandboxError {
    let causes: Vec<_> = sources(error).collect();
    let deepest = causes
        .last()
        .map_or_else(|| error.to_string(), |cause| cause.to_string());
    let own = match error {
        Error::IOError { err } => Some(err),
        _ => None,
    };
    let io_causes = causes
        .iter()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    let io_errors: Vec<&io::Error> = own.into_iter().chain(io_causes).collect();
    let kind = io_errors.last().map(|io| io.kind());
    if let Some(shortage) = io_errors.iter().find_map(|io| Shortage::reported_by(io)) {
        return SandboxError::exhausted(shortage, format!("{doing}: {deepest}"));
    }
    let failed = SandboxError::unavailable(format!("{doing}: {deepest}"));
    match (kind, error) {
        (Some(io::ErrorKind::PermissionDenied), _) => failed.hint(
            "add yourself to the group that owns the engine's socket (often `docker`), or use --sandbox local",
        ),
        (Some(_), _) | (None, Error::HyperLegacyError { .. } | Error::HyperResponseError { .. }) => {
            if deepest.contains("certificate") || deepest.contains("tls") || deepest.contains("handshake") {
                failed.hint("check DOCKER_TLS_VERIFY and the certificates in DOCKER_CERT_PATH")
            } else {
                // Alone, "no such file" would seem to refer to the attempted action.
                SandboxError {
                    message: format!("{doing}: the engine does not answer ({deepest})"),
                    ..failed
                }
                .hint(NOT_RUNNING)
            }
        }
        (None, Error::CertPathError { .. } | Error::CertParseError { .. } | Error::CertMultipleKeys { .. }) => {
            failed.hint("check the certificates in DOCKER_CERT_PATH (ca.pem, cert.pem, key.pem)")
        }
        _ => SandboxError {
            kind: ErrorKind::System,
            ..failed
        },
    }
}

#[cfg(test)]
mod tests;
