//! Pages of package indexes in memory, up to a limit. The least recently used page is dropped first.
//!
//! A page that a sandbox is still reading counts until it has been read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::downloads::Page;
use super::lock;

/// Limit for all pages together, in KiB.
const MAX_KIB: usize = 256 << 10;

/// Maximum time that a page waits for the room of pages that are being read.
const ROOM_TIMEOUT: Duration = Duration::from_secs(60);

/// A page that counts towards the limit for as long as it is referenced.
pub(super) struct CachedPage {
    pub page: Page,
    _room: OwnedSemaphorePermit,
}

/// The body of a response with a page.
pub(super) struct PageBody(pub Arc<CachedPage>);

impl AsRef<[u8]> for PageBody {
    fn as_ref(&self) -> &[u8] {
        &self.0.page.body
    }
}

pub(super) struct Pages {
    room: Arc<Semaphore>,
    most: usize,
    wait: Duration,
    /// Pages with their keys, the most recently used last.
    kept: Mutex<VecDeque<(String, Arc<CachedPage>)>>,
}

impl Pages {
    pub(super) fn new() -> Pages {
        Pages::with_limits(MAX_KIB, ROOM_TIMEOUT)
    }

    fn with_limits(most: usize, wait: Duration) -> Pages {
        Pages {
            room: Arc::new(Semaphore::new(most)),
            most,
            wait,
            kept: Mutex::default(),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<Arc<CachedPage>> {
        let mut kept = lock(&self.kept);
        let place = kept.iter().position(|(other, _)| other == key)?;
        let used = kept.remove(place)?;
        let page = used.1.clone();
        kept.push_back(used);
        Some(page)
    }

    /// Adds a page. Returns `None` if pages that are being read leave no room for it.
    pub(super) async fn insert(&self, key: String, page: Page) -> Option<Arc<CachedPage>> {
        let room = self.make_room(size(&page).min(self.most)).await?;
        let held = Arc::new(CachedPage { page, _room: room });
        let mut kept = lock(&self.kept);
        kept.retain(|(other, _)| *other != key);
        kept.push_back((key, held.clone()));
        Some(held)
    }

    async fn make_room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).ok()?;
        loop {
            if let Ok(room) = self.room.clone().try_acquire_many_owned(bytes) {
                return Some(room);
            }
            if lock(&self.kept).pop_front().is_none() {
                break;
            }
        }
        let room = self.room.clone().acquire_many_owned(bytes);
        tokio::time::timeout(self.wait, room).await.ok()?.ok()
    }
}

/// Returns the approximate memory of a page, in KiB.
fn size(page: &Page) -> usize {
    let files = page.head.files.iter();
    let files: usize = files
        .map(|(name, file)| name.len() + file.url.len() + 512)
        .sum();
    (page.body.len() + files).div_ceil(1024)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::egress::page::Files;

    fn page(kib: usize) -> Page {
        Page::new(None, true, Files::new(), vec![0; kib << 10])
    }

    #[tokio::test]
    async fn least_recently_used_page_is_dropped() {
        let pages = Pages::with_limits(10, Duration::from_millis(10));
        for name in ["a", "b"] {
            pages.insert(name.to_owned(), page(4)).await.unwrap();
        }
        assert!(pages.get("a").is_some());
        pages.insert("c".to_owned(), page(6)).await.unwrap();
        assert!(pages.get("b").is_none());
        let (a, c) = (pages.get("a").unwrap(), pages.get("c").unwrap());
        // Both pages are being read, so there is room only once one of them was.
        assert!(pages.insert("d".to_owned(), page(5)).await.is_none());
        drop((a, c));
        let larger_than_all = pages.insert("d".to_owned(), page(50)).await;
        assert!(larger_than_all.is_some());
    }
}
