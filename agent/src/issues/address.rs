//! The URL of an issue: which server to ask, and for what.

use std::path::Path;

use testwright_config::error::{self, Error};
use testwright_config::settings::RedactedUrl as BaseUrl;

/// A kind of server that has repositories and issues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forge {
    GitHub,
    GitLab,
    /// Gitea or Forgejo.
    Gitea,
    Bitbucket,
}

impl Forge {
    pub(super) fn name(self) -> &'static str {
        match self {
            Forge::GitHub => "GitHub",
            Forge::GitLab => "GitLab",
            Forge::Gitea => "Gitea",
            Forge::Bitbucket => "Bitbucket",
        }
    }
}

/// An issue, and the server that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub forge: Forge,
    /// Possible addresses of the API, the likeliest first, without a trailing slash.
    pub apis: Vec<String>,
    /// Address for browsers and for `git clone`, e.g. `https://github.com`.
    pub web: String,
    /// Owner of the repository; on GitLab the path of its group, such as `group/subgroup`.
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
        let folder = match self.forge {
            Forge::GitLab => "/-",
            _ => "",
        };
        format!("{}{folder}/issues/{}", self.repository(), self.number)
    }

    /// Returns the likeliest address of the API.
    pub(super) fn api(&self) -> &str {
        self.apis.first().map_or("", String::as_str)
    }

    /// Returns the variables that set a token for this server, for hints.
    pub(super) fn token_setting(&self) -> &'static str {
        let host = host_of(&self.web);
        match (self.forge, host.as_str()) {
            (Forge::GitHub, _) => "GITHUB_TOKEN",
            (Forge::GitLab, "gitlab.com") => "GITLAB_TOKEN",
            (Forge::GitLab, _) => "GITLAB_TOKEN and GITLAB_HOST",
            (Forge::Gitea, "codeberg.org") => "CODEBERG_TOKEN",
            (Forge::Gitea, "gitea.com") => "GITEA_TOKEN",
            (Forge::Gitea, _) => "GITEA_TOKEN and GITEA_SERVER_URL",
            (Forge::Bitbucket, _) => "BITBUCKET_TOKEN",
        }
    }

    /// Returns the issue at this page, if it is on the same server and no less securely reachable. A page
    /// comes from a server's reply, so unlike user input it is never a file path.
    pub(super) fn moved(&self, page: &str, base: Option<&BaseUrl>) -> Option<Address> {
        let (scheme, rest) = page.split_once("://")?;
        if rest.contains('@') || page.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return None;
        }
        let moved = parse_github(page, base).ok()??;
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

    fn is_pull_request() -> Refusal {
        let hint = "give the issue that the pull request is about";
        Refusal::new("it is a pull request, not an issue", hint)
    }
}

/// Parses an issue's address; `None` if it is not a URL. `base` is the GitHub server in the settings.
pub(super) fn parse(location: &str, base: Option<&BaseUrl>) -> error::Result<Option<Address>> {
    parse_with(location, base, false)
}

/// Parses the address of an issue on GitHub, and refuses other servers.
pub(super) fn parse_github(
    location: &str,
    base: Option<&BaseUrl>,
) -> error::Result<Option<Address>> {
    parse_with(location, base, true)
}

fn parse_with(
    location: &str,
    base: Option<&BaseUrl>,
    only_github: bool,
) -> error::Result<Option<Address>> {
    let location = location.trim();
    let short = ["github.com/", "www.github.com/"];
    let bare = short.iter().any(|host| location.starts_with(host)) && !Path::new(location).exists();
    let (scheme, rest) = match location.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        None if bare => ("https".to_owned(), location),
        None => return Ok(None),
    };
    let address = read(&scheme, rest, base, only_github).map_err(|refusal| {
        let display_url = BaseUrl::new(location);
        Error::usage(format!("read the issue at {display_url}"))
            .cause(refusal.cause)
            .hint(refusal.hint)
    })?;
    Ok(Some(address))
}

/// Parses an address; `rest` is the text after `scheme://`.
fn read(
    scheme: &str,
    rest: &str,
    base: Option<&BaseUrl>,
    only_github: bool,
) -> Result<Address, Refusal> {
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
    let is_base = |base: &BaseUrl| server_of(base.reveal()) == server_of(host);
    if !only_github && !is_public(host) && !base.is_some_and(is_base) {
        return read_other(scheme, host, path);
    }
    let (owner, name, number) = issue_in(path)?;
    let (apis, web, notes) = github_server(scheme, host, base)?;
    Ok(Address {
        forge: Forge::GitHub,
        apis,
        web,
        owner: owner.to_owned(),
        name: name.to_owned(),
        number,
        notes,
    })
}

/// Returns the owner, name and number in the path of a page or of an API.
fn issue_in(path: &str) -> Result<(&str, &str, u64), Refusal> {
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let parts = parts
        .strip_prefix(["api", "v3"].as_slice())
        .unwrap_or(&parts);
    let parts = parts.strip_prefix(["repos"].as_slice()).unwrap_or(parts);
    let &[owner, name, kind, ref rest @ ..] = parts else {
        return Err(Refusal::names_no_issue());
    };
    let number = match (kind, rest.first().map(|number| number.parse::<u64>())) {
        ("issues", Some(Ok(number))) => number,
        ("pull" | "pulls", _) => return Err(Refusal::is_pull_request()),
        ("discussions", _) => {
            return Err(Refusal::new(
                "it is a discussion, not an issue",
                "save its text to a file and pass the file",
            ));
        }
        _ => return Err(Refusal::names_no_issue()),
    };
    check_names(&[owner, name])?;
    Ok((owner, name, number))
}

