//! A lock for opening an embedded database and migrating it, one process at a time. A new file can switch to a
//! write-ahead log only while no other process has it open. SQLite's migrations are not one transaction, so two
//! processes could create the same tables. Postgres needs no lock here: its driver has one.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use testwright_config::error::{Error, Result};

/// Locks the file `NAME.lock` beside the database; `None` if the folder does not exist.
pub(super) async fn lock(database: &Path) -> Result<Option<File>> {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    let locked = tokio::task::spawn_blocking(move || -> io::Result<File> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        file.lock()?;
        Ok(file)
    });
    match locked.await.map_err(io::Error::other).flatten() {
        Ok(file) => Ok(Some(file)),
        // Opening the database reports a missing folder more clearly.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!("lock the database {}", database.display());
            Err(Error::infrastructure(message).cause(error))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::Store;

    #[tokio::test(flavor = "multi_thread")]
    async fn new_database_is_opened_concurrently() {
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let url = Store::url_in(folder.path());
            let opened = (0..6).map(|_| {
                let url = url.clone();
                tokio::spawn(async move { Store::open(&url).await.map(drop) })
            });
            for opened in opened.collect::<Vec<_>>() {
                opened.await.unwrap().unwrap();
            }
        }
    }
}
