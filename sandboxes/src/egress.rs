//! Network access for sandboxes in which an environment is built: the package indexes of the settings, and hosts that
//! the user allowed.
//!
//! Such a sandbox has no network. A relay ([`relay`]) listens on its loopback and carries connections to this process.
//! Here a package index ([`index`]) or a proxy for allowed hosts ([`forward`]) answers them over HTTP. The index
//! queries the real indexes with their credentials and proxies, and keeps files for later builds.
//!
//! If sandboxes share the host's loopback (Landlock), a listener there replaces the relay. Everything from a sandbox is
//! untrusted, and so are the answers of an index: they cannot make the host request private addresses.

mod downloads;
mod forward;
mod hosts;
mod index;
mod page;
mod pages;
mod relay;
mod response;
mod serve;
mod transfer;
mod upstream;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use reqwest::Url;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::error::SandboxError;
use crate::mutex::lock;
use crate::sandbox::{Result, Sandbox};
use downloads::Downloads;
pub use hosts::Host;
use pages::Pages;
use relay::Relay;
#[cfg(fuzzing)]
pub use relay::carry_frames;
use upstream::Upstream;

/// Settings for the network access of builds.
#[derive(Debug, Clone, Default)]
pub struct EgressSettings {
    /// Folder for downloaded files.
    pub cache: PathBuf,
    /// Maximum bytes of that folder.
    pub max_cache_bytes: u64,
    /// Maximum bytes of pages and files that may be downloaded.
    pub max_download_bytes: u64,
    /// Address of the package index, with credentials; `None` for PyPI. It may start with `NAME=`, as in uv.
    pub index_url: Option<String>,
    /// Addresses of additional package indexes, in the same form.
    pub extra_index_urls: Vec<String>,
    /// Proxies by variable: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in lower or upper case.
    pub proxies: BTreeMap<String, String>,
    /// PEM file of certificate authorities to trust besides the system's; `None` for no others.
    pub ca_bundle: Option<PathBuf>,
    /// Serve only downloaded files, and send no requests.
    pub offline: bool,
    /// Hosts that builds may reach besides the indexes, in the form that [`Host::parse`] reads.
    pub allowed_hosts: Vec<String>,
}

const PYPI: &str = "https://pypi.org/simple/";

/// Maximum concurrent downloads of files and pages.
const MAX_DOWNLOADS: usize = 64;

/// Maximum pages that are parsed and rewritten concurrently, and how many of them may be long.
const MAX_PARSED_PAGES: usize = 4;
const MAX_LONG_PAGES: usize = 2;

/// Maximum downloaded files that are read concurrently.
const MAX_READERS: usize = 64;

/// Maximum concurrent connections from sandboxes. A relay accepts fewer.
const CONNECTIONS: usize = 256;

/// Maximum downloaded files that are remembered as verified.
const MAX_CHECKED: usize = 10_000;

/// Maximum lines of notices between two steps.
const NOTICES: usize = 40;

/// A server for any number of sandboxes, one after the other, until it is dropped.
pub struct Egress {
    inner: Arc<Inner>,
}

struct Inner {
    /// Random part of every address: the loopback of a machine is open to all its users.
    token: String,
    indexes: Vec<Index>,
    hosts: Vec<Host>,
    /// Hosts that are allowed for the current step only.
    temporary_hosts: Mutex<Vec<Host>>,
    offline: bool,
    upstream: Upstream,
    downloads: Downloads,
    pages: Pages,
    reading: Semaphore,
    long_pages: Semaphore,
    readers: Arc<Semaphore>,
    /// Locks of files that are downloaded completely to serve ranges of them.
    download_locks: Mutex<HashMap<PathBuf, Weak<DownloadLock>>>,
    most_fetched: u64,
    fetched: AtomicU64,
    /// Downloaded files whose digest was verified.
    checked: Mutex<HashSet<PathBuf>>,
    at_once: Semaphore,
    connections: Arc<Semaphore>,
    notices: Mutex<Vec<String>>,
    tasks: Mutex<JoinSet<()>>,
}

type DownloadLock = tokio::sync::Mutex<()>;

struct Index {
    /// Id in the addresses that sandboxes see; reveals nothing of the credentials.
    id: String,
    /// Name of the index in uv.
    name: Option<String>,
    /// Address with the user and password. A service that the user chose may have any address.
    url: Url,
}

