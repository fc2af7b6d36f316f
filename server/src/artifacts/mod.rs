//! Keeps files for all machines of a deployment: in a folder, or in an S3-compatible store.
//!
//! ```text
//! sha256/ab/abcd…          a blob, under the SHA-256 of its content
//! environments/KEY.json    the environment with this key, and the digest of its archive
//! environments/KEY.claim   the claim of the machine that builds it
//! ```
//!
//! Only this module uses the crate `object_store`. The database ([`crate::store`]) records which files belong to which
//! run.

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

pub use environments::{SharedEnvironment, UNUSED_RETENTION, shared_environments};

/// Bytes read from a file at a time.
const PART: usize = 1 << 20;

/// The SHA-256 of a blob's content, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(String);

impl Digest {
    /// Parses a digest; `None` if the text is not a digest.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digest = text.len() == 64
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        is_digest.then(|| Digest(text.to_owned()))
    }

    fn from_hash(hash: Sha256) -> Self {
        Digest(hex(&hash.finalize()))
    }

    /// Returns the SHA-256 hash as hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An object in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Digest of the content, which names the object.
    pub digest: Digest,
    /// Size in bytes.
    pub bytes: u64,
}

/// The content of an object, as a stream.
pub type Content = BoxStream<'static, std::result::Result<Vec<u8>, std::io::Error>>;

/// A store of files. Cheap to clone.
#[derive(Clone)]
pub struct Artifacts {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// Address for messages, without credentials.
    address: String,
    claims: Arc<Claims>,
}

/// Omits credentials.
impl std::fmt::Debug for Artifacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Artifacts").field(&self.address).finish()
    }
}

impl Artifacts {
    /// Opens the store that the settings name, without contacting it; `None` if they name no store.
    ///
    /// # Errors
    ///
    /// Fails if the URL is invalid or the store cannot be set up.
    pub fn of_settings(settings: &Settings) -> Result<Option<Self>> {
        let url = settings.artifacts.as_ref();
        url.map(|url| location::open(url.reveal(), settings))
            .transpose()
    }

    /// Opens a store in a folder on this machine, and creates the folder.
    ///
    /// # Errors
    ///
    /// Fails if the path is not absolute or the folder cannot be created.
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

    /// Returns the address, without credentials.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Checks that the store responds and is writable.
    ///
    /// # Errors
    ///
    /// Fails if the store does not respond or cannot be written to.
    pub async fn check(&self) -> Result<()> {
        let about = serde_json::json!({ "format": 1, "made by": "testwright" });
        let path = self.prefix.clone().join("testwright.json");
        let put = self.store.put(&path, about.to_string().into()).await;
        put.map(drop).map_err(|e| self.failed("write to", &e))
    }

    /// Writes content. An existing object is written again, which renews its timestamp.
    ///
    /// # Errors
    ///
    /// Fails if the store does not respond or cannot be written to.
    pub async fn put(&self, content: Vec<u8>) -> Result<Blob> {
        let digest = Digest::from_hash(Sha256::new_with_prefix(&content));
        let bytes = content.len() as u64;
        let put = self.store.put(&self.blob(&digest), content.into()).await;
        put.map_err(|e| self.failed("write to", &e))?;
        Ok(Blob { digest, bytes })
    }

    /// Writes the content of a file, which may be large. The file must not change meanwhile.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or the store cannot be written to.
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

    /// Returns the content of an object; `None` if it does not exist. The digest is not checked.
    ///
    /// # Errors
    ///
    /// Fails if the store does not respond or cannot be read.
    pub async fn read(&self, digest: &Digest) -> Result<Option<Content>> {
        let object = match self.store.get(&self.blob(digest)).await {
            Ok(object) => object,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(e) => return Err(self.failed("read from", &e)),
        };
        let parts = object.into_stream().map_ok(|part| part.to_vec());
        Ok(Some(Box::pin(parts.map_err(std::io::Error::other))))
    }

    /// Fetches an object into a file and checks its digest; `false` if there is no such object.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read, the file cannot be written, or the content does not match the digest.
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
        if Digest::from_hash(hash) != *digest {
            let what = format!("read from the artifact store {}", self.address);
            let cause = format!("the object {} is damaged", digest.as_str());
            return Err(Error::infrastructure(what).cause(cause));
        }
        Ok(true)
    }

    /// Removes an object; a missing one is not an error.
    ///
    /// # Errors
    ///
    /// Fails if the store does not respond or refuses the removal.
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
                let hint = "free space on the disk of the artifact store";
                (Error::exhausted(Shortage::Disk, what), Some(hint))
            }
            Some(shortage) => (Error::exhausted(shortage, what), None),
            None => (Error::infrastructure(what), hint),
        };
        failed.cause(words.join(" ")).hint_if(hint)
    }
}

async fn digest_of(file: &FilePath) -> std::io::Result<(Digest, u64)> {
    let mut file = tokio::fs::File::open(file).await?;
    let (mut hash, mut bytes, mut part) = (Sha256::new(), 0, vec![0; PART]);
    loop {
        let read = file.read(&mut part).await?;
        if read == 0 {
            return Ok((Digest::from_hash(hash), bytes));
        }
        hash.update(&part[..read]);
        bytes += read as u64;
    }
}

#[cfg(test)]
mod tests;
