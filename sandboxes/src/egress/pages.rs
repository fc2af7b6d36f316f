//! Pages of package indexes in memory: as many as there is room for. What was used longest ago goes first, and what a
//! sandbox is still reading counts until it has read it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::downloads::Page;
use super::lock;

/// KiB of all pages together.
const ROOM: usize = 256 << 10;

/// How long a page waits for room that others take who are being read.
const WAIT: Duration = Duration::from_secs(60);

/// A page that counts for as long as somebody has it.
pub struct CachedPage {
    pub page: Page,
    _room: OwnedSemaphorePermit,
}

/// For the body of an answer.
pub struct PageBody(pub Arc<CachedPage>);

impl AsRef<[u8]> for PageBody {
    fn as_ref(&self) -> &[u8] {
        &self.0.page.body
    }
}

pub struct Pages {
    room: Arc<Semaphore>,
    most: usize,
    wait: Duration,
    kept: Mutex<PageCache>,
}

#[derive(Default)]
struct PageCache {
    pages: HashMap<String, (Arc<CachedPage>, u64)>,
    /// Counts uses.
    uses: u64,
}

impl Pages {
    pub fn new() -> Pages {
        Pages::of(ROOM, WAIT)
    }

    fn of(most: usize, wait: Duration) -> Pages {
        Pages {
            room: Arc::new(Semaphore::new(most)),
            most,
            wait,
            kept: Mutex::default(),
        }
    }

    pub fn get(&self, key: &str) -> Option<Arc<CachedPage>> {
        let mut kept = lock(&self.kept);
        kept.uses += 1;
        let now = kept.uses;
        let (page, used) = kept.pages.get_mut(key)?;
        *used = now;
        Some(page.clone())
    }

    /// `None` where pages that are being read leave no room.
    pub async fn hold(&self, key: String, page: Page) -> Option<Arc<CachedPage>> {
        let room = self.make_room(size(&page).min(self.most)).await?;
        let held = Arc::new(CachedPage { page, _room: room });
        let mut kept = lock(&self.kept);
        kept.uses += 1;
        let now = kept.uses;
        kept.pages.insert(key, (held.clone(), now));
        Some(held)
    }

    async fn make_room(&self, wanted: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = u32::try_from(wanted).ok()?;
        loop {
            if let Ok(room) = self.room.clone().try_acquire_many_owned(wanted) {
                return Some(room);
            }
            let mut kept = lock(&self.kept);
            let oldest = kept.pages.iter().min_by_key(|(_, (_, used))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            kept.pages.remove(&key);
        }
        let room = self.room.clone().acquire_many_owned(wanted);
        tokio::time::timeout(self.wait, room).await.ok()?.ok()
    }
}

/// What a page takes, in KiB.
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
    async fn what_was_used_longest_ago_makes_room() {
        let pages = Pages::of(10, Duration::from_millis(10));
        for name in ["a", "b"] {
            pages.hold(name.to_owned(), page(4)).await.unwrap();
        }
        assert!(pages.get("a").is_some());
        pages.hold("c".to_owned(), page(6)).await.unwrap();
        assert!(pages.get("b").is_none());
        let (a, c) = (pages.get("a").unwrap(), pages.get("c").unwrap());
        // Both are being read: there is room when one of them was.
        assert!(pages.hold("d".to_owned(), page(5)).await.is_none());
        drop((a, c));
        let larger_than_all = pages.hold("d".to_owned(), page(50)).await;
        assert!(larger_than_all.is_some());
    }
}
