//! URLs of remotes: the protocols that git may use for them, and the credentials that they get.

use super::Token;
use super::git::Credential;
use crate::error::SandboxError;
use crate::http_client::percent_decoded;
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
            Some((percent_decoded(user), percent_decoded(password)))
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

#[cfg(test)]
mod tests;
