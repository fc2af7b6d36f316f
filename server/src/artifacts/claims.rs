//! Claims on environment builds, so that no two machines build the same environment. A claim is an object that its
//! holder rewrites regularly; if it no longer changes, its holder is gone.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMode, PutOptions};
use tokio::sync::oneshot;

use super::Artifacts;
use testwright_config::error::Result;
use testwright_config::lock::lock;

/// Interval at which a holder renews its claim.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(15);
/// Time without renewal, by this machine's clock, after which a holder is gone. Clocks of other machines may be wrong.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(60);

/// The contents of other processes' claims, and when this process first read them.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<HashMap<Path, (Vec<u8>, Instant)>>);

impl Claims {
    /// Returns whether a claim has not been renewed for so long that its holder is gone.
    fn is_gone(&self, path: &Path, content: &[u8], now: Instant) -> bool {
        let mut observations = lock(&self.0);
        let (last_content, since) = observations
            .entry(path.clone())
            .or_insert_with(|| (content.to_owned(), now));
        if last_content != content {
            (*last_content, *since) = (content.to_owned(), now);
        }
        now.duration_since(*since) >= CLAIM_TIMEOUT
    }

    fn forget(&self, path: &Path) {
        lock(&self.0).remove(path);
    }
}

/// A claim held by this process. Dropping it releases the claim.
#[derive(Debug)]
pub(super) struct Claim {
    _end: oneshot::Sender<()>,
}

impl Artifacts {
    /// Claims a build; `None` if another process holds the claim.
    pub(super) async fn claim(&self, path: Path) -> Result<Option<Claim>> {
        if self.has_holder(&path).await? {
            return Ok(None);
        }
        let holder = format!("{} {:x}", std::process::id(), fastrand::u64(..));
        let options = PutOptions::from(PutMode::Create);
        let content = claim_content(&holder, 0);
        let put = self.store.put_opts(&path, content.into(), options).await;
        match put {
            Ok(_) => {}
            Err(object_store::Error::AlreadyExists { .. }) => return Ok(None),
            Err(e) => return Err(self.failed("write to", &e)),
        }
        self.claims.forget(&path);
        let (end, ended) = oneshot::channel();
        tokio::spawn(self.clone().hold(path, holder, ended));
        Ok(Some(Claim { _end: end }))
    }

    /// Returns whether a live process holds the claim; removes the claim of a dead one.
    async fn has_holder(&self, path: &Path) -> Result<bool> {
        let Some(content) = self.read_object(path).await? else {
            return Ok(false);
        };
        if !self.claims.is_gone(path, &content, Instant::now()) {
            return Ok(true);
        }
        self.remove_object(path).await?;
        Ok(false)
    }

    /// Renews a claim until its holder drops it, then removes it.
    async fn hold(self, path: Path, holder: String, mut ended: oneshot::Receiver<()>) {
        for number in 1_u64.. {
            tokio::select! {
                _ = &mut ended => break,
                () = tokio::time::sleep(RENEWAL_INTERVAL) => {}
            }
            let put = self
                .store
                .put(&path, claim_content(&holder, number).into())
                .await;
            if let Err(error) = put {
                tracing::warn!(%error, "could not renew a claim in the artifact store");
            }
        }
        // If this process was taken for dead, another one may hold the claim.
        match self.read_object(&path).await {
            Ok(Some(content)) if content.starts_with(holder.as_bytes()) => {
                if let Err(error) = self.remove_object(&path).await {
                    tracing::warn!(error = error.with_cause(), "could not remove a claim");
                }
            }
            _ => {}
        }
    }

    /// Reads a small object.
    pub(super) async fn read_object(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        let read = async { self.store.get(path).await?.bytes().await };
        match read.await {
            Ok(content) => Ok(Some(content.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(self.failed("read from", &e)),
        }
    }
}

fn claim_content(holder: &str, number: u64) -> String {
    format!("{holder} {number}\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn unchanged_claim_is_abandoned() {
        let (claims, path) = (Claims::default(), Path::from("x.claim"));
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        assert!(!claims.is_gone(&path, b"a 0", start));
        assert!(!claims.is_gone(&path, b"a 0", later(59)));
        assert!(!claims.is_gone(&path, b"a 1", later(60)));
        assert!(!claims.is_gone(&path, b"a 1", later(119)));
        assert!(claims.is_gone(&path, b"a 1", later(120)));
    }

    #[tokio::test]
    async fn claim_has_one_holder_until_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let one = Artifacts::in_folder(folder.path()).unwrap();
        let other = Artifacts::in_folder(folder.path()).unwrap();
        let path = Path::from("environments/x.claim");
        let held = one.claim(path.clone()).await.unwrap();
        assert!(held.is_some());
        assert!(other.claim(path.clone()).await.unwrap().is_none());
        drop(held);
        let mut tries = 0;
        while other.claim(path.clone()).await.unwrap().is_none() {
            tries += 1;
            assert!(tries < 100, "the claim was not released");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
