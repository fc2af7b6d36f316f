//! A batch: what one command has done by the workers of a database. It has the same name whenever the command is given again,
//! and so finds what was done for it before.

use std::path::Path;

use testwright_sandboxes::plain_file::{self, Links};

use crate::store::{RunId, Store, now};
use testwright_config::error::{Error, Result};

/// Names the batch: in the folder of the command's results.
const FILE: &str = "batch";

#[derive(Clone)]
pub struct Batch {
    pub store: Store,
    pub owner: String,
    pub id: RunId,
    /// The span of the request to which it is owed.
    pub traceparent: Option<String>,
}

impl Batch {
    /// That of a folder, or a new one.
    pub async fn open(database: &str, folder: &Path, owner: &str) -> Result<Self> {
        Ok(Batch {
            store: Store::open(database).await?,
            owner: owner.to_owned(),
            id: id_in(folder)?,
            traceparent: None,
        })
    }
}

/// Bytes of a file that holds an id.
const MAX_ID: u64 = 1 << 10;

fn id_in(folder: &Path) -> Result<RunId> {
    let path = folder.join(FILE);
    match plain_file::read_text(&path, Links::Refuse, MAX_ID) {
        Ok(text) => RunId::parse(text.trim()).ok_or_else(|| {
            Error::usage(format!("read {}", path.display()))
                .cause("it names no work of a database")
                .hint("remove it to have the work done anew")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = RunId::new(now());
            let failed = |e| Error::io(format!("write {}", path.display()), &e);
            testwright_sandboxes::private::create(folder).map_err(failed)?;
            std::fs::write(&path, format!("{id}\n")).map_err(failed)?;
            Ok(id)
        }
        Err(error) => Err(Error::io(format!("read {}", path.display()), &error)),
    }
}
