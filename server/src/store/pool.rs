//! Pools of connections. A connection goes back to its pool only outside of a transaction.
//!
//! SQLite ends a transaction by itself if a statement fails for want of room. The ROLLBACK of sqlx then fails, and sqlx goes on
//! counting a transaction that is gone: on that connection its next one is a savepoint, whose end leaves the database locked.

use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::{Connection, Database};

/// Connections that a process holds at most.
const MAX_CONNECTIONS: u32 = 8;
/// A request that waits for a connection is answered before its client gives up.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn options<DB: Database>() -> PoolOptions<DB> {
    PoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_release(|connection: &mut DB::Connection, _| {
            Box::pin(async move {
                // A rollback that was begun is done when this is answered.
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
}
