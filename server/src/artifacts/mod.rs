//! Keeps files for all machines that work together: in a folder, or in a store that speaks S3.
//!
//! ```text
//! sha256/ab/abcd…          a blob, under the SHA-256 of its content
//! environments/KEY.json    the environment of this key, and which blob is its archive
//! environments/KEY.claim   a machine that builds it
//! ```
//!
//! The only place that names the crate `object_store`. Which run has which files is in the database
//! ([`crate::store`]).

mod claims;
mod environments;
mod location;
mod outage;
mod s3_client;

use std::path::Path as FilePath;
use std::sync::Arc;

use futures::TryStreamExt;
use futures::stream::BoxStream;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use sha2::{Digest as _, Sha256};
use testwright_sandboxes::Shortage;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use claims::Claims;
use testwright_config::error::{Error, Result};
use testwright_config::hex::hex;
use testwright_config::settings::Settings;

pub use environments::{SharedEnvironment, UNUSED_STAYS, shared_environments};

/// Bytes of a part that is read from a file.
const PART: usize = 1 << 20;

/// The SHA-256 of a blob's content, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(String);

impl Digest {
    /// `None` for what is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digest = text.len() == 64
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        is_digest.then(|| Digest(text.to_owned()))
    }

    fn of(hash: Sha256) -> Self {
        Digest(hex(&hash.finalize()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What was put into the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub digest: Digest,
    pub bytes: u64,
}

/// Content as it comes.
pub type Content = BoxStream<'static, std::result::Result<Vec<u8>, std::io::Error>>;

/// A store of files. Cheap to clone.
#[derive(Clone)]
pub struct Artifacts {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// For messages.
    address: String,
    claims: Arc<Claims>,
}

/// Without what the store knows of its account.
impl std::fmt::Debug for Artifacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Artifacts").field(&self.address).finish()
    }
}

impl Artifacts {
    /// The one that the settings name, not asked yet whether it answers; `None`: they name none.
    pub fn of_settings(settings: &Settings) -> Result<Option<Self>> {
        let url = settings.artifacts.as_ref();
        url.map(|url| location::open(url.reveal(), settings))
            .transpose()
    }

    /// In a folder of this machine, which is made.
    pub fn in_folder(folder: &FilePath) -> Result<Self> {
        location::folder(folder)
    }

    fn new(store: Arc<dyn ObjectStore>, prefix: Path, address: String) -> Self {
        Artifacts {
            store,
            prefix,
            address,
            claims: Arc::default(),
        }
    }

    /// Where it is, without what it knows of its account.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Fails where the store does not answer, or may not be written to.
    pub async fn check(&self) -> Result<()> {
        let about = serde_json::json!({ "format": 1, "made by": "testwright" });
        let path = self.prefix.clone().join("testwright.json");
        let put = self.store.put(&path, about.to_string().into()).await;
        put.map(drop).map_err(|e| self.failed("write to", &e))
    }

    /// Keeps content. Where it was there already it is written again, which makes it younger.
    pub async fn put(&self, content: Vec<u8>) -> Result<Blob> {
        let digest = Digest::of(Sha256::new_with_prefix(&content));
        let bytes = content.len() as u64;
        let put = self.store.put(&self.blob(&digest), content.into()).await;
        put.map_err(|e| self.failed("write to", &e))?;
        Ok(Blob { digest, bytes })
    }

    /// Keeps the content of a file, which may be large. Nobody may write to it meanwhile.
    pub async fn put_file(&self, file: &FilePath) -> Result<Blob> {
        let unread = |e: std::io::Error| Error::io(format!("read {}", file.display()), &e);
        let (digest, bytes) = digest_of(file).await.map_err(unread)?;
        let mut content = tokio::fs::File::open(file).await.map_err(unread)?;
        let mut writer = BufWriter::new(self.store.clone(), self.blob(&digest));
        let written = async {
            tokio::io::copy(&mut content, &mut writer).await?;
            writer.shutdown().await
        };
        written.await.map_err(|e| self.failed("write to", &e))?;
        Ok(Blob { digest, bytes })
    }

    /// The content of a blob as it comes; `None` where there is none. Whoever reads it all can check its digest.
    pub async fn read(&self, digest: &Digest) -> Result<Option<Content>> {
        let found = match self.store.get(&self.blob(digest)).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(e) => return Err(self.failed("read from", &e)),
        };
        let parts = found.into_stream().map_ok(|part| part.to_vec());
        Ok(Some(Box::pin(parts.map_err(std::io::Error::other))))
    }

    /// Writes a blob to a file, and makes sure that it is what its name says; `false` where there is none.
    pub async fn fetch(&self, digest: &Digest, to: &FilePath) -> Result<bool> {
        let Some(mut content) = self.read(digest).await? else {
            return Ok(false);
        };
        let unwritten = |e: std::io::Error| Error::io(format!("write {}", to.display()), &e);
        let mut file = tokio::fs::File::create(to).await.map_err(unwritten)?;
        let mut hash = Sha256::new();
        while let Some(part) = content
            .try_next()
            .await
            .map_err(|e| self.failed("read from", &e))?
        {
            hash.update(&part);
            file.write_all(&part).await.map_err(unwritten)?;
        }
        file.flush().await.map_err(unwritten)?;
        if Digest::of(hash) != *digest {
            let what = format!("read from the artifact store {}", self.address);
            let cause = format!("the file {} is damaged", digest.as_str());
            return Err(Error::infrastructure(what).cause(cause));
        }
        Ok(true)
    }

    /// Removes a blob; one that is not there is not an error.
    pub async fn remove(&self, digest: &Digest) -> Result<()> {
        self.remove_object(&self.blob(digest)).await
    }

    async fn remove_object(&self, path: &Path) -> Result<()> {
        match self.store.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(self.failed("remove from", &e)),
        }
    }

    fn blob(&self, digest: &Digest) -> Path {
        let digest = digest.as_str();
        let prefix = self.prefix.clone();
        prefix.join("sha256").join(&digest[..2]).join(digest)
    }

    fn failed(&self, what: &str, error: &(dyn std::error::Error + 'static)) -> Error {
        let what = format!("{what} the artifact store {}", self.address);
        let cause = error.to_string();
        let words: Vec<&str> = cause.split_whitespace().collect();
        let hint = error.downcast_ref().map(location::hint);
        let (failed, hint) = match outage::find_shortage(error) {
            Some(Shortage::Service) => (Error::unavailable(what), hint),
            Some(Shortage::Disk) => {
                let hint = "make room on the disk of the artifact store";
                (Error::exhausted(Shortage::Disk, what), Some(hint))
            }
            Some(shortage) => (Error::exhausted(shortage, what), None),
            None => (Error::infrastructure(what), hint),
        };
        let failed = failed.cause(words.join(" "));
        match hint {
            Some(hint) => failed.hint(hint),
            None => failed,
        }
    }
}

async fn digest_of(file: &FilePath) -> std::io::Result<(Digest, u64)> {
    let mut file = tokio::fs::File::open(file).await?;
    let (mut hash, mut bytes, mut part) = (Sha256::new(), 0, vec![0; PART]);
    loop {
        let read = file.read(&mut part).await?;
        if read == 0 {
            return Ok((Digest::of(hash), bytes));
        }
        hash.update(&part[..read]);
        bytes += read as u64;
    }
}

#[cfg(test)]
mod tests;