/// Network access of one sandbox, closed when dropped.
pub struct Gateway {
    port: u16,
    _relay: Option<Relay>,
}

/// A listener on the host's loopback, for sandboxes that share it.
pub struct HostPort {
    /// Port number on 127.0.0.1.
    pub port: u16,
    _task: JoinSet<()>,
}

impl Egress {
    /// # Errors
    ///
    /// Kind `Input` for an invalid address of an index or an invalid host. Also fails if the certificates, a proxy or
    /// the download folder cannot be used.
    pub fn new(settings: &EgressSettings) -> Result<Egress> {
        let mut indexes = Vec::new();
        let urls = settings.extra_index_urls.iter().map(String::as_str);
        for text in urls.chain([settings.index_url.as_deref().unwrap_or(PYPI)]) {
            indexes.push(Index::parse(text)?);
        }
        let hosts = settings.allowed_hosts.iter().map(|text| Host::parse(text));
        Ok(Egress {
            inner: Arc::new(Inner {
                token: token()?,
                indexes,
                hosts: hosts.collect::<Result<_>>()?,
                temporary_hosts: Mutex::default(),
                offline: settings.offline,
                upstream: Upstream::new(&settings.proxies, settings.ca_bundle.as_deref())?,
                downloads: Downloads::open(&settings.cache, settings.max_cache_bytes)?,
                pages: Pages::new(),
                reading: Semaphore::new(MAX_PARSED_PAGES),
                long_pages: Semaphore::new(MAX_LONG_PAGES),
                readers: Arc::new(Semaphore::new(MAX_READERS)),
                download_locks: Mutex::default(),
                most_fetched: settings.max_download_bytes,
                fetched: AtomicU64::new(0),
                checked: Mutex::default(),
                at_once: Semaphore::new(MAX_DOWNLOADS),
                connections: Arc::new(Semaphore::new(CONNECTIONS)),
                notices: Mutex::default(),
                tasks: Mutex::default(),
            }),
        })
    }

    /// Starts the relay in a sandbox that has its own loopback. `python` is an interpreter in that sandbox.
    ///
    /// # Errors
    ///
    /// Fails if the relay does not start in the sandbox.
    pub async fn attach(&self, sandbox: &dyn Sandbox, python: &str) -> Result<Gateway> {
        let inner = self.inner.clone();
        let relay = Relay::start(sandbox, python, move |stream| {
            let serving = serve::connection(inner.clone(), stream);
            inner.spawn(serving);
        })
        .await?;
        Ok(Gateway {
            port: relay.port,
            _relay: Some(relay),
        })
    }

    /// Listens on the host's loopback, for sandboxes that share it.
    ///
    /// # Errors
    ///
    /// Fails if no port of the loopback can be opened.
    pub async fn listen(&self) -> Result<HostPort> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let inner = self.inner.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                inner.spawn(serve::connection(inner.clone(), stream));
            }
        });
        Ok(HostPort { port, _task: task })
    }

    /// Returns network access through a port of the host.
    pub fn gateway_through(&self, host: &HostPort) -> Gateway {
        Gateway {
            port: host.port,
            _relay: None,
        }
    }

    /// Returns the environment variables that point uv, pip and other programs to the gateway.
    pub fn variables(&self, gateway: &Gateway) -> BTreeMap<String, String> {
        let (inner, port) = (&self.inner, gateway.port);
        let proxy = format!("http://testwright:{}@127.0.0.1:{port}", inner.token);
        let address = |index: &Index| {
            format!(
                "http://127.0.0.1:{port}/{}/index/{}/simple/",
                inner.token, index.id
            )
        };
        let named_address = |index: &Index| match &index.name {
            Some(name) => format!("{name}={}", address(index)),
            None => address(index),
        };
        let mut variables = BTreeMap::new();
        let mut set = |names: &[&str], value: &str| {
            for name in names {
                variables.insert((*name).to_owned(), value.to_owned());
            }
        };
        set(&["http_proxy", "https_proxy", "all_proxy"], &proxy);
        set(&["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"], &proxy);
        set(&["no_proxy", "NO_PROXY"], "127.0.0.1,localhost,::1");
        // The host waits for servers, and downloads the whole file before it answers with a range.
        set(&["UV_HTTP_TIMEOUT", "PIP_DEFAULT_TIMEOUT"], "300");
        if let Some((last, extra)) = inner.indexes.split_last() {
            set(&["UV_DEFAULT_INDEX"], &named_address(last));
            set(&["PIP_INDEX_URL"], &address(last));
            if !extra.is_empty() {
                let list = |of: &dyn Fn(&Index) -> String| {
                    extra.iter().map(of).collect::<Vec<_>>().join(" ")
                };
                set(&["UV_INDEX"], &list(&named_address));
                set(&["PIP_EXTRA_INDEX_URL"], &list(&address));
            }
        }
        variables
    }

    /// Allows public hosts until the guard is dropped.
    pub fn allow_temporarily(&self, hosts: Vec<Host>) -> TemporaryAccess<'_> {
        *lock(&self.inner.temporary_hosts) = hosts;
        TemporaryAccess(self)
    }

    /// Returns and clears the notices about refused hosts and failed downloads, one line each.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.inner.notices))
    }

    /// Stops running transfers, and evicts the least recently used downloads. Returns how many bytes remain. Blocks.
    pub fn finish(&self) -> u64 {
        lock(&self.inner.tasks).abort_all();
        if let Err(error) = self.inner.downloads.evict() {
            tracing::warn!(%error, "old downloads were not removed");
        }
        self.inner.downloads.bytes()
    }
}

