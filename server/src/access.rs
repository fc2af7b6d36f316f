//! Names and addresses of this server, and whether clients must send a token.

use std::net::{IpAddr, SocketAddr};

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names of this server, and whether clients must send a token.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Whether each request needs a token, except for the open paths.
    pub tokens_required: bool,
    /// Names and addresses besides the loopback ones.
    hosts: Vec<String>,
}

impl Access {
    /// Requires tokens if other machines can reach the server: if it listens on a non-loopback address or has a host
    /// name. A proxy on this machine may forward requests for such a name.
    pub fn new(listen: SocketAddr, hosts: &[String], tokens_required: bool) -> Self {
        let mut allowed_hosts: Vec<String> = hosts.iter().map(|host| host.to_lowercase()).collect();
        let is_local = listen.ip().is_loopback() && allowed_hosts.is_empty();
        if !listen.ip().is_unspecified() {
            allowed_hosts.push(match listen.ip() {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            });
        }
        Access {
            tokens_required: tokens_required || !is_local,
            hosts: allowed_hosts,
        }
    }

    /// Returns all names and addresses, without ports.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        LOOPBACK
            .into_iter()
            .chain(self.hosts.iter().map(String::as_str))
    }

    /// Returns whether this host, without its port, is the server.
    pub fn is_host(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        self.hosts().any(|name| name == host)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn non_local_access_requires_tokens() {
        let access = |listen: &str, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
            Access::new(listen.parse().unwrap(), &hosts, false)
        };
        assert!(!access("127.0.0.1:8420", &[]).tokens_required);
        assert!(!access("[::1]:8420", &[]).tokens_required);
        assert!(access("127.0.0.1:8420", &["tests.example.org"]).tokens_required);
        assert!(access("0.0.0.0:8420", &[]).tokens_required);
        assert!(access("[::]:8420", &[]).tokens_required);
        assert!(access("192.0.2.1:8420", &[]).tokens_required);
        assert!(access("192.0.2.1:8420", &[]).is_host("192.0.2.1"));
        assert!(!access("0.0.0.0:8420", &[]).is_host("0.0.0.0"));
        assert!(access("0.0.0.0:1", &["Tests.example.org"]).is_host("tests.Example.org"));
    }
}
