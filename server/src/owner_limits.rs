//! Limits what one owner of tokens may use at the same time, so that other owners are not blocked. A server without
//! tokens has one owner, without such a limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::reserved_owners::LOCAL;
use testwright_config::lock::lock;

/// Gives each owner the same number of permits.
pub(crate) struct OwnerLimits {
    /// Permits of one owner.
    pub max: usize,
    owners: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A permit of an owner, until it is dropped; `None` for an owner without a limit.
pub(crate) type OwnerPermit = Option<OwnedSemaphorePermit>;

impl OwnerLimits {
    pub(crate) fn new(max: usize) -> Self {
        OwnerLimits {
            max,
            owners: Mutex::default(),
        }
    }

    /// Waits for a permit.
    ///
    /// # Errors
    ///
    /// Fails after [`OwnerLimits::close`].
    pub(crate) async fn acquire(&self, owner: &str) -> Result<OwnerPermit, AcquireError> {
        match self.semaphore_of(owner) {
            Some(semaphore) => semaphore.acquire_owned().await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns a permit, unless the owner has the maximum.
    pub(crate) fn try_acquire(&self, owner: &str) -> Result<OwnerPermit, TryAcquireError> {
        let semaphore = self.semaphore_of(owner);
        semaphore.map(Semaphore::try_acquire_owned).transpose()
    }

    /// Makes all waiting calls fail.
    pub(crate) fn close(&self) {
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
        let semaphore = Arc::new(Semaphore::new(self.max));
        owners.insert(owner.to_owned(), Arc::downgrade(&semaphore));
        Some(semaphore)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_owner_has_own_permits() {
        let limits = OwnerLimits::new(2);
        let acquire = |owner: &str| limits.try_acquire(owner);
        let mut of_alice: Vec<_> = (0..2).map(|_| acquire("alice").unwrap()).collect();
        assert!(acquire("alice").is_err());
        assert!(acquire("bob").is_ok());
        of_alice.pop();
        assert!(acquire("alice").is_ok());
        let of_local: Vec<_> = (0..4).map(|_| acquire(LOCAL).unwrap()).collect();
        assert!(of_local.iter().all(Option::is_none));

        drop(of_alice);
        let _of_carol = acquire("carol").unwrap();
        assert_eq!(lock(&limits.owners).len(), 1, "unused entries are removed");
    }
}
