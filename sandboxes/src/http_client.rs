//! HTTP clients that all use the same TLS library, and descriptions of their failures.

use std::io;
use std::net::IpAddr;

use rustls::crypto::{CryptoProvider, ring};

use crate::error::sources;

/// Returns a builder for clients that use rustls with ring. Makes ring the process's default provider if it has none.
pub fn builder() -> reqwest::ClientBuilder {
    // Fails only if a provider is installed already.
    let _ = CryptoProvider::install_default(ring::default_provider());
    reqwest::Client::builder()
}

/// A reason why an address has no server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFailure {
    /// No process listens on the port.
    Refused,
    /// The host name has no address.
    UnknownHost,
}

impl ConnectFailure {
    /// Returns the reason if the request failed because its address has no server.
    pub fn of(error: &reqwest::Error) -> Option<Self> {
        sources(error).find_map(|cause| {
            let io = cause.downcast_ref::<io::Error>();
            if io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused) {
                return Some(ConnectFailure::Refused);
            }
            // The types of these errors are private.
            let is_dns = ["dns error", "error resolving DNS"].contains(&cause.to_string().as_str());
            is_dns.then_some(ConnectFailure::UnknownHost)
        })
    }
}

/// Decodes percent escapes such as `%40`.
pub(crate) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digit = |at: usize| more.get(at).and_then(|b| char::from(*b).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (first, digit(0), digit(1)) {
            bytes.push((high * 16 + low) as u8);
            rest = &more[2..];
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns whether a host, as in a URL, is this machine.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Returns a host, as in a URL, without its port.
pub fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Reads the body of a response. Stops once there are more than `max_bytes` bytes.
///
/// # Errors
///
/// Fails if the connection fails.
pub async fn read_body(
    response: &mut reqwest::Response,
    max_bytes: usize,
) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while body.len() <= max_bytes
        && let Some(part) = response.chunk().await?
    {
        body.extend_from_slice(&part);
    }
    Ok(body)
}

/// Describes why a request failed, in one clause without its address. All causes go to the log.
pub fn describe(error: &reqwest::Error) -> String {
    let mut causes = causes(error);
    tracing::debug!(causes = causes.join(": "), "a request failed");
    match ConnectFailure::of(error) {
        Some(ConnectFailure::Refused) => "connection refused".to_owned(),
        Some(ConnectFailure::UnknownHost) => "the host name could not be resolved".to_owned(),
        None if error.is_timeout() => "no response in time".to_owned(),
        None => causes.pop().unwrap_or_default(),
    }
}

/// Lists the causes of an error, innermost last, or the error itself if it has none. The address is left out, because
/// it may contain secrets.
pub fn causes(error: &reqwest::Error) -> Vec<String> {
    let mut causes: Vec<_> = sources(error).map(|cause| cause.to_string()).collect();
    causes.dedup();
    if causes.is_empty() {
        let text = error.to_string();
        causes.push(match error.url() {
            Some(url) => text.replace(&format!(" for url ({url})"), ""),
            None => text,
        });
    }
    causes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn failures_are_described_in_one_clause() {
        let client = builder().no_proxy().build().unwrap();
        let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = unused.local_addr().unwrap();
        drop(unused);
        let error = client.get(format!("http://{address}/")).send().await;
        assert_eq!(describe(&error.unwrap_err()), "connection refused");
        // A label of more than 63 characters never resolves.
        let host = "a".repeat(70);
        let error = client.get(format!("http://{host}.invalid/")).send().await;
        assert_eq!(
            describe(&error.unwrap_err()),
            "the host name could not be resolved"
        );
    }
}
