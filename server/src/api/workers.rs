//! Who works on runs, and what waits.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::{Api, ApiResult, ApiState};
use crate::store::{JobStatus, StoredWorker, timestamp};

/// A process that works on runs.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Worker {
    pub name: String,
    pub host: String,
    /// Version of testwright.
    pub version: String,
    /// How much it works on at one time.
    pub slots: i64,
    /// Times are RFC 3339, UTC.
    pub started_at: String,
    pub last_seen: String,
    /// It was seen within the last 15 seconds. What a dead worker had is given to others.
    pub alive: bool,
    /// Ids of the runs that it works on.
    pub runs: Vec<String>,
    /// How many matrices and gradings it works on.
    pub tasks: usize,
}

impl Worker {
    fn of(worker: StoredWorker) -> Self {
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

/// Runs that wait and that are worked on.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Queue {
    pub queued: i64,
    pub running: i64,
    /// Seconds since the oldest run that waits was made.
    pub oldest_seconds: Option<i64>,
}

/// Workers and the queue.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Workers {
    /// The oldest first; those that died within the last hour are among them.
    pub workers: Vec<Worker>,
    pub queue: Queue,
}

/// Who works on runs, and how much waits
#[utoipa::path(get, path = "/v1/workers", tag = "server", responses((status = 200, body = Workers)))]
pub async fn list(State(state): Api) -> ApiResult<Json<Workers>> {
    Ok(Json(read(&state).await?))
}

pub async fn read(state: &ApiState) -> ApiResult<Workers> {
    let (workers, queue) = (
        state.store.workers().await?,
        state.store.queue_state().await?,
    );
    Ok(Workers {
        workers: workers.into_iter().map(Worker::of).collect(),
        queue: Queue {
            queued: queue.count(JobStatus::Queued),
            running: queue.count(JobStatus::Running),
            oldest_seconds: queue.oldest_age().map(|age| age / 1000),
        },
    })
}
