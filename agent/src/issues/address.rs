//! The URL of an issue: which server to ask, and for what.

use std::path::Path;

use testwright_config::error::{self, Error};
use testwright_config::settings::RedactedUrl as BaseUrl;

/// An issue, and the server that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// Possible addresses of the API, the likeliest first, without a trailing slash.
    pub apis: Vec<String>,
    /// Address for browsers and for `git clone`, e.g. `https://github.com`.
    pub web: String,
    pub owner: String,
    pub name: String,
    pub number: u64,
    pub notes: Vec<String>,
}

impl Address {
    pub(super) fn repository(&self) -> String {
        format!("{}/{}/{}", self.web, self.owner, self.name)
    }

    pub(super) fn page(&self) -> String {
        format!("{}/issues/{}", self.repository(), self.number)
    }

    /// Returns the issue at this page, if it is on the same server and no less securely reachable. A page
    /// comes from a server's reply, so unlike user input it is never a file path.
    pub(super) fn moved(&self, page: &str, base: Option<&BaseUrl>) -> Option<Address> {
        let (scheme, rest) = page.split_once("://")?;
        if rest.contains('@') || page.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return None;
        }
        let moved = parse(page, base).ok()??;
        let same = server_of(&moved.web) == server_of(&self.web);
        let safe = scheme.eq_ignore_ascii_case("https") || self.web.starts_with("http://");
        (same && safe).then_some(Address {
            web: self.web.clone(),
            ..moved
        })
    }
}

const WEB: &str = "https://github.com";
const API: &str = "https://api.github.com";
const EXAMPLE: &str = "https://github.com/OWNER/NAME/issues/NUMBER";

/// The reason why an address is refused, and a hint.
struct Refusal {
    cause: String,
    hint: String,
}

impl Refusal {
    fn new(cause: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal {
            cause: cause.into(),
            hint: hint.into(),
        }
    }

    fn names_no_issue() -> Refusal {
        let hint = format!("use the address of an issue, such as {EXAMPLE}");
        Refusal::new("it is not the address of an issue", hint)
    }
}

/// Parses an issue's address; `None` if it is not a URL. `base` is the server in the settings.
pub(super) fn parse(location: &str, base: Option<&BaseUrl>) -> error::Result<Option<Address>> {
    let location = location.trim();
    let short = ["github.com/", "www.github.com/"];
    let bare = short.iter().any(|host| location.starts_with(host)) && !Path::new(location).exists();
    let (scheme, rest) = match location.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        None if bare => ("https".to_owned(), location),
        None => return Ok(None),
    };
    let address = read(&scheme, rest, base).map_err(|refusal| {
        let display_url = BaseUrl::new(location);
        Error::usage(format!("read the issue at {display_url}"))
            .cause(refusal.cause)
            .hint(refusal.hint)
    })?;
    Ok(Some(address))
}

/// Parses an address; `rest` is the text after `scheme://`.
fn read(scheme: &str, rest: &str, base: Option<&BaseUrl>) -> Result<Address, Refusal> {
    if scheme != "http" && scheme != "https" {
        return Err(Refusal::new(
            format!("`{scheme}:` is not an address of an issue"),
            format!("use an address such as {EXAMPLE}, a file, or `-`"),
        ));
    }
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    // Credentials in front of the host are never sent.
    let host = host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase();
    let host = host.strip_prefix("www.").unwrap_or(&host);
    let (owner, name, number) = issue_in(path)?;
    let server = Server::from_host(scheme, host, base)?;
    Ok(Address {
        apis: server.apis,
        web: server.web,
        owner: owner.to_owned(),
        name: name.to_owned(),
        number,
        notes: server.notes,
    })
}

/// Returns the owner, name and number in the path of a page or of an API.
fn issue_in(path: &str) -> Result<(&str, &str, u64), Refusal> {
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let parts = parts
        .strip_prefix(["api", "v3"].as_slice())
        .unwrap_or(&parts);
    let parts = parts.strip_prefix(["repos"].as_slice()).unwrap_or(parts);
    let (owner, name, kind, number) = match parts {
        [owner, name, kind, number, ..] => (*owner, *name, *kind, Some(*number)),
        [owner, name, kind] => (*owner, *name, *kind, None),
        _ => return Err(Refusal::names_no_issue()),
    };
    let number = match (kind, number.map(str::parse::<u64>)) {
        ("issues", Some(Ok(number))) => number,
        ("pull" | "pulls", _) => {
            return Err(Refusal::new(
                "it is a pull request, not an issue",
                "give the issue that the pull request is about",
            ));
        }
        ("discussions", _) => {
            return Err(Refusal::new(
                "it is a discussion, not an issue",
                "save its text to a file and pass the file",
            ));
        }
        _ => return Err(Refusal::names_no_issue()),
    };
    for part in [owner, name] {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !part.chars().all(fits) || part.chars().all(|c| c == '.') {
            let cause = format!("`{part}` cannot be part of a repository's name");
            return Err(Refusal::new(cause, EXAMPLE));
        }
    }
    Ok((owner, name, number))
}

