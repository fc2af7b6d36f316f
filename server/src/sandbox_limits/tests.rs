#![allow(clippy::unwrap_used)]
use std::time::Duration;

use testwright_config::error::Kind;

use super::*;
use crate::reserved_owners::LOCAL;

#[tokio::test]
async fn owner_gets_half_of_sandboxes() {
    let limits = SandboxLimits::new(4);
    let permits: Vec<_> = (0..2)
        .map(|_| limits.try_acquire("alice").unwrap())
        .collect();
    assert_eq!(
        limits.try_acquire("alice").unwrap_err(),
        LimitReached::Owner(2)
    );
    // Waiting for the owner's share does not reduce other owners' shares.
    let short = Duration::from_millis(50);
    let waiting = tokio::time::timeout(short, limits.acquire("alice"));
    assert!(waiting.await.is_err());
    let _of_bob = [limits.try_acquire("bob"), limits.try_acquire("bob")].map(Result::unwrap);
    assert_eq!(
        limits.try_acquire("carol").unwrap_err(),
        LimitReached::All(4)
    );
    drop(permits);
    assert!(limits.acquire("alice").await.is_ok());
    assert!(limits.try_acquire("carol").is_ok());
}

#[tokio::test]
async fn no_call_waits_without_sandboxes() {
    let none = SandboxLimits::new(0);
    let short = Duration::from_millis(50);
    let refused = tokio::time::timeout(short, none.acquire("alice")).await;
    assert_eq!(refused.unwrap().unwrap_err().kind, Kind::Usage);
}

#[test]
fn sole_owner_may_use_all_sandboxes() {
    let limits = SandboxLimits::new(4);
    let _permits: Vec<_> = (0..4).map(|_| limits.try_acquire(LOCAL).unwrap()).collect();
    assert_eq!(limits.try_acquire(LOCAL).unwrap_err(), LimitReached::All(4));
}
