//! Connection pools. A connection returns to its pool only outside of a transaction.
//!
//! SQLite ends a transaction itself if a statement fails for lack of space. The ROLLBACK of sqlx then fails, and sqlx
//! still counts the ended transaction. The next transaction on that connection becomes a savepoint, whose end leaves
//! the database locked.

use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::{Connection, Database};

/// Maximum number of connections of a process.
const MAX_CONNECTIONS: u32 = 8;
/// Timeout for getting a connection, so that a waiting request gets its response before its client gives up.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn options<DB: Database>() -> PoolOptions<DB> {
    PoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_release(|connection: &mut DB::Connection, _| {
            Box::pin(async move {
                // A pending rollback has completed once the ping is answered.
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
}