impl Drop for Egress {
    fn drop(&mut self) {
        lock(&self.inner.tasks).abort_all();
    }
}

/// A guard for the hosts of [`Egress::allow_temporarily`]. Dropping it revokes their access.
pub struct TemporaryAccess<'a>(&'a Egress);

impl Drop for TemporaryAccess<'_> {
    fn drop(&mut self) {
        lock(&self.0.inner.temporary_hosts).clear();
    }
}

impl Inner {
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Remembers that the digest of a downloaded file was verified.
    fn remember_checked(&self, path: PathBuf) {
        let mut checked = lock(&self.checked);
        if checked.len() >= MAX_CHECKED {
            // Forgotten files are only verified again.
            checked.clear();
        }
        checked.insert(path);
    }

    fn note(&self, line: String) {
        let mut notices = lock(&self.notices);
        if notices.len() < NOTICES && !notices.contains(&line) {
            notices.push(line);
        }
    }

    /// Counts downloaded bytes.
    fn record_download(&self, bytes: usize) -> io::Result<()> {
        let before = self.fetched.fetch_add(bytes as u64, Ordering::Relaxed);
        self.within_limit(before, bytes as u64)
    }

    /// Checks that this many more bytes may be downloaded, before the transfer starts.
    fn check_budget(&self, bytes: u64) -> io::Result<()> {
        self.within_limit(self.fetched.load(Ordering::Relaxed), bytes)
    }

    fn within_limit(&self, before: u64, bytes: u64) -> io::Result<()> {
        if before.saturating_add(bytes) <= self.most_fetched {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "the build exceeded its download limit of {:.1} GiB (see limits.disk)",
            self.most_fetched as f64 / (1_u64 << 30) as f64
        )))
    }

    /// Returns the lock for requests that download this file completely.
    fn download_lock(&self, path: Option<&Path>) -> Arc<DownloadLock> {
        let mut turns = lock(&self.download_locks);
        turns.retain(|_, turn| turn.strong_count() > 0);
        let path = path.unwrap_or(Path::new(""));
        if let Some(turn) = turns.get(path).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(DownloadLock::default());
        turns.insert(path.to_owned(), Arc::downgrade(&turn));
        turn
    }

    fn refused(&self, host: &str) {
        self.note(format!(
            "network: {host} was refused: a build can reach only the package index and the hosts in build.allowed-hosts"
        ));
    }
}

impl Index {
    fn parse(text: &str) -> Result<Index> {
        let (name, address) = match text.split_once('=') {
            Some((name, rest)) if !name.contains([':', '/']) => (Some(name.to_owned()), rest),
            _ => (None, text),
        };
        let url = Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(mut url) = url else {
            let hidden = address.rsplit_once('@').map_or(address, |(_, rest)| rest);
            let text = format!("invalid package index {hidden}");
            return Err(
                SandboxError::input(text).hint("write its address as https://host/path/simple")
            );
        };
        url.set_fragment(None);
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Ok(Index {
            id: downloads::key(&[&upstream::redacted(&url)])[..16].to_owned(),
            name,
            url,
        })
    }
}

fn token() -> Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(crate::hex::hex(&bytes))
}

#[cfg(test)]
mod tests;
