//! Requests that the host makes on behalf of a sandbox: through the user's proxies, with the user's certificates, and
//! only to hosts that a build may reach.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Client, Method, NoProxy, Proxy, Response, Url};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::hosts::{Host, is_public, literal};
use crate::error::{SandboxError, sources};
use crate::http_client::{self, percent_decoded};
use crate::plain_file::{self, Links, MAX_DOCUMENT};
use crate::sandbox::Result;

/// Maximum redirects to follow.
const MAX_REDIRECTS: usize = 6;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time without data in a response.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the user and password in the address of a package index.
fn login(url: &Url) -> Option<(String, Option<String>)> {
    let user = percent_decoded(url.username());
    let password = url.password().map(percent_decoded);
    (!user.is_empty() || password.is_some()).then_some((user, password))
}

pub(super) struct Upstream {
    /// Client for all other hosts, which rejects private addresses.
    public: Client,
    /// Client for hosts that the user named.
    named: Client,
    matcher: Matcher,
    proxies: Vec<Url>,
}

/// The reason why a request failed, suitable for a log.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The build may not reach this host. Contains the host for the hint.
    Forbidden(String),
    Failed(String),
}

impl Upstream {
    pub(super) fn new(
        proxies: &BTreeMap<String, String>,
        ca_bundle: Option<&Path>,
    ) -> Result<Upstream> {
        let get = |name: &str| {
            let text = proxies
                .get(name)
                .or_else(|| proxies.get(&name.to_uppercase()));
            text.map(String::as_str).filter(|text| !text.is_empty())
        };
        let (http, https, all) = (get("http_proxy"), get("https_proxy"), get("all_proxy"));
        let no = get("no_proxy").unwrap_or_default();
        let address = |text: &str| -> Result<Url> {
            let whole = if text.contains("://") {
                text.to_owned()
            } else {
                format!("http://{text}")
            };
            let url = Url::parse(&whole).ok().filter(|url| url.scheme() == "http");
            url.ok_or_else(|| {
                SandboxError::input("invalid proxy in https_proxy or http_proxy")
                    .hint("write it as http://host:port; other kinds of proxies are not supported")
            })
        };
        let mut list = Vec::new();
        let new_builder = || {
            http_client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .referer(false)
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(READ_TIMEOUT)
        };
        let (mut public, mut named) = (new_builder(), new_builder());
        for (scheme, text) in [("http", http.or(all)), ("https", https.or(all))] {
            let Some(text) = text else { continue };
            let url = address(text)?;
            let proxy = match scheme {
                "http" => Proxy::http(url.clone()),
                _ => Proxy::https(url.clone()),
            };
            let proxy = proxy
                .map_err(|_| SandboxError::input(format!("invalid proxy in {scheme}_proxy")))?
                .no_proxy(NoProxy::from_string(no));
            public = public.proxy(proxy.clone());
            named = named.proxy(proxy);
            list.push(url);
        }
        if let Some(path) = ca_bundle {
            let unusable = |e: &dyn std::fmt::Display| {
                SandboxError::input(format!(
                    "the certificates in {} cannot be read: {e}",
                    path.display()
                ))
            };
            let pem =
                plain_file::read(path, Links::Follow, MAX_DOCUMENT).map_err(|e| unusable(&e))?;
            let certificates =
                reqwest::Certificate::from_pem_bundle(&pem).map_err(|e| unusable(&e))?;
            public = public.tls_certs_merge(certificates.clone());
            named = named.tls_certs_merge(certificates);
        }
        let except = list
            .iter()
            .filter_map(|url| Some(url.host_str()?.to_lowercase()))
            .collect();
        let client = |builder: reqwest::ClientBuilder| {
            let built = builder.build();
            built.map_err(|e| {
                SandboxError::input(format!("create a client for package indexes: {e}"))
            })
        };
        Ok(Upstream {
            public: client(public.dns_resolver(PublicOnly { except }))?,
            named: client(named)?,
            matcher: Matcher::builder()
                .http(http.unwrap_or_default())
                .https(https.unwrap_or_default())
                .all(all.unwrap_or_default())
                .no(no)
                .build(),
            proxies: list,
        })
    }

    /// Sends a request. Redirects of a package index are followed, each checked like the first URL. The credentials in
    /// the address of the index are sent only to its own server.
    pub(super) async fn get(
        &self,
        method: &Method,
        url: Url,
        headers: &HeaderMap,
        index: Option<&Url>,
        hosts: &[Host],
    ) -> std::result::Result<Response, Refusal> {
        let mut url = url;
        for _ in 0..MAX_REDIRECTS {
            let own = index.filter(|index| index.origin() == url.origin());
            let is_named = own.is_some()
                || matches!((url.host_str(), url.port_or_known_default()),
                    (Some(host), Some(port)) if hosts.iter().any(|h| h.matches(host, port)));
            if !is_named {
                self.check_public(&url)?;
            }
            let client = if is_named { &self.named } else { &self.public };
            let mut request = client
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if let Some((user, password)) = own.and_then(login) {
                request = request.basic_auth(user, password);
            }
            let response = request.send().await.map_err(|e| explain(&url, e))?;
            if !(index.is_some() && response.status().is_redirection()) {
                return Ok(response);
            }
            let next = response
                .headers()
                .get(LOCATION)
                .and_then(|location| url.join(location.to_str().ok()?).ok());
            let Some(next) = next else {
                return Ok(response);
            };
            if !matches!(next.scheme(), "http" | "https") {
                let url = redacted(&url);
                let why = format!("{url} redirects to an invalid URL");
                return Err(Refusal::Failed(why));
            }
            url = next;
        }
        let url = redacted(&url);
        Err(Refusal::Failed(format!("{url} redirects too often")))
    }

