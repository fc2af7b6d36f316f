//! Disk space: evicts the least recently used environments of a backend until the rest fit its limit.
//!
//! States that are in use or being built stay (see [`super::lease`]), so the total can still exceed the limit. A layer
//! of requirements is evicted with the last environment built on it. The next eviction finishes an interrupted one.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Instant, SystemTime};

use super::lease::{ExclusiveLock, last_used};
use super::log::Log;
use super::records::{self, Record};
use super::{BuildEvent, Progress, locked};
use crate::error::SandboxError;
use crate::sandbox::{Backend, Result};

/// A state in the cache.
#[derive(Debug, Clone, PartialEq)]
struct CachedState {
    name: String,
    bytes: u64,
    used: SystemTime,
    /// Layer that an environment is built on; `None` for a layer.
    layer: Option<String>,
}

/// Evicts states until the rest take at most `most` bytes.
///
/// Returns one line for each state that could not be removed, because such a failure must not fail a build.
pub(super) async fn evict(
    backend: &dyn Backend,
    folder: &Path,
    most: u64,
    log: &Log,
    progress: Progress<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let all = Limit {
        bytes: most,
        cutoff: SystemTime::UNIX_EPOCH,
    };
    if let Err(error) = try_evict(backend, folder, all, log, progress, &mut notes).await {
        notes.push(format!("could not check for old environments: {error}"));
    }
    for note in &notes {
        log.line(note);
    }
    notes
}

/// Removes the environments of a backend that were last used before `cutoff`, and the least recently used ones until the
/// rest take at most `most` bytes. Environments in use stay.
///
/// Returns one line for the removal and for each state that could not be removed.
///
/// # Errors
///
/// Fails if the backend does not answer or the cache cannot be written.
pub async fn prune(
    backend: &dyn Backend,
    cache: &Path,
    most: u64,
    cutoff: SystemTime,
) -> Result<Vec<String>> {
    let folder = cache.join("environments");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let log = Log::create(cache.join("logs/prune.log"), Vec::new())?;
    let steps = Mutex::new(Vec::new());
    let progress = |event: BuildEvent| {
        if let BuildEvent::Started { step } = event {
            locked(&steps).push(step);
        }
    };
    let limit = Limit {
        bytes: most,
        cutoff,
    };
    let mut notes = Vec::new();
    try_evict(backend, &folder, limit, &log, &progress, &mut notes).await?;
    let mut lines = std::mem::take(&mut *locked(&steps));
    lines.extend(notes);
    Ok(lines)
}

/// The limits of a cache.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// Maximum bytes of all states.
    bytes: u64,
    /// Environments that were last used before this time must go.
    cutoff: SystemTime,
}

async fn try_evict(
    backend: &dyn Backend,
    folder: &Path,
    limit: Limit,
    log: &Log,
    progress: Progress<'_>,
    notes: &mut Vec<String>,
) -> Result<()> {
    // Two concurrent evictions would each remove the whole excess.
    let one_at_a_time = File::create(folder.join("room.lock"))?;
    let _one_at_a_time =
        tokio::task::spawn_blocking(move || one_at_a_time.lock().map(|()| one_at_a_time)).await??;
    finish(backend, folder, notes).await?;
    let kept = list_states(backend, folder).await?;
    let doomed = select_for_removal(kept, limit, |name| ExclusiveLock::take(folder, name))?;
    if doomed.is_empty() {
        return Ok(());
    }
    let step = summary(doomed.iter().map(|(one, _)| one));
    progress(BuildEvent::Started { step: step.clone() });
    let begun = Instant::now();
    log.line(&format!("== {step}"));
    for (one, _sole) in &doomed {
        log.line(&one.name);
        let record = records::path(folder, &one.name);
        tokio::fs::rename(&record, records::removal_path(folder, &one.name)).await?;
        remove(backend, folder, &one.name, notes).await;
    }
    let seconds = begun.elapsed().as_secs_f64();
    log.line(&format!("== {step}: {seconds:.1} s\n"));
    progress(BuildEvent::Finished { step, seconds });
    Ok(())
}

