//! Limits the number of connections. At the limit, idle connections of the client with the most connections are closed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use testwright_config::lock::lock;
use tokio::sync::Notify;

/// Addresses that count as one client: an IPv4 address, or the /64 network of an IPv6 address, which has one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Client(IpAddr);

impl Client {
    fn new(peer: IpAddr) -> Self {
        match peer.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & (u128::MAX << 64);
                Client(Ipv6Addr::from_bits(network).into())
            }
            address => Client(address),
        }
    }
}

pub(super) struct Slots {
    max: usize,
    open: Mutex<BTreeMap<u64, Open>>,
}

struct Open {
    client: Client,
    /// Requests in progress.
    requests: usize,
    /// Time when the last request started or ended.
    since: Instant,
    close: Arc<Notify>,
    /// Whether the connection was asked to close, and no longer counts.
    closing: bool,
}

impl Slots {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Slots {
            max: max.max(1),
            open: Mutex::default(),
        })
    }

    /// Takes a slot for a new connection, and closes another connection if necessary. `None` if all are busy.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Slot> {
        let client = Client::new(peer);
        let mut open = lock(&self.open);
        if open.values().filter(|open| !open.closing).count() >= self.max {
            let id = victim(&open, client)?;
            let victim = open.get_mut(&id)?;
            victim.closing = true;
            victim.close.notify_one();
        }
        let id = open.last_key_value().map_or(0, |(id, _)| id + 1);
        let close = Arc::new(Notify::new());
        let new = Open {
            client,
            requests: 0,
            since: Instant::now(),
            close: close.clone(),
            closing: false,
        };
        open.insert(id, new);
        Some(Slot {
            slots: self.clone(),
            id,
            close,
        })
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut usize)) {
        if let Some(open) = lock(&self.open).get_mut(&id) {
            change(&mut open.requests);
            open.since = Instant::now();
        }
    }
}

/// Chooses a connection to close: the one idle for longest, of the client with the most connections. A busy one is
/// chosen only if its client has more connections than the new one.
fn victim(open: &BTreeMap<u64, Open>, new: Client) -> Option<u64> {
    let mut counts: BTreeMap<Client, usize> = BTreeMap::new();
    let open = open.iter().filter(|(_, open)| !open.closing);
    for (_, open) in open.clone() {
        *counts.entry(open.client).or_default() += 1;
    }
    let of_new = counts.get(&new).copied().unwrap_or_default();
    let (id, _) = open
        .filter(|(_, open)| open.requests == 0 || counts[&open.client] > of_new + 1)
        .min_by_key(|(_, open)| {
            let others = usize::MAX - counts[&open.client];
            (open.requests > 0, others, open.since)
        })?;
    Some(*id)
}

/// The slot of a connection, until the connection closes.
pub(super) struct Slot {
    slots: Arc<Slots>,
    id: u64,
    close: Arc<Notify>,
}

impl Slot {
    /// Completes when the connection must close.
    pub(super) fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let close = self.close.clone();
        async move { close.notified().await }
    }

    /// Marks the connection as busy until the value is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> BusySlot {
        self.slots.change(self.id, |requests| *requests += 1);
        BusySlot(self.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.slots.open).remove(&self.id);
    }
}

pub(super) struct BusySlot(Arc<Slot>);

impl Drop for BusySlot {
    fn drop(&mut self) {
        let Slot { slots, id, .. } = &*self.0;
        slots.change(*id, |requests| *requests = requests.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests;
