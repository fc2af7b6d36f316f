#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use super::*;

fn cached_state(name: &str, bytes: u64, used: u64, on: Option<&str>) -> CachedState {
    CachedState {
        name: name.to_owned(),
        bytes,
        used: SystemTime::UNIX_EPOCH + Duration::from_secs(used),
        layer: on.map(str::to_owned),
    }
}

/// Returns the names of the evicted states if those in `used` are in use.
fn evicted(kept: Vec<CachedState>, most: u64, used: &[&str]) -> Vec<String> {
    evicted_before(0, kept, most, used)
}

/// Does the same, and evicts environments that were last used before `cutoff`.
fn evicted_before(cutoff: u64, kept: Vec<CachedState>, most: u64, used: &[&str]) -> Vec<String> {
    let limit = Limit {
        bytes: most,
        cutoff: SystemTime::UNIX_EPOCH + Duration::from_secs(cutoff),
    };
    let sole = |name: &str| Ok((!used.contains(&name)).then_some(()));
    let doomed = select_for_removal(kept, limit, sole).unwrap();
    doomed.into_iter().map(|(one, ())| one.name).collect()
}

fn some() -> Vec<CachedState> {
    vec![
        cached_state("env-3", 10, 3, Some("deps-b")),
        cached_state("env-1", 10, 1, Some("deps-a")),
        cached_state("env-2", 10, 2, Some("deps-a")),
        cached_state("deps-b", 100, 1, None),
        cached_state("deps-a", 100, 1, None),
    ]
}

#[test]
fn oldest_are_evicted_until_rest_fits() {
    assert_eq!(evicted(some(), 230, &[]), [""; 0]);
    assert_eq!(evicted(some(), 229, &[]), ["env-1"]);
    assert_eq!(evicted(some(), 219, &[]), ["env-1", "env-2", "deps-a"]);
    assert_eq!(
        evicted(some(), 109, &[]),
        ["env-1", "env-2", "deps-a", "env-3", "deps-b"]
    );
}

#[test]
fn used_environments_keep_their_layer() {
    assert_eq!(evicted(some(), 0, &["env-1"]), ["env-2", "env-3", "deps-b"]);
    let used = ["env-1", "env-3"];
    assert_eq!(evicted(some(), 0, &used), ["env-2"]);
    // Another process builds on the layer.
    assert_eq!(
        evicted(some(), 0, &["deps-a"]),
        ["env-1", "env-2", "env-3", "deps-b"]
    );
}

#[test]
fn environments_before_cutoff_are_evicted() {
    let evicted = |cutoff, used: &[&str]| evicted_before(cutoff, some(), 1000, used);
    assert_eq!(evicted(1, &[]), [""; 0]);
    assert_eq!(evicted(2, &[]), ["env-1"]);
    assert_eq!(evicted(3, &[]), ["env-1", "env-2", "deps-a"]);
    assert_eq!(evicted(3, &["env-1"]), ["env-2"]);
}

#[test]
fn unused_layers_are_evicted_first() {
    let bare = cached_state("deps-c", 1, 9, None);
    let mut all = some();
    all.push(bare);
    assert_eq!(evicted(all.clone(), 231, &[]), [""; 0]);
    assert_eq!(evicted(all, 230, &[]), ["deps-c"]);
}

#[test]
fn summary_states_count_and_size() {
    let layer = [cached_state("deps-a", 1 << 20, 1, None)];
    assert_eq!(
        summary(layer.iter()),
        "remove requirements that no environment uses: 1.0 MiB"
    );
    let all = [
        cached_state("env-1", 3 << 29, 1, Some("deps-a")),
        cached_state("deps-a", 1 << 30, 1, None),
    ];
    assert_eq!(
        summary(all.iter()),
        "remove the least recently used environments: 1, 2.5 GiB"
    );
}
