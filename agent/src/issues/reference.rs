//! Short names of issues: `12`, `#12` and `OWNER/NAME#12`.

use super::address::{is_gitlab, server_of, web_base_url};
use testwright_config::error::{Error, Result};
use testwright_config::settings::RedactedUrl as BaseUrl;
use testwright_sandboxes::http_client::without_port;

/// Returns whether a text is the short name of an issue.
pub fn is_reference(text: &str) -> bool {
    parse(text).is_some()
}

/// Returns the address of the issue with a short name; `None` for any other text. `remote` is the address from which
/// the repository was cloned. It names the forge, and the repository unless the text does.
///
/// # Errors
///
/// Fails if the text names no repository, and the remote is not on a forge.
pub fn page_of(text: &str, remote: Option<&str>) -> Result<Option<String>> {
    let Some((repository, number)) = parse(text) else {
        return Ok(None);
    };
    let (host, path) = match (repository, remote.and_then(site_of)) {
        (Some(repository), Some((host, _))) => (host, repository),
        (Some(repository), None) => ("github.com".to_owned(), repository),
        (None, Some((host, path))) => (host, path),
        (None, None) => {
            return Err(Error::usage(format!("find the issue `{text}`"))
                .cause("the repository has no remote `origin` on a forge such as GitHub")
                .hint("pass the address of the issue"));
        }
    };
    let folder = if is_gitlab(&host) { "/-" } else { "" };
    Ok(Some(format!(
        "https://{host}/{path}{folder}/issues/{number}"
    )))
}

/// Returns the `OWNER/NAME` of a remote on github.com, or on the GitHub server in the settings. `None` for any other
/// remote.
pub fn github_repository(remote: &str, base: Option<&BaseUrl>) -> Option<String> {
    let (host, path) = site_of(remote)?;
    let is_here = without_port(&server_of(&host)) == without_port(&server_of(&web_base_url(base)));
    let is_repository = path.split('/').count() == 2 && path.split('/').all(|p| !p.is_empty());
    (is_here && is_repository).then_some(path)
}

/// Returns the repository, if it is named, and the number.
fn parse(text: &str) -> Option<(Option<String>, u64)> {
    let (repository, number) = match text.trim().split_once('#') {
        Some((repository, number)) => (repository, number),
        None => ("", text.trim()),
    };
    let is_repository = repository.contains('/') && repository.split('/').all(|p| !p.is_empty());
    if !number.bytes().all(|b| b.is_ascii_digit()) || !(repository.is_empty() || is_repository) {
        return None;
    }
    let repository = is_repository.then(|| repository.to_owned());
    Some((repository, number.parse().ok()?))
}

/// Returns the host and the path of a remote such as `https://HOST/PATH.git` or `git@HOST:PATH.git`; `None` for a
/// folder.
fn site_of(remote: &str) -> Option<(String, String)> {
    let (authority, path) = match remote.split_once("://") {
        Some(("https" | "http" | "ssh" | "git", rest)) => rest.split_once('/')?,
        Some(_) => return None,
        None => remote
            .split_once(':')
            .filter(|(host, _)| !host.contains('/'))?,
    };
    let host = authority.rsplit('@').next().unwrap_or(authority);
    // Ports and hosts of ssh, such as ssh.github.com or altssh.gitlab.com, are not those of the website.
    let host = match remote.starts_with("http") {
        true => host,
        false => {
            let name = host.split(':').next().unwrap_or(host);
            let web = name.strip_prefix("alt").unwrap_or(name);
            web.strip_prefix("ssh.").unwrap_or(name)
        }
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_site = host.contains('.') && path.contains('/');
    is_site.then(|| (host.to_ascii_lowercase(), path.to_owned()))
}

#[cfg(test)]
mod tests;
