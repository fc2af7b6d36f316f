//! One process at a time opens an embedded database and brings it up to date: a new file becomes one with a write-ahead log only
//! where nobody else has it open, SQLite's migrations are not one transaction, and two processes that open a new file at once would
//! both make its tables. Postgres has a lock of its own for that.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use testwright_config::error::{Error, Result};

/// The file `NAME.lock` beside the database; `None` where there is no such folder.
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
        // Whoever opens the database tells it better.
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
    async fn a_new_database_may_be_opened_by_several_at_once() {
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
