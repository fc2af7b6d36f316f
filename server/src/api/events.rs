//! The event stream of a run. Clients can reconnect and continue where the stream was cut.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::runs::{Run, find};
use super::{Api, ApiResult, ApiState, Problem};
use crate::store::{JobId, StoredEvent};
use crate::telemetry::Listener;
use testwright_config::stop_signal::stopped;

/// Interval for polling the store, because workers in other processes send no notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which a stream closes. The client reconnects with its token, which may have been revoked meanwhile.
const MAX_STREAM_TIME: Duration = Duration::from_secs(300);
/// Number of events read from the store at a time.
const PAGE: u32 = 100;
/// Text for the API description.
const DESCRIPTION: &str = "Server-sent events (text/event-stream of the HTML standard). Each event has a line `event:` and a line `data:` \
   with one JSON object; lines that begin with a colon keep the connection open. `event: event` is a line of the trajectory, with its \
   number in `id:`. `event: end` is the last event and has no id; it holds the run, as `GET /v1/runs/{id}` returns it.";
const EXAMPLE: &str = "event: event\nid: 7\ndata: {\"event\":\"resumed\",\"at\":\"2026-03-01T12:00:00Z\"}\n\nevent: end\ndata: \
    {\"id\":\"0199a3b1c2dk7m2p9qz\",\"status\":\"accepted\"}\n\n";

/// Stream the events of a run, from the first or after Last-Event-ID, then the run itself once it has ended.
///
/// Events of type `event` are lines of the trajectory, with their numbers as ids. The last event has type `end` and
/// holds the run. Streams close after about five minutes; without an `end` event, reconnect with Last-Event-ID.
#[utoipa::path(get, path = "/v1/runs/{id}/events", tag = "runs", params(
    ("id" = String, Path, description = "id of the run"),
    ("Last-Event-ID" = Option<i64>, Header, description = "number of the last event received", nullable = false, minimum = 0),
), responses(
    (status = 200, description = DESCRIPTION, content_type = "text/event-stream", body = String, example = json!(EXAMPLE)),
    (status = 400, description = "invalid Last-Event-ID"),
    (status = 404, description = "no such run"),
))]
pub async fn follow(
    State(state): Api,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> ApiResult<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let run = find(&state, &id).await?;
    let last = match headers.get("last-event-id") {
        None => 0,
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.parse().ok());
            number.filter(|number| *number >= 0).ok_or_else(|| {
                Problem::bad_request("Last-Event-ID is not the number of an event")
            })?
        }
    };
    let changes = state.changes.subscribe();
    let follower = Follower {
        _listener: Listener::new(state.telemetry.clone()),
        state,
        id: run.id,
        last,
        changes,
        page: Vec::new(),
        ends_at: Instant::now() + MAX_STREAM_TIME,
        ended: false,
    };
    let events = futures::stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((Ok(event), follower))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

struct Follower {
    _listener: Listener,
    state: ApiState,
    id: JobId,
    /// Number of the last event sent.
    last: i64,
    changes: Receiver<JobId>,
    /// Events to send, the next one last.
    page: Vec<StoredEvent>,
    ends_at: Instant,
    ended: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Event> {
        while !self.ended {
            if let Some(event) = self.page.pop() {
                self.last = event.number;
                let number = event.number.to_string();
                return Some(Event::default().event("event").id(number).data(event.line));
            }
            // Read before the events: all events of an ended run were stored before it ended.
            let run = self.state.store.run(&self.id).await.ok()??;
            let page = self
                .state
                .store
                .events(&self.id, self.last, PAGE)
                .await
                .ok()?;
            self.page = page.into_iter().rev().collect();
            if !self.page.is_empty() {
                continue;
            }
            if run.status.has_ended() {
                self.ended = true;
                let run = serde_json::to_string(&Run::from_stored(&run)).ok()?;
                return Some(Event::default().event("end").data(run));
            }
            if self.ends_at < Instant::now() {
                return None;
            }
            tokio::select! {
                () = changed(&mut self.changes, &self.id) => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                // The client reconnects with the number of its last event.
                () = stopped(self.state.stop.clone()) => return None,
            }
        }
        None
    }
}

/// Completes when the run has changed.
pub async fn changed(changes: &mut Receiver<JobId>, id: &JobId) {
    loop {
        match changes.recv().await {
            Ok(changed) if changed == *id => return,
            Ok(_) => {}
            // The run may be among the missed changes.
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
