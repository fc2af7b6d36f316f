//! Web pages for the data of the API. Text from issues, repositories and models is escaped, and only the script of
//! these pages can run.

mod comparisons;
mod form;
mod login;
mod matrices;
mod matrix_origin;
mod matrix_view;
mod new_comparison;
mod outcome_text;
mod problem_page;
mod run_view;
mod serve_options;
mod usage_chart;
mod workers;

use std::sync::Arc;

use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testwright_evals::document::html::{self, STYLE};
use testwright_evals::untrusted_text;

use super::api::{ApiResult, ApiState, Problem, paging, runs};
use super::authentication::Caller;
use crate::store::{JobFilter, JobId, JobStatus};
use form::NewRunForm;
pub(crate) use problem_page::answer_browsers;
use run_view::{run_row, run_view};
pub(crate) use serve_options::{OptionRow, option_rows};
use testwright_agent::approaches;
use testwright_agent::trajectory::entry_view;

const OWN_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("live.js");
const LAYOUT: &str = include_str!("layout.html");
/// Number of runs on a page.
const PAGE: u32 = 50;

pub(crate) fn router(options: Vec<OptionRow>) -> Router<ApiState> {
    Router::new()
        .route("/", get(list))
        .route("/new", get(new).post(create))
        .route("/comparisons", get(comparisons::list))
        .route(
            "/comparisons/new",
            get(new_comparison::show).post(new_comparison::create),
        )
        .route("/comparisons/{id}", get(comparisons::show))
        .route("/comparisons/{id}/cancel", post(comparisons::cancel))
        .route("/comparisons/{id}/retry", post(comparisons::retry))
        .route("/comparisons/{id}/report", get(comparisons::report))
        .route("/comparisons/{id}/runs/{*path}", get(comparisons::run))
        .route("/login", get(login::show).post(login::log_in))
        .route(
            "/settings",
            get(settings).layer(Extension(Arc::<[OptionRow]>::from(options))),
        )
        .route("/workers", get(workers::show))
        .route("/gradings/{batch}/cancel", post(workers::cancel_gradings))
        .route("/runs/{id}", get(show))
        .route("/runs/{id}/cancel", post(cancel))
        .route("/runs/{id}/retry", post(retry))
        .route("/runs/{id}/revise", post(revise))
        .merge(matrices::router())
}

#[derive(Serialize)]
struct Page<T> {
    title: String,
    here: &'static str,
    /// Whether users must log in.
    tokens_required: bool,
    /// Source of updates: `poll`, or the address of an event stream.
    live: Option<String>,
    style: String,
    script: &'static str,
    #[serde(flatten)]
    content: T,
}

/// A template for the content of a page.
struct Template {
    name: &'static str,
    text: &'static str,
}

/// Includes the template in the file of this name.
macro_rules! template {
    ($name:literal) => {
        $crate::pages::Template {
            name: $name,
            text: include_str!(concat!($name, ".html")),
        }
    };
}
use template;

/// Renders a page; `live` is the source of its updates.
fn render(
    state: &ApiState,
    template: Template,
    title: &str,
    live: Option<String>,
    content: impl Serialize,
) -> Response {
    render_with_status(state, StatusCode::OK, template, title, live, content)
}

fn render_with_status(
    state: &ApiState,
    status: StatusCode,
    template: Template,
    title: &str,
    live: Option<String>,
    content: impl Serialize,
) -> Response {
    let page = Page {
        title: title.to_owned(),
        here: template.name,
        tokens_required: state.access.tokens_required,
        live,
        style: format!("{STYLE}{}{OWN_STYLE}", entry_view::STYLE),
        script: SCRIPT,
        content,
    };
    let template = LAYOUT.replace("%CONTENT%", template.text);
    let escape_text = |text: &str| untrusted_text::escape_lines(&entry_view::cut(text));
    let body = match html::render_with("page.html", &template, &page, escape_text) {
        Ok(body) => body,
        Err(error) => {
            tracing::error!(%error, "could not render a page");
            return Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "could not render the page",
            )
            .into_response();
        }
    };
    let policy = format!(
        "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; connect-src 'self'; img-src data:; \
         style-src 'sha256-{}'; script-src 'sha256-{}'",
        html::hash(&page.style),
        html::hash(SCRIPT)
    );
    let mut response = (status, Html(body)).into_response();
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Query of a list. Most lists have no filters.
#[derive(Debug, Default, Deserialize)]
struct ListQuery {
    #[serde(default)]
    status: String,
    /// Id of the last item on the previous page.
    before: Option<String>,
}