fn check_names(parts: &[&str]) -> Result<(), Refusal> {
    for part in parts {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !part.chars().all(fits) || part.chars().all(|c| c == '.') {
            return Err(Refusal {
                cause: format!("`{part}` cannot be part of a repository's name"),
                ..Refusal::names_no_issue()
            });
        }
    }
    Ok(())
}

/// Parses an address on another server than GitHub's. A server that is not known by its name has the API of Gitea,
/// unless the path is one of GitLab.
fn read_other(scheme: &str, host: &str, path: &str) -> Result<Address, Refusal> {
    const ISSUES: [&str; 2] = ["issues", "work_items"];
    const CHANGES: [&str; 3] = ["pulls", "merge_requests", "pull-requests"];
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let web = format!("{scheme}://{host}");
    let (forge, api, web, parts) = match parts.as_slice() {
        // An address of the API itself.
        ["2.0", "repositories", rest @ ..] => {
            let server = host.strip_prefix("api.").unwrap_or(host);
            let site = format!("{scheme}://{server}");
            (Forge::Bitbucket, format!("{web}/2.0"), site, rest.to_vec())
        }
        all if host == "bitbucket.org" => {
            let api = "https://api.bitbucket.org/2.0".to_owned();
            let site = "https://bitbucket.org".to_owned();
            (Forge::Bitbucket, api, site, all.to_vec())
        }
        all if all.contains(&"-") || is_gitlab(host) => {
            let parts = all.iter().copied().filter(|part| *part != "-").collect();
            (Forge::GitLab, format!("{web}/api/v4"), web, parts)
        }
        all => (Forge::Gitea, format!("{web}/api/v1"), web, all.to_vec()),
    };
    let is_kind = |part: &&str| ISSUES.contains(part) || CHANGES.contains(part);
    let at = parts.iter().rposition(is_kind).unwrap_or(0);
    let (repository, rest) = parts.split_at(at);
    let number = match rest {
        [kind, number, ..] if ISSUES.contains(kind) => number.parse::<u64>().ok(),
        [kind, ..] if CHANGES.contains(kind) => return Err(Refusal::is_pull_request()),
        _ => None,
    };
    let fits = |owners: &[&str]| match forge {
        Forge::GitLab => !owners.is_empty(),
        _ => owners.len() == 1,
    };
    match (repository.split_last(), number) {
        (Some((name, owners)), Some(number)) if fits(owners) => {
            check_names(repository)?;
            Ok(Address {
                forge,
                apis: vec![api],
                web,
                owner: owners.join("/"),
                name: (*name).to_owned(),
                number,
                notes: Vec::new(),
            })
        }
        _ => Err(Refusal::names_no_issue()),
    }
}

/// Returns whether the name of a server says that it is GitLab.
pub(super) fn is_gitlab(host: &str) -> bool {
    host.starts_with("gitlab.")
}

fn is_public(host: &str) -> bool {
    host == "github.com" || host == "api.github.com"
}

/// Returns the APIs, the address for browsers and notes for an issue at `host`, as in [`Address`], if it is GitHub's or
/// the server in the settings.
fn github_server(
    scheme: &str,
    host: &str,
    base: Option<&BaseUrl>,
) -> Result<(Vec<String>, String, Vec<String>), Refusal> {
    let web = WEB.to_owned();
    let Some(base) = base else {
        return match is_public(host) {
            true => Ok((vec![API.to_owned()], web, Vec::new())),
            false => Err(Refusal::new(
                format!("{host} is not github.com"),
                format!("for GitHub Enterprise set TESTWRIGHT_GITHUB_BASE_URL={scheme}://{host}"),
            )),
        };
    };
    let base_host = host_of(base.reveal());
    match (is_public(host), server_of(&base_host) == server_of(host)) {
        (true, true) => Ok((apis(base), web, Vec::new())),
        (true, false) => {
            let note = format!("the issue is read from {base_host}, the server in github.base-url");
            Ok((apis(base), web, vec![note]))
        }
        (false, true) => {
            let web = format!("{scheme}://{}", server_of(host));
            Ok((apis(base), web, Vec::new()))
        }
        (false, false) => Err(Refusal::new(
            format!("{host} is neither github.com nor {base_host}, the server in github.base-url"),
            "set TESTWRIGHT_GITHUB_BASE_URL to the server of the issue",
        )),
    }
}

/// Returns `host` or `host:port`.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    host.to_ascii_lowercase()
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
    } else if host.ends_with(".ghe.com") {
        // Enterprise Cloud has no API below the address of the server.
        vec![format!("https://api.{}", server_of(url))]
    } else if after.contains('/') || host.starts_with("api.") {
        vec![url.to_owned()]
    } else {
        vec![format!("{url}/api/v3"), url.to_owned()]
    }
}

#[cfg(test)]
mod tests;