/// The server to ask for an issue; fields as in [`Address`].
struct Server {
    apis: Vec<String>,
    web: String,
    notes: Vec<String>,
}

impl Server {
    /// Returns the server at `host`, if it is GitHub's or the one in the settings.
    fn from_host(scheme: &str, host: &str, base: Option<&BaseUrl>) -> Result<Server, Refusal> {
        let public = host == "github.com" || host == "api.github.com";
        let Some(base) = base else {
            if public {
                return Ok(Server::new(vec![API.to_owned()], WEB.to_owned()));
            }
            return Err(Refusal::new(
                format!("{host} is not github.com"),
                format!("for GitHub Enterprise set TESTWRIGHT_GITHUB_BASE_URL={scheme}://{host}"),
            ));
        };
        let base_host = host_of(base.reveal());
        let same = base_host == host || (base_host == "api.github.com" && public);
        if public {
            let mut server = Server::new(apis(base), WEB.to_owned());
            if !same {
                server.notes.push(format!(
                    "the issue is read from {base_host}, the server in github.base-url"
                ));
            }
            return Ok(server);
        }
        if same {
            return Ok(Server::new(apis(base), format!("{scheme}://{host}")));
        }
        Err(Refusal::new(
            format!("{host} is neither github.com nor {base_host}, the server in github.base-url"),
            "set TESTWRIGHT_GITHUB_BASE_URL to the server of the issue",
        ))
    }

    fn new(apis: Vec<String>, web: String) -> Server {
        Server {
            apis,
            web,
            notes: Vec::new(),
        }
    }
}

/// Returns `host` or `host:port`.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority
        .rsplit('@')
        .next()
        .unwrap_or(authority)
        .to_ascii_lowercase()
}

/// Returns the server that git clones from, given its own address or that of its API.
pub fn server_of(url: &str) -> String {
    let host = host_of(url);
    let host = host.strip_prefix("www.").unwrap_or(&host);
    host.strip_prefix("api.").unwrap_or(host).to_owned()
}

/// Returns the API of the server in the settings, or by default of github.com.
pub fn api_base_url(base: Option<&BaseUrl>) -> String {
    let first = base.and_then(|base| apis(base).into_iter().next());
    first.unwrap_or_else(|| API.to_owned())
}

/// Returns the server in the settings, as browsers open it and git clones from it.
pub fn web_base_url(base: Option<&BaseUrl>) -> String {
    match base {
        Some(base) => format!("https://{}", server_of(base.reveal())),
        None => WEB.to_owned(),
    }
}

