//! The page for workers and the queue.

use axum::extract::{Path, Query, State};
use axum::response::{Redirect, Response};
use serde_json::json;

use super::{ListQuery, PAGE, render, template};
use crate::api::gradings;
use crate::api::{ApiResult, ApiState, workers};
use crate::store::JobFilter;

/// Shows the page. `before` in the query selects the page of gradings.
pub(super) async fn show(
    State(state): State<ApiState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Response> {
    let filter = JobFilter {
        before: query.before(),
        limit: PAGE,
        ..JobFilter::default()
    };
    let live = filter.before.is_none().then(|| "poll".to_owned());
    let overview = workers::read(&state).await?;
    let alive = overview.workers.iter().filter(|worker| worker.alive);
    let page = json!({
        "slots": alive.map(|worker| worker.slots).sum::<i64>(),
        "oldest": overview.queue.oldest_seconds.map(age),
        "workers": overview.workers,
        "queue": overview.queue,
        "gradings": gradings::page(&state, filter).await?,
    });
    Ok(render(
        &state,
        template!("workers"),
        "Workers and queue",
        live,
        page,
    ))
}

pub(super) async fn cancel_gradings(
    State(state): State<ApiState>,
    Path(batch): Path<String>,
) -> ApiResult<Redirect> {
    gradings::cancel_batch(&state, &batch).await?;
    Ok(Redirect::to("/workers"))
}

/// Formats an age in its two largest units.
fn age(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min {} s", seconds % 60),
        3_600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn age_has_two_largest_units() {
        let ages = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 200_000].map(age);
        let expected_ages = [
            "0 s",
            "59 s",
            "1 min 0 s",
            "59 min 59 s",
            "1 h 0 min",
            "23 h 59 min",
            "1 d 0 h",
            "2 d 7 h",
        ];
        assert_eq!(ages, expected_ages);
    }
}
