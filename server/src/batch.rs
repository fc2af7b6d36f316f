//! A batch: the jobs that one command gives to the workers of a database. The batch keeps its id when the command is
//! repeated, so results from earlier calls are found again.

use std::path::Path;

use testwright_sandboxes::plain_file::{self, Links};

use crate::store::{JobId, Store, now};
use testwright_config::error::{Error, Result};

/// Name of the file with the batch id, in the folder of the command's results.
const FILE: &str = "batch";

/// The jobs that one command gives to the workers of a database.
#[derive(Clone)]
pub struct Batch {
    /// Database with the jobs.
    pub store: Store,
    /// Owner of the jobs.
    pub owner: String,
    /// Id of the batch, which stays the same when the command is repeated.
    pub id: JobId,
    /// The span of the request that caused the batch.
    pub traceparent: Option<String>,
}

impl Batch {
    /// Opens the batch of a folder, or creates one.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be opened, or if the id cannot be read, parsed or written.
    pub async fn open(database: &str, folder: &Path, owner: &str) -> Result<Self> {
        Ok(Batch {
            store: Store::open(database).await?,
            owner: owner.to_owned(),
            id: id_in(folder)?,
            traceparent: None,
        })
    }
}

/// Maximum bytes of a file with an id.
const MAX_ID: u64 = 1 << 10;

fn id_in(folder: &Path) -> Result<JobId> {
    let path = folder.join(FILE);
    match plain_file::read_text(&path, Links::Refuse, MAX_ID) {
        Ok(text) => JobId::parse(text.trim()).ok_or_else(|| {
            Error::usage(format!("read {}", path.display()))
                .cause("the file does not contain a batch id")
                .hint("delete it to start over")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = JobId::new(now());
            let failed = |e| Error::io(format!("write {}", path.display()), &e);
            testwright_sandboxes::private::create(folder).map_err(failed)?;
            std::fs::write(&path, format!("{id}\n")).map_err(failed)?;
            Ok(id)
        }
        Err(error) => Err(Error::io(format!("read {}", path.display()), &error)),
    }
}
