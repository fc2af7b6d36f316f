//! Pages of comparisons: the list, each comparison with its runs, and its report.

use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde_json::json;

use super::run_view::run_row;
use super::{ListQuery, PAGE, render, template};
use crate::api::comparisons::{self, Comparison, Comparisons};
use crate::api::{ApiResult, ApiState, Problem, paging};
use crate::store::{JobFilter, JobId, JobStatus, StoredComparison};
use testwright_comparisons::compare::Plan;

/// Policy for the report, a page of its own kind: it must not get the rights of this server's pages.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-popups allow-top-navigation-by-user-activation; frame-ancestors 'none'";

pub(super) async fn list(
    State(state): State<ApiState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Response> {
    let filter = JobFilter {
        before: query.before(),
        limit: PAGE,
        ..JobFilter::default()
    };
    let live = filter.before.is_none().then(|| "poll".to_owned());
    let page: Comparisons = comparisons::page(&state, filter).await?;
    Ok(render(
        &state,
        template!("comparisons"),
        "Comparisons",
        live,
        page,
    ))
}

pub(super) async fn show(
    State(state): State<ApiState>,
    Path(id): Path<String>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Response> {
    let stored = comparisons::find(&state, &id).await?;
    let filter = JobFilter {
        batch: Some(stored.id.clone()),
        status: JobStatus::parse(&query.status),
        before: query.before(),
        limit: PAGE + 1,
        ..JobFilter::default()
    };
    let mut runs = state.store.runs(&filter, |run| run_row(&run)).await?;
    let files = state.store.artifacts(&stored.id).await?;
    let comparison = Comparison::load(&state, &stored).await?;
    let title = comparison.name.clone();
    let is_open = comparison.is_open();
    let next = paging::truncate_page(&mut runs, PAGE).map(|run| run["id"].clone());
    let files: Vec<String> = files.into_iter().map(|file| file.name).collect();
    let page = json!({
        "max_dollars": stored.max_dollars,
        "planned": planned(&stored),
        "made": comparison.runs.values().sum::<i64>(),
        "may_cancel": !stored.status.has_ended(),
        // A comparison of a command is resumed by that command.
        "may_retry": stored.request.is_some() && stored.status.may_be_retried(),
        // An empty status selects all runs.
        "chosen": filter.status.map_or("", JobStatus::as_str),
        "next": next,
        "runs": runs,
        "files": files,
        "comparison": comparison,
    });
    let live = (filter.before.is_none() && is_open).then(|| "poll".to_owned());
    Ok(render(&state, template!("comparison"), &title, live, page))
}

/// Returns the number of runs of the complete comparison; `None` if another version wrote the plan.
fn planned(stored: &StoredComparison) -> Option<usize> {
    let plan: Plan = serde_json::from_str(&stored.plan).ok()?;
    let samples = plan.systems.iter().map(|s| s.samples(plan.samples));
    Some(plan.instances.len() * samples.sum::<u32>() as usize)
}

pub(super) async fn cancel(
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> ApiResult<Redirect> {
    let response = comparisons::cancel(State(state), Path(id.clone()));
    response.await.map(|_| to_page(&id))
}

pub(super) async fn retry(
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> ApiResult<Redirect> {
    let response = comparisons::retry(State(state), Path(id.clone()));
    response.await.map(|_| to_page(&id))
}

/// Redirects to the page of an existing comparison.
pub(super) fn to_page(id: &str) -> Redirect {
    Redirect::to(&format!("/comparisons/{id}"))
}

/// Inserts links back to this server into a report, which does not know them. They follow the link that skips to the
/// contents.
fn insert_back_links(page: &str, id: &JobId) -> String {
    let way = format!(
        "<nav aria-label=\"testwright\"><a href=\"/comparisons/{id}\">This comparison</a> · \
         <a href=\"/comparisons\">All comparisons</a></nav>\n"
    );
    let begin = page.find("<header>");
    let begin = begin.or_else(|| page.find("<body>").map(|body| body + "<body>".len()));
    match begin {
        Some(begin) => format!("{}{way}{}", &page[..begin], &page[begin..]),
        None => page.to_owned(),
    }
}

pub(super) async fn report(
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let stored = comparisons::find(&state, &id).await?;
    let report = state.store.comparison_report(&stored.id).await?;
    let report = report.ok_or_else(comparisons::not_graded)?;
    let page = insert_back_links(&report.page, &stored.id);
    let mut response = Html(page).into_response();
    response.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(REPORT_POLICY),
    );
    Ok(response)
}

/// Redirects links of the report to the pages of its runs.
pub(super) async fn run(
    State(state): State<ApiState>,
    Path((id, path)): Path<(String, String)>,
) -> ApiResult<Redirect> {
    let stored = comparisons::find(&state, &id).await?;
    let folder = path.trim_end_matches("/trajectory.html");
    let key = format!("{}/runs/{folder}", stored.id);
    let run = state.store.run_of_key(&key).await?;
    let run = run.ok_or_else(Problem::no_run)?;
    Ok(Redirect::to(&format!("/runs/{}", run.id)))
}