impl ListQuery {
    fn before(&self) -> Option<JobId> {
        self.before.as_deref().and_then(JobId::parse)
    }
}

async fn list(
    State(state): State<ApiState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Response> {
    let status = JobStatus::parse(&query.status);
    let filter = JobFilter {
        status,
        before: query.before(),
        limit: PAGE + 1,
        ..JobFilter::default()
    };
    let is_first = filter.before.is_none();
    let mut runs = state.store.runs(&filter, |run| run_row(&run)).await?;
    let next = paging::truncate_page(&mut runs, PAGE).map(|run| run["id"].clone());
    let statuses: Vec<_> = JobStatus::of_runs().map(JobStatus::as_str).collect();
    let page = json!({
        "statuses": statuses,
        "chosen": status.map_or("", JobStatus::as_str),
        "next": next,
        "runs": runs,
    });
    let live = is_first.then(|| "poll".to_owned());
    Ok(render(&state, template!("runs"), "Runs", live, page))
}

async fn show(State(state): State<ApiState>, Path(id): Path<String>) -> ApiResult<Response> {
    let run = runs::find(&state, &id).await?;
    let view = run_view(&state, &run).await?;
    let title = run_view::title(&run);
    let live = (!run.status.has_ended()).then(|| format!("/v1/runs/{}/events", run.id));
    Ok(render(&state, template!("run"), &title, live, view))
}

async fn cancel(State(state): State<ApiState>, Path(id): Path<String>) -> ApiResult<Redirect> {
    let run = runs::cancel_run(&state, &id).await?;
    Ok(Redirect::to(&format!("/runs/{}", run.id)))
}

async fn retry(State(state): State<ApiState>, Path(id): Path<String>) -> ApiResult<Redirect> {
    let run = runs::retry_run(&state, &id).await?;
    Ok(Redirect::to(&format!("/runs/{}", run.id)))
}

async fn revise(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Form(form): Form<runs::Revision>,
) -> ApiResult<Redirect> {
    let words = form.hint.replace("\r\n", "\n");
    let (run, _) = runs::revise_run(&state, &caller, &id, &words, None).await?;
    Ok(Redirect::to(&format!("/runs/{}", run.id)))
}

fn approach_rows() -> Vec<Value> {
    let row = |approach: &&approaches::Approach| json!({ "name": approach.name, "description": approach.description });
    approaches::ALL.iter().map(row).collect()
}

fn new_page(
    state: &ApiState,
    status: StatusCode,
    form: NewRunForm,
    problem: Option<String>,
) -> Response {
    let page = json!({
        "problem": problem,
        "limits": form.limits(&state.settings),
        "given": form,
        "approaches": approach_rows(),
    });
    render_with_status(state, status, template!("new"), "New run", None, page)
}

async fn new(State(state): State<ApiState>) -> Response {
    new_page(&state, StatusCode::OK, NewRunForm::default(), None)
}

async fn create(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Form(form): Form<NewRunForm>,
) -> ApiResult<Response> {
    let result = match form.request() {
        Ok(request) => runs::add(&state, &caller, &request, None).await,
        Err(problem) => Err(problem),
    };
    match result {
        Ok((run, _)) => Ok(Redirect::to(&format!("/runs/{}", run.id)).into_response()),
        Err(problem) => {
            let status = problem.status();
            Ok(new_page(&state, status, form, Some(problem.text())))
        }
    }
}

async fn settings(
    State(state): State<ApiState>,
    Extension(options): Extension<Arc<[OptionRow]>>,
) -> Response {
    let page = json!({ "options": *options, "rows": state.settings.describe() });
    render(&state, template!("settings"), "Settings", None, page)
}
