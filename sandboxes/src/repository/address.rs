//! URLs of remotes: the protocols that git may use for them, and the credentials that they get.

use super::Token;
use super::git::Credential;
use crate::error::SandboxError;
use crate::sandbox::Result;

/// Returns the protocols that git may use for a URL: its own, and those that a user's `insteadOf` usually leads to.
///
/// Any other word in front of `://` or `::` would start a program of that name.
pub(super) fn protocols(address: &str) -> Result<&'static str> {
    let refused = |what: String| {
        SandboxError::input(what).hint(
            "use a URL with https://, http://, ssh://, git:// or file://, or an address such as git@HOST:PATH",
        )
    };
    if address.contains(char::is_control) || address.contains(char::is_whitespace) {
        return Err(refused(
            "the repository's URL contains blanks or control characters".to_owned(),
        ));
    }
    let (protocols, rest) = match address.split_once("://") {
        Some(("https", rest)) => ("https:ssh:file", rest),
        Some(("http", rest)) => ("http:https:ssh:file", rest),
        Some(("ssh" | "git+ssh" | "ssh+git", rest)) => ("ssh:https:file", rest),
        Some(("git", rest)) => ("git:https:ssh:file", rest),
        Some(("file", rest)) if rest.starts_with('/') => return Ok("file"),
        Some(("file", _)) => {
            return Err(refused(
                "a file URL needs three slashes: file:///PATH".to_owned(),
            ));
        }
        Some((scheme, _)) => {
            let scheme: String = scheme.chars().take(40).collect();
            return Err(refused(format!("git has no protocol `{scheme}:`")));
        }
        None => ("ssh:https:file", address),
    };
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    if host.starts_with('-') || authority.starts_with('-') || host.is_empty() {
        return Err(refused(
            "the repository's URL has no server name".to_owned(),
        ));
    }
    Ok(protocols)
}

/// Returns the URL without user and password, and the credential for its server.
///
/// The credential is the one in the URL, or the token if it belongs to that server.
pub(super) fn split_credentials(
    address: &str,
    token: Option<&Token>,
) -> (String, Option<Credential>) {
    let Some((scheme @ ("https" | "http"), rest)) = address.split_once("://") else {
        return (address.to_owned(), None);
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, host) = match authority.rsplit_once('@') {
        Some((login, host)) => (Some(login), host),
        None => (None, authority),
    };
    let clean = format!("{scheme}://{host}/{path}");
    // A host is used in the name of a setting, so it must consist of literal characters without wildcards.
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    if !host.chars().all(plain) {
        return (clean, None);
    }
    let login = match login {
        Some(login) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            Some((decoded(user), decoded(password)))
        }
        // A token is never sent over an unencrypted connection.
        None => token
            .filter(|token| scheme == "https" && token.is_for(host))
            .map(|token| ("x-access-token".to_owned(), token.value.clone())),
    };
    let credential = login
        .filter(|(user, password)| ![user, password].iter().any(|t| t.contains(['\n', '\0'])))
        .map(|(user, password)| Credential {
            server: format!("{scheme}://{}", host.to_ascii_lowercase()),
            user,
            password,
        });
    (clean, credential)
}

/// Decodes percent escapes such as `%40`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail
            .get(..2)
            .and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok());
        match code {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::git::{Git, Remote};
    use super::super::process::{self, ProcessLimits};
    use super::*;

    #[test]
    fn credentials_are_removed_from_url() {
        let (url, credential) = split_credentials("https://me:s%40cret@Example.org/a/b.git", None);
        assert_eq!(url, "https://Example.org/a/b.git");
        let credential = credential.unwrap();
        assert_eq!(credential.server, "https://example.org");
        assert_eq!(
            (credential.user.as_str(), credential.password.as_str()),
            ("me", "s@cret")
        );
        assert!(!format!("{credential:?}").contains("s@cret"));
    }

    #[test]
    fn token_needs_its_server_and_https() {
        let token = Token::new("github.com", "t");
        let credential_for = |url: &str| split_credentials(url, Some(&token)).1;
        for url in [
            "https://github.com/a/b",
            "https://GitHub.com/a/b",
            "https://github.com:443/a/b",
        ] {
            assert_eq!(credential_for(url).unwrap().password, "t", "{url}");
        }
        for url in [
            "http://github.com/a/b",
            "https://evil.org/a/b",
            "https://github.com.evil.org/a/b",
            "https://evilgithub.com/a/b",
            "https://gist.github.com/a/b",
            "https://github.com:8443/a/b",
            "https://github.com./a/b",
            "https://evil.org/github.com/a",
            "https://evil.org?@github.com.evil.org/a",
            "https://evil.org#.github.com/a",
            "https://github.com\\.evil.org/a",
            "https://*.com/a/b",
            "git@github.com:a/b",
            "ssh://git@github.com/a/b",
            "file:///github.com/b",
            "git://github.com/a/b",
        ] {
            // The part in front of an `@` is a separate login.
            assert!(
                credential_for(url).is_none_or(|c| c.password != "t"),
                "{url}"
            );
        }
        assert!(!format!("{token:?}").contains("\"t\""));
    }

    /// Runs git itself, as it asks for a credential after a redirect.
    #[test]
    fn git_sends_login_only_to_its_server() {
        let token = Token::new("github.com", "tok%en$(date)'\"");
        let (_, credential) = split_credentials("https://github.com/a/b", Some(&token));
        let git = Git {
            directory: None,
            remote: Some(Remote {
                protocols: "https".to_owned(),
                credential,
                ..Remote::default()
            }),
        };
        let git_login = |protocol: &str, host: &str| {
            let mut command = git.network();
            command.args(["credential", "fill"]);
            let question = format!("protocol={protocol}\nhost={host}\n\n");
            let output =
                process::run(command, question.as_bytes(), &ProcessLimits::default()).unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let answer = git_login("https", "github.com");
        assert!(
            answer.contains("password=tok%en$(date)'\"\n")
                && answer.contains("username=x-access-token"),
            "{answer}"
        );
        for (protocol, host) in [
            ("https", "evil.org"),
            ("http", "github.com"),
            ("https", "github.com:8443"),
            ("https", "api.github.com"),
            ("https", "github.com.evil.org"),
            ("ssh", "github.com"),
        ] {
            let answer = git_login(protocol, host);
            assert!(!answer.contains("password"), "{protocol} {host}: {answer}");
        }
    }

    #[test]
    fn only_git_protocols_are_allowed() {
        for address in [
            "https://github.com/a/b",
            "http://127.0.0.1:80/a",
            "ssh://git@host:22/a",
            "git@host:a/b",
            "file:///a/b",
            "git://host/a",
        ] {
            assert!(protocols(address).is_ok(), "{address}");
        }
        for address in [
            "ext::sh -c x",
            "ext::sh://",
            "fd::3://x",
            "evil://a/b",
            "HTTPS://a/b",
            "ssh://-oProxyCommand=x/a",
            "ssh://git@-oProxyCommand=x/a",
            "-oProxyCommand=x@host:a",
            "file://host/a",
            "https:///a",
            "https://host/a\nb",
        ] {
            assert!(protocols(address).is_err(), "{address}");
        }
    }
}