    /// Checks a server that the user did not name: it must be public, and not one of the user's proxies.
    fn check_public(&self, url: &Url) -> std::result::Result<(), Refusal> {
        let host = url.host_str().unwrap_or_default();
        let forbidden = || {
            let port = url.port().map(|port| format!(":{port}"));
            Refusal::Forbidden(format!("{host}{}", port.unwrap_or_default()))
        };
        if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
            let url = redacted(url);
            return Err(Refusal::Failed(format!("{url} is not the URL of a file")));
        }
        let private = literal(host).is_some_and(|address| !is_public(address));
        let local = host == "localhost" || host.ends_with(".localhost");
        let proxy = self
            .proxies
            .iter()
            .any(|proxy| proxy.host_str() == Some(host));
        if private || local || proxy {
            return Err(forbidden());
        }
        Ok(())
    }

    /// Connects to a host and port, through the user's proxy if there is one. `is_named` says that the user named the
    /// host.
    pub(super) async fn dial(
        &self,
        host: &str,
        port: u16,
        is_named: bool,
    ) -> std::result::Result<TcpStream, Refusal> {
        let failed =
            |e: &dyn std::fmt::Display| Refusal::Failed(format!("reach {host}:{port}: {e}"));
        let mut url = Url::parse("https://localhost/").map_err(|e| failed(&e))?;
        url.set_host(Some(host)).map_err(|e| failed(&e))?;
        let _ = url.set_port(Some(port));
        if !is_named {
            self.check_public(&url)?;
        }
        let uri = url.as_str().parse().map_err(|e| failed(&e))?;
        let work = async {
            let Some(proxy) = self.matcher.intercept(&uri) else {
                let bare = host.trim_matches(['[', ']']);
                let addresses = tokio::net::lookup_host((bare, port)).await?;
                let is_allowed = |address: &SocketAddr| is_named || is_public(address.ip());
                let allowed: Vec<SocketAddr> = addresses.filter(is_allowed).collect();
                if allowed.is_empty() {
                    return Ok(None);
                }
                return TcpStream::connect(allowed.as_slice()).await.map(Some);
            };
            let at = proxy.uri();
            let authority = (at.host().unwrap_or_default(), at.port_u16().unwrap_or(80));
            let mut stream = TcpStream::connect(authority).await?;
            let login = proxy.basic_auth().and_then(|value| value.to_str().ok());
            tunnel(&mut stream, host, port, login).await?;
            Ok(Some(stream))
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, work).await {
            Ok(Ok(stream)) => stream.ok_or_else(|| Refusal::Forbidden(format!("{host}:{port}"))),
            Ok(Err(e)) => Err(failed(&e)),
            Err(_) => Err(failed(&"the connection timed out")),
        }
    }
}

async fn tunnel(
    stream: &mut TcpStream,
    host: &str,
    port: u16,
    login: Option<&str>,
) -> io::Result<()> {
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if let Some(login) = login {
        request.push_str(&format!("Proxy-Authorization: {login}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() > 1 << 14 {
            return Err(io::Error::other("the response of the proxy is too long"));
        }
        answer.push(stream.read_u8().await?);
    }
    let first = String::from_utf8_lossy(&answer);
    let code = first
        .split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    match code.as_str() {
        "200" => Ok(()),
        _ => Err(io::Error::other(format!("the proxy returned {code}"))),
    }
}

/// A resolver that hides private addresses. A name is resolved again for each connection, so an earlier result cannot
/// be misused.
struct PublicOnly {
    /// Hosts of the user's proxies, which may be private.
    except: Vec<String>,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_lowercase();
        let any = self.except.contains(&name);
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0))
                .await?
                .filter(|address| any || is_public(address.ip()))
                .collect();
            if addresses.is_empty() {
                return Err(Box::new(Private) as Box<dyn std::error::Error + Send + Sync>);
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("all its addresses are private")]
struct Private;

fn explain(url: &Url, error: reqwest::Error) -> Refusal {
    let causes: Vec<_> = sources(&error).collect();
    if causes.iter().any(|cause| cause.is::<Private>()) {
        return Refusal::Forbidden(url.host_str().unwrap_or_default().to_owned());
    }
    let why = causes
        .last()
        .map_or_else(|| error.to_string(), |cause| cause.to_string());
    Refusal::Failed(format!(
        "error sending request for {}: {why}",
        redacted(url)
    ))
}

/// Returns the URL without user, password, query and fragment.
pub(super) fn redacted(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Returns a login as the value of an `Authorization` header.
pub(super) fn basic(user: &str, password: &str) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {text}")
}
