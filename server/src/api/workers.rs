//! The handler that lists workers and the queue.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::{Api, ApiResult, ApiState};
use crate::store::{JobStatus, StoredWorker, timestamp};

/// A worker process.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Worker {
    /// Name, unique among all processes.
    pub name: String,
    /// Host name of its machine.
    pub host: String,
    /// Version of testwright.
    pub version: String,
    /// Maximum number of concurrent jobs.
    pub slots: i64,
    /// Times are RFC 3339, UTC.
    pub started_at: String,
    /// Time of its last heartbeat.
    pub last_seen: String,
    /// Whether it was seen within the last 15 seconds. Other workers take over the jobs of a dead worker.
    pub alive: bool,
    /// Ids of its current runs.
    pub runs: Vec<String>,
    /// Number of its current matrices and gradings.
    pub tasks: usize,
}

impl Worker {
    fn from_stored(worker: StoredWorker) -> Self {
        let process = worker.process;
        let time = |milliseconds| timestamp(milliseconds).to_string();
        Worker {
            alive: worker.is_alive,
            started_at: time(process.started_at),
            last_seen: time(worker.last_seen),
            runs: worker.runs.iter().map(ToString::to_string).collect(),
            tasks: worker.tasks,
            name: process.name,
            host: process.host,
            version: process.version,
            slots: process.slots,
        }
    }
}

/// Numbers of queued and running runs.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Queue {
    /// Number of queued runs.
    pub queued: i64,
    /// Number of running runs.
    pub running: i64,
    /// Age of the oldest queued run, in seconds.
    pub oldest_seconds: Option<i64>,
}

/// Workers and the queue.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Workers {
    /// Oldest first; includes workers that died within the last hour.
    pub workers: Vec<Worker>,
    /// Numbers of queued and running runs.
    pub queue: Queue,
}

/// List workers and the length of the queue
#[utoipa::path(get, path = "/v1/workers", tag = "server", responses((status = 200, body = Workers)))]
pub async fn list(State(state): Api) -> ApiResult<Json<Workers>> {
    Ok(Json(read(&state).await?))
}

/// Reads the workers and the queue.
///
/// # Errors
///
/// Fails if the database query fails.
pub async fn read(state: &ApiState) -> ApiResult<Workers> {
    let (workers, queue) = (
        state.store.workers().await?,
        state.store.queue_state().await?,
    );
    Ok(Workers {
        workers: workers.into_iter().map(Worker::from_stored).collect(),
        queue: Queue {
            queued: queue.count(JobStatus::Queued),
            running: queue.count(JobStatus::Running),
            oldest_seconds: queue.oldest_age().map(|age| age / 1000),
        },
    })
}
