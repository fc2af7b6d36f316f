//! Limits the sandboxes of clients, and the share of each owner of tokens, so that other owners are not blocked. A
//! server without tokens has one owner, without such a share.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::owner_limits::{OwnerLimits, OwnerPermit};
use testwright_config::error::Error;

/// Minimum number of sandboxes per owner, so that a client with an open session can still check a test.
const MIN_SANDBOXES_OF_OWNER: usize = 2;

/// The limit that prevents another sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// Maximum number of sandboxes for one owner.
    Owner(usize),
    /// Maximum number of sandboxes for all owners.
    All(usize),
}

/// Allows sandboxes up to a total maximum, and up to half of it per owner.
pub struct SandboxLimits {
    max: usize,
    all: Arc<Semaphore>,
    owners: OwnerLimits,
}

/// A permit for a sandbox, until it is dropped.
#[derive(Debug)]
pub struct SandboxPermit {
    _of_owner: OwnerPermit,
    _of_all: OwnedSemaphorePermit,
}

impl SandboxLimits {
    pub(crate) fn new(max: usize) -> Self {
        SandboxLimits {
            max,
            all: Arc::new(Semaphore::new(max)),
            owners: OwnerLimits::new(max.div_ceil(2).max(MIN_SANDBOXES_OF_OWNER)),
        }
    }

    /// Waits for a permit.
    ///
    /// # Errors
    ///
    /// Fails if the server allows no sandboxes, or is shutting down.
    pub(crate) async fn acquire(&self, owner: &str) -> Result<SandboxPermit, Error> {
        if self.max == 0 {
            return Err(Error::usage("start a sandbox")
                .cause("this server allows no sandboxes for clients (`--mcp-sandboxes 0`)"));
        }
        let closed = |error: AcquireError| Error::infrastructure("start a sandbox").cause(error);
        let of_owner = self.owners.acquire(owner).await.map_err(closed)?;
        let of_all = self.all.clone().acquire_owned().await;
        Ok(SandboxPermit {
            _of_owner: of_owner,
            _of_all: of_all.map_err(closed)?,
        })
    }

    pub(crate) fn try_acquire(&self, owner: &str) -> Result<SandboxPermit, LimitReached> {
        let of_owner = self.owners.try_acquire(owner);
        let of_owner = of_owner.map_err(|_| LimitReached::Owner(self.owners.max))?;
        let of_all = self.all.clone().try_acquire_owned();
        Ok(SandboxPermit {
            _of_owner: of_owner,
            _of_all: of_all.map_err(|_| LimitReached::All(self.max))?,
        })
    }

    /// Makes all waiting calls fail.
    pub(crate) fn close(&self) {
        self.all.close();
        self.owners.close();
    }
}

#[cfg(test)]
mod tests;