/// Removes a state whose record is already renamed to `NAME.gone`.
pub(super) async fn remove(
    backend: &dyn Backend,
    folder: &Path,
    name: &str,
    notes: &mut Vec<String>,
) {
    let removed = match backend.remove_saved(name).await {
        Ok(()) => tokio::fs::remove_file(records::removal_path(folder, name))
            .await
            .map_err(SandboxError::from),
        Err(error) => Err(error),
    };
    if let Err(error) = removed {
        notes.push(format!("could not remove the old state {name}: {error}"));
    }
}

/// Finishes interrupted removals.
async fn finish(backend: &dyn Backend, folder: &Path, notes: &mut Vec<String>) -> Result<()> {
    for name in records::names(folder, ".gone") {
        let sole = ExclusiveLock::take(folder, &name)?;
        let gone = records::removal_path(folder, &name);
        if records::path(folder, &name).exists() {
            // The state was built again in the meantime.
            tokio::fs::remove_file(&gone).await?;
        } else if sole.is_some()
            && records::read::<Record>(&gone)
                .await
                .is_none_or(|record| record.backend == backend.name())
        {
            remove(backend, folder, &name, notes).await;
        }
    }
    Ok(())
}

/// Lists the states of this backend.
async fn list_states(backend: &dyn Backend, folder: &Path) -> Result<Vec<CachedState>> {
    let mut kept = Vec::new();
    for name in records::names(folder, ".json") {
        let path = records::path(folder, &name);
        let Some(record) = records::read::<Record>(&path).await else {
            continue;
        };
        // A state that another program removed takes no space.
        if record.backend != backend.name() || !backend.has_saved(&name).await? {
            continue;
        }
        let used = last_used(folder, &name)
            .or_else(|| std::fs::metadata(&path).ok()?.modified().ok())
            .unwrap_or(SystemTime::UNIX_EPOCH);
        kept.push(CachedState {
            name,
            bytes: record.bytes,
            used,
            layer: record.dependencies,
        });
    }
    Ok(kept)
}

/// Selects the states to remove, in order. `sole` locks a state, and returns `None` if it is in use.
fn select_for_removal<S>(
    mut kept: Vec<CachedState>,
    limit: Limit,
    mut sole: impl FnMut(&str) -> Result<Option<S>>,
) -> Result<Vec<(CachedState, S)>> {
    let mut bytes: u64 = kept.iter().map(|one| one.bytes).sum();
    let (mut doomed, mut held) = (Vec::new(), Vec::new());
    let is_old = |one: &CachedState| one.layer.is_some() && one.used < limit.cutoff;
    if bytes <= limit.bytes && !kept.iter().any(is_old) {
        return Ok(doomed);
    }
    kept.sort_by(|a, b| a.used.cmp(&b.used).then_with(|| a.name.cmp(&b.name)));
    loop {
        let bare = |one: &CachedState| {
            let is_on = |other: &CachedState| other.layer.as_ref() == Some(&one.name);
            one.layer.is_none() && !kept.iter().chain(&held).any(is_on)
        };
        let oldest = |one: &CachedState| one.layer.is_some();
        let next = match kept.iter().position(bare) {
            None if bytes > limit.bytes => kept.iter().position(oldest),
            None => kept.iter().position(is_old),
            found => found,
        };
        let Some(next) = next else {
            return Ok(doomed);
        };
        let one = kept.remove(next);
        match sole(&one.name)? {
            Some(sole) => {
                bytes = bytes.saturating_sub(one.bytes);
                doomed.push((one, sole));
            }
            None => held.push(one),
        }
    }
}

fn summary<'a>(doomed: impl Iterator<Item = &'a CachedState>) -> String {
    let (mut environments, mut bytes) = (0, 0);
    for one in doomed {
        environments += usize::from(one.layer.is_some());
        bytes += one.bytes;
    }
    let size = if bytes >= 1 << 30 {
        format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64)
    } else {
        format!("{:.1} MiB", bytes as f64 / (1_u64 << 20) as f64)
    };
    match environments {
        0 => format!("remove requirements that no environment uses: {size}"),
        _ => format!("remove the least recently used environments: {environments}, {size}"),
    }
}

#[cfg(test)]
mod tests;
