//! Disk checks: free space in the folders that a run writes to, and the contents of the cache.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use testwright_sandboxes::environment::{self, Environment};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::checks::existing;
use super::finding::Finding;
use crate::cli::output::escape_line;
use testwright_config::settings::{Settings, Size};
use testwright_server::disk_usage;
use testwright_tools::tools::count;

/// Minimum free space for a build, in bytes.
const MIN_FREE_BYTES: u64 = 2 << 30;

/// A cached environment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::cli) struct CachedEnvironment {
    pub name: String,
    /// Repository that it was built for; empty if an older version built it.
    pub repository: String,
    pub commit: Option<String>,
    /// Time of the last use (RFC 3339, UTC).
    pub last_used: Option<String>,
    pub python: Option<String>,
    /// Source of its recipe.
    pub origin: String,
    pub packages: usize,
    /// Size in bytes, without the requirements that it shares with other environments.
    pub bytes: u64,
}

impl CachedEnvironment {
    pub(in crate::cli) fn render(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("no commit");
        let used = self.last_used.as_deref().unwrap_or("unknown");
        let subject = match self.repository.as_str() {
            "" => "unknown repository".to_owned(),
            name => format!("{name} {}", commit.get(..12).unwrap_or(commit)),
        };
        let python = self
            .python
            .as_deref()
            .map_or(String::new(), |v| format!(", Python {v}"));
        let size = Size::new(self.bytes).to_string();
        format!(
            "  {size:>13}  {}, last used {} ({}: {}{python}, {})\n",
            escape_line(&subject),
            escape_line(used.get(..10).unwrap_or(used)),
            escape_line(&self.name),
            escape_line(&self.origin),
            count(self.packages, "package")
        )
    }
}

/// A folder of the cache.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(in crate::cli) struct CacheFolder {
    pub bytes: u64,
    pub name: String,
}

/// Checks the free space in the folders that runs write to.
pub(super) fn disk(settings: &Settings) -> Vec<Finding> {
    let out = settings
        .run
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("."));
    [("cache", &settings.cache), ("results", &out)]
        .into_iter()
        .map(|(what, folder)| check_free_space(what, folder))
        .collect()
}

fn check_free_space(what: &'static str, folder: &Path) -> Finding {
    const AREA: &str = "disk";
    let path = folder.display();
    let existing_folder = existing(folder);
    let file_system = match rustix::fs::statvfs(existing_folder) {
        Ok(about) => about,
        Err(error) => return Finding::note(AREA, what, format!("{path}: {error}")),
    };
    let free = file_system.f_bavail.saturating_mul(file_system.f_frsize);
    let text = format!("{path}: {} free", Size::new(free));
    let writable = rustix::fs::access(existing_folder, rustix::fs::Access::WRITE_OK).is_ok();
    match (writable, free < MIN_FREE_BYTES) {
        (false, _) => Finding::missing(AREA, what, format!("{path} is not writable"))
            .hint("set `cache`, TESTWRIGHT_CACHE or --out to a folder that you can write to"),
        (true, true) => Finding::note(AREA, what, text)
            .hint("free some space: an environment takes a few hundred MiB"),
        (true, false) => Finding::ok(AREA, what, text),
    }
}

/// Measures the folders of the cache, largest first. Blocking, since it walks through the cache.
pub(in crate::cli) fn folders(cache: &Path) -> Vec<CacheFolder> {
    let folders = disk_usage::by_folder(cache).into_iter();
    let mut folders: Vec<_> = folders
        .map(|(name, bytes)| CacheFolder { bytes, name })
        .collect();
    folders.sort_by(|a, b| b.cmp(a));
    folders
}

/// Lists the folders of the cache and their total size; `None` if they are empty.
pub(in crate::cli) fn contents(folders: &[CacheFolder]) -> Option<Finding> {
    let all: u64 = folders.iter().map(|folder| folder.bytes).sum();
    let list: Vec<String> = folders
        .iter()
        .map(|folder| format!("{} {}", folder.name, Size::new(folder.bytes)))
        .collect();
    let text = format!("{} in total: {}", Size::new(all), list.join(", "));
    (all > 0).then(|| Finding::ok("disk", "cache contents", text))
}

/// Compares the size of cached environments with the limit, by backend.
pub(super) fn check_cache_size(sizes: &BTreeMap<String, u64>, most: Size) -> Option<Finding> {
    const AREA: &str = "disk";
    const WHAT: &str = "environments";
    let part = |(backend, bytes): (&String, &u64)| {
        format!("{} of at most {most} for {backend}", Size::new(*bytes))
    };
    let parts: Vec<String> = sizes.iter().map(part).collect();
    if parts.is_empty() {
        return None;
    }
    let text = format!("kept {}", parts.join(", "));
    Some(if sizes.values().all(|bytes| *bytes <= most.bytes()) {
        Finding::ok(AREA, WHAT, text)
    } else {
        Finding::note(AREA, WHAT, text).hint(
            "the next build removes the least recently used ones that are not in use; raise `build.cache-size` to keep more",
        )
    })
}

/// Lists the cached environments, largest first. Blocking, since it walks through the cache.
pub(in crate::cli) fn environments(cache: &Path) -> Vec<CachedEnvironment> {
    let mut environments = Vec::new();
    for entry in std::fs::read_dir(cache.join("environments"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let Ok(text) = plain_file::read(&path, Links::Refuse, MAX_DOCUMENT) else {
            continue;
        };
        // The folder also holds records of other types.
        let Ok(environment) = serde_json::from_slice::<Environment>(&text) else {
            continue;
        };
        let used = environment::last_use(cache, &environment.saved);
        let used = used.and_then(|at| jiff::Timestamp::try_from(at).ok());
        environments.push(CachedEnvironment {
            name: environment.saved,
            repository: environment.repository,
            commit: environment.commit,
            last_used: used.map(|at| at.to_string()),
            python: environment.recipe.python,
            origin: environment.origin,
            packages: environment.packages.len(),
            bytes: environment.bytes,
        });
    }
    environments.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    environments
}

#[cfg(test)]
mod tests;
