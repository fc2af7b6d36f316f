//! Limits sessions and sandboxes per owner of tokens, so that other owners are not blocked. A server without tokens has
//! one owner, without such a limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::reserved_owners::LOCAL;

/// Maximum HTTP clients of one owner: a quarter of all.
pub(super) const MAX_CLIENTS_OF_OWNER: usize = 64;
/// Minimum number of sandboxes per owner, so that a client with an open session can still check a test.
const MIN_SANDBOXES_OF_OWNER: usize = 2;

/// The limit that prevents another sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitReached {
    /// Maximum number of sandboxes for one owner.
    Owner(usize),
    /// Maximum number of sandboxes for all owners.
    All(usize),
}

/// Allows sandboxes up to a total maximum, and up to half of it per owner.
pub(super) struct SandboxLimits {
    max: usize,
    max_of_owner: usize,
    all: Arc<Semaphore>,
    owners: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A permit for a sandbox, until it is dropped.
#[derive(Debug)]
pub struct SandboxPermit {
    _of_owner: Option<OwnedSemaphorePermit>,
    _of_all: OwnedSemaphorePermit,
}

impl SandboxLimits {
    pub(super) fn new(max: usize) -> Self {
        SandboxLimits {
            max,
            max_of_owner: max.div_ceil(2).max(MIN_SANDBOXES_OF_OWNER),
            all: Arc::new(Semaphore::new(max)),
            owners: Mutex::default(),
        }
    }

    /// Waits for a permit.
    ///
    /// # Errors
    ///
    /// Fails if the server is shutting down.
    pub(super) async fn acquire(&self, owner: &str) -> Result<SandboxPermit, AcquireError> {
        let of_owner = match self.semaphore_of(owner) {
            Some(semaphore) => Some(semaphore.acquire_owned().await?),
            None => None,
        };
        Ok(SandboxPermit {
            _of_owner: of_owner,
            _of_all: self.all.clone().acquire_owned().await?,
        })
    }

    pub(super) fn try_acquire(&self, owner: &str) -> Result<SandboxPermit, LimitReached> {
        let of_owner = self
            .semaphore_of(owner)
            .map(Semaphore::try_acquire_owned)
            .transpose()
            .map_err(|_: TryAcquireError| LimitReached::Owner(self.max_of_owner))?;
        let of_all = self.all.clone().try_acquire_owned();
        Ok(SandboxPermit {
            _of_owner: of_owner,
            _of_all: of_all.map_err(|_| LimitReached::All(self.max))?,
        })
    }

    /// Makes all waiting calls fail.
    pub(super) fn close(&self) {
        self.all.close();
        for semaphore in lock(&self.owners).values().filter_map(Weak::upgrade) {
            semaphore.close();
        }
    }

    /// Returns the semaphore of an owner; `None` for an owner without a limit.
    fn semaphore_of(&self, owner: &str) -> Option<Arc<Semaphore>> {
        if owner == LOCAL {
            return None;
        }
        let mut owners = lock(&self.owners);
        if let Some(semaphore) = owners.get(owner).and_then(Weak::upgrade) {
            return Some(semaphore);
        }
        // Permits keep their semaphore alive, so a dropped one has no permits in use.
        owners.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.max_of_owner));
        owners.insert(owner.to_owned(), Arc::downgrade(&semaphore));
        Some(semaphore)
    }
}

/// Counts the clients per owner.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnerClients(Arc<Mutex<HashMap<String, usize>>>);

/// Counts as a client of an owner, until it is dropped.
#[derive(Debug)]
pub(super) struct OwnerClient {
    owner: String,
    all: OwnerClients,
}

impl OwnerClients {
    /// Counts a new client; `None` if the owner has too many.
    pub(super) fn admit(&self, owner: &str) -> Option<OwnerClient> {
        let mut clients = lock(&self.0);
        let count = clients.get(owner).copied().unwrap_or_default();
        if owner != LOCAL && count >= MAX_CLIENTS_OF_OWNER {
            return None;
        }
        clients.insert(owner.to_owned(), count + 1);
        Some(OwnerClient {
            owner: owner.to_owned(),
            all: self.clone(),
        })
    }
}

impl Drop for OwnerClient {
    fn drop(&mut self) {
        let mut clients = lock(&self.all.0);
        match clients.get_mut(&self.owner) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(clients.remove(&self.owner)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn owner_gets_half_of_sandboxes() {
        let rooms = SandboxLimits::new(4);
        let permits: Vec<_> = (0..2)
            .map(|_| rooms.try_acquire("alice").unwrap())
            .collect();
        assert_eq!(
            rooms.try_acquire("alice").unwrap_err(),
            LimitReached::Owner(2)
        );
        // Waiting for the owner's share does not reduce other owners' shares.
        let short = Duration::from_millis(50);
        let waiting = tokio::time::timeout(short, rooms.acquire("alice"));
        assert!(waiting.await.is_err());
        let _of_bob = [rooms.try_acquire("bob"), rooms.try_acquire("bob")].map(Result::unwrap);
        assert_eq!(
            rooms.try_acquire("carol").unwrap_err(),
            LimitReached::All(4)
        );
        drop(permits);
        assert!(rooms.acquire("alice").await.is_ok());
        assert!(rooms.try_acquire("carol").is_ok());
    }

    #[test]
    fn sole_owner_may_use_all_sandboxes() {
        let rooms = SandboxLimits::new(4);
        let _permits: Vec<_> = (0..4).map(|_| rooms.try_acquire(LOCAL).unwrap()).collect();
        assert_eq!(rooms.try_acquire(LOCAL).unwrap_err(), LimitReached::All(4));
    }

    #[test]
    fn owner_has_quarter_of_clients() {
        let clients = OwnerClients::default();
        let admit = |owner: &str| clients.admit(owner);
        let mut of_alice: Vec<_> = (0..MAX_CLIENTS_OF_OWNER).map(|_| admit("alice")).collect();
        assert!(of_alice.iter().all(Option::is_some));
        assert!(admit("alice").is_none());
        assert!(admit("bob").is_some());
        of_alice.pop();
        assert!(admit("alice").is_some());
        drop(of_alice);
        assert!(lock(&clients.0).is_empty());
    }
}
