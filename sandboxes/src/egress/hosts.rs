//! Rules for reachable hosts: those that the user named, and otherwise only public addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::SandboxError;
use crate::sandbox::Result;

/// A reachable host: `github.com`, `*.example.org`, `build.example.org:8443`. Without a port, 80 and 443 are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Name in lower case, without the `*.`.
    name: String,
    below: bool,
    port: Option<u16>,
}

impl Host {
    /// Parses a host as written in `build.allowed-hosts`.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a host name with an optional `*.` and port.
    pub fn parse(text: &str) -> Result<Host> {
        let refused = || {
            SandboxError::input(format!("allow the host `{text}`"))
                .hint("use a host name, such as github.com, *.example.org or example.org:8443")
        };
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !name.ends_with(':') && !name.contains(':') => {
                (name, Some(port.parse().map_err(|_| refused())?))
            }
            _ => (text, None),
        };
        let (below, name) = match name.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, name),
        };
        let name = name.trim_matches(['[', ']']);
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if name.is_empty() || !name.chars().all(fits) {
            return Err(refused());
        }
        Ok(Host {
            name: name.to_lowercase(),
            below,
            port,
        })
    }

    /// Returns the servers in apt's source lists, in both of their formats.
    pub fn in_apt_sources(text: &str) -> Vec<Host> {
        let lines = text.lines().map(str::trim);
        let words = lines
            .filter(|line| !line.starts_with('#'))
            .flat_map(str::split_whitespace);
        let mut hosts: Vec<Host> = words
            .filter_map(|word| {
                let url = reqwest::Url::parse(word).ok()?;
                let fits = matches!(url.scheme(), "http" | "https");
                Host::parse(url.host_str().filter(|_| fits)?).ok()
            })
            .collect();
        hosts.dedup();
        hosts.truncate(32);
        hosts
    }

    /// Returns whether the rule allows this port of a host, given as a name in any case or as an IP address.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let host = host.trim_matches(['[', ']']);
        let host = host.trim_end_matches('.').to_lowercase();
        let name = if self.below {
            host.strip_suffix(&self.name)
                .is_some_and(|rest| rest.ends_with('.'))
        } else {
            host == self.name
        };
        name && match self.port {
            Some(own) => own == port,
            None => port == 80 || port == 443,
        }
    }
}

/// Returns the IP address if the host's name is one.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

/// Returns whether an address belongs to the internet, and not to this machine, its network, or a cloud's internal
/// services.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 224)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // IPv4 addresses can be embedded in several ways: mapped, compatible, translated (two prefixes), 6to4.
    let inner = match parts {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some((high, low)),
        _ => None,
    };
    if let Some((high, low)) = inner {
        return is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    }
    // Only the global unicast range counts, except Teredo, which embeds an IPv4 address.
    (parts[0] & 0xe000) == 0x2000 && !(parts[0] == 0x2001 && parts[1] == 0)
}

#[cfg(test)]
mod tests;