/// Lists possible APIs. An address with a path is that of an API; without one it may be a server with its API
/// under `/api/v3`.
fn apis(base: &BaseUrl) -> Vec<String> {
    let url = base.reveal().trim_end_matches('/');
    let host = host_of(url);
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    if host == "github.com" || host == "www.github.com" {
        vec![API.to_owned()]
    } else if after.contains('/') || host.starts_with("api.") {
        vec![url.to_owned()]
    } else {
        vec![format!("{url}/api/v3"), url.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn api_server_is_clone_server() {
        for (url, server) in [
            ("https://github.com", "github.com"),
            ("https://api.github.com/", "github.com"),
            (
                "https://GitHub.example.org:8443/api/v3",
                "github.example.org:8443",
            ),
            (
                "https://me:secret@github.example.org/",
                "github.example.org",
            ),
            ("https://api.company.ghe.com", "company.ghe.com"),
        ] {
            assert_eq!(server_of(url), server, "{url}");
        }
    }

    fn parsed(url: &str, base: Option<&str>) -> (Vec<String>, String, u64) {
        let base = base.map(BaseUrl::new);
        let address = parse(url, base.as_ref()).unwrap().unwrap();
        (address.apis.clone(), address.repository(), address.number)
    }

    fn is(apis: &[&str], repository: &str, number: u64) -> (Vec<String>, String, u64) {
        (
            apis.iter().map(|&a| a.to_owned()).collect(),
            repository.to_owned(),
            number,
        )
    }

    #[test]
    fn issue_addresses_are_parsed() {
        let github = is(
            &["https://api.github.com"],
            "https://github.com/psf/requests",
            1723,
        );
        for url in [
            "https://github.com/psf/requests/issues/1723",
            "https://github.com/psf/requests/issues/1723#issuecomment-5",
            "https://github.com/psf/requests/issues/1723/?x=y",
            "https://www.github.com/psf/requests/issues/1723",
            "http://GitHub.com/psf/requests/issues/1723",
            "github.com/psf/requests/issues/1723",
            "https://api.github.com/repos/psf/requests/issues/1723",
        ] {
            assert_eq!(parsed(url, None), github, "{url}");
        }
        let enterprise = "https://github.example.org/o/r/issues/7";
        assert_eq!(
            parsed(enterprise, Some("https://github.example.org/")),
            is(
                &[
                    "https://github.example.org/api/v3",
                    "https://github.example.org"
                ],
                "https://github.example.org/o/r",
                7
            )
        );
        assert_eq!(
            parsed(enterprise, Some("https://github.example.org/api/v3/")).0,
            ["https://github.example.org/api/v3"]
        );
        // The server stands in for github.com.
        assert_eq!(
            parsed(
                "https://github.com/o/r/issues/7",
                Some("http://127.0.0.1:8000/api")
            ),
            is(&["http://127.0.0.1:8000/api"], "https://github.com/o/r", 7)
        );
        for file in ["issue.md", "-", "C:/issue.md", "github.company/issue.md"] {
            assert_eq!(parse(file, None).unwrap(), None);
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        let refused = |url: &str, base: Option<&str>| {
            let error = parse(url, base.map(BaseUrl::new).as_ref()).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            error.render()
        };
        insta::assert_snapshot!(refused("https://github.com/psf/requests/pull/5", None), @r"
        error: failed to read the issue at https://github.com/psf/requests/pull/5
          cause: it is a pull request, not an issue
          hint: give the issue that the pull request is about
        ");
        insta::assert_snapshot!(refused("https://github.com/psf/requests", None), @r"
        error: failed to read the issue at https://github.com/psf/requests
          cause: it is not the address of an issue
          hint: use the address of an issue, such as https://github.com/OWNER/NAME/issues/NUMBER
        ");
        insta::assert_snapshot!(refused("https://github.com/psf/requests/issues", None), @r"
        error: failed to read the issue at https://github.com/psf/requests/issues
          cause: it is not the address of an issue
          hint: use the address of an issue, such as https://github.com/OWNER/NAME/issues/NUMBER
        ");
        insta::assert_snapshot!(refused("https://github.com/a/b/issues/new", None), @r"
        error: failed to read the issue at https://github.com/a/b/issues/new
          cause: it is not the address of an issue
          hint: use the address of an issue, such as https://github.com/OWNER/NAME/issues/NUMBER
        ");
        insta::assert_snapshot!(refused("https://gitlab.example.org/o/r/issues/5", None), @r"
        error: failed to read the issue at https://gitlab.example.org/o/r/issues/5
          cause: gitlab.example.org is not github.com
          hint: for GitHub Enterprise set TESTWRIGHT_GITHUB_BASE_URL=https://gitlab.example.org
        ");
        insta::assert_snapshot!(refused("https://u:pw@gitlab.example.org/o/r/issues/5", Some("https://github.example.org")), @r"
        error: failed to read the issue at https://…@gitlab.example.org/o/r/issues/5
          cause: gitlab.example.org is neither github.com nor github.example.org, the server in github.base-url
          hint: set TESTWRIGHT_GITHUB_BASE_URL to the server of the issue
        ");
        insta::assert_snapshot!(refused("file:///etc/passwd", None), @r"
        error: failed to read the issue at file:///etc/passwd
          cause: `file:` is not an address of an issue
          hint: use an address such as https://github.com/OWNER/NAME/issues/NUMBER, a file, or `-`
        ");
        insta::assert_snapshot!(refused("https://github.com/a/../issues/5", None), @r"
        error: failed to read the issue at https://github.com/a/../issues/5
          cause: `..` cannot be part of a repository's name
          hint: https://github.com/OWNER/NAME/issues/NUMBER
        ");
    }
}
