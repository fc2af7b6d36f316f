//! Limits clients per owner of tokens, so that other owners are not blocked. A server without tokens has one owner,
//! without such a limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::reserved_owners::LOCAL;

/// Maximum HTTP clients of one owner: a quarter of all.
pub(super) const MAX_CLIENTS_OF_OWNER: usize = 64;

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
    use super::*;

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
