//! The form for a new comparison. It is sent as multipart, because it has files and multiple choices.

use axum::Extension;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{Multipart, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};
use testwright_evals::Dataset;

use super::comparisons::to_page;
use super::form::{Number, filled, refused};
use super::{approach_rows, render_with_status, template};
use crate::api::{ApiResult, ApiState, Problem, comparisons};
use crate::authentication::Caller;
use crate::comparison::request::{
    ComparisonLimits, ComparisonRequest, MAX_SAMPLES, MAX_TEST_SECONDS,
};
use crate::store::StoredComparison;
use testwright_comparisons::grading::records;
use testwright_config::error::Result;
use testwright_config::settings::{Effort, Settings};
use testwright_models::ModelName;
use testwright_models::price::price_of;

const EFFORTS: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

const SAMPLES: Number = Number::integer("samples", "Samples");
const DOLLARS: Number = Number::decimal("dollars", "US dollars for all runs together");
const STEPS: Number = Number::integer("steps", "Steps per run");
const TOKENS: Number = Number::integer("tokens", "Tokens per run");
const MINUTES: Number = Number::decimal("minutes", "Minutes per run");
const TEST_SECONDS: Number = Number::integer(
    "test_seconds",
    "Timeout of a test run during grading, in seconds",
);

/// Returns the models in the server's settings.
fn model_rows(settings: &Settings) -> Vec<Value> {
    let default = settings.run.model.as_ref();
    let has_price =
        |name: &str| ModelName::parse(name).is_ok_and(|model| price_of(settings, &model).is_some());
    let priced = settings.prices.keys();
    let others = priced.filter(|name| Some(*name) != default);
    let row = |name: &String| {
        json!({
            "name": name,
            "is_default": Some(name) == default,
            "has_price": has_price(name),
        })
    };
    default.into_iter().chain(others).map(row).collect()
}

/// The form as the user filled it in.
#[derive(Debug, Default, Serialize)]
struct ComparisonForm {
    name: String,
    instances: String,
    approaches: Vec<String>,
    variants: String,
    models: Vec<String>,
    other_models: String,
    samples: String,
    effort: String,
    dollars: String,
    steps: String,
    tokens: String,
    minutes: String,
    test_seconds: String,
    repositories: String,
    /// File to use instead of `instances`.
    #[serde(skip)]
    file: Option<UploadedFile>,
}

#[derive(Debug)]
struct UploadedFile {
    name: String,
    bytes: Vec<u8>,
}

impl UploadedFile {
    /// Reads the file; `None` if the user chose none.
    async fn read(field: Field<'_>) -> std::result::Result<Option<Self>, MultipartError> {
        let name = field.file_name().unwrap_or_default();
        // Some old browsers send the full path.
        let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = name.to_owned();
        let bytes = field.bytes().await?.to_vec();
        Ok((!bytes.is_empty()).then_some(UploadedFile { name, bytes }))
    }
}

impl ComparisonForm {
    async fn read(mut fields: Multipart) -> ApiResult<Self> {
        let broken = |e: MultipartError| Problem::new(e.status(), e.body_text());
        let mut form = ComparisonForm::default();
        while let Some(field) = fields.next_field().await.map_err(broken)? {
            let name = field.name().unwrap_or_default().to_owned();
            if name == "file" {
                form.file = UploadedFile::read(field).await.map_err(broken)?;
                continue;
            }
            let text = field.text().await.map_err(broken)?;
            form.fill_in(&name, text)?;
        }
        Ok(form)
    }

    fn fill_in(&mut self, name: &str, text: String) -> ApiResult<()> {
        let field = match name {
            "name" => &mut self.name,
            "instances" => &mut self.instances,
            "approach" => {
                self.approaches.push(text);
                return Ok(());
            }
            "variants" => &mut self.variants,
            "model" => {
                self.models.push(text);
                return Ok(());
            }
            "other_models" => &mut self.other_models,
            "samples" => &mut self.samples,
            "effort" => &mut self.effort,
            "dollars" => &mut self.dollars,
            "steps" => &mut self.steps,
            "tokens" => &mut self.tokens,
            "minutes" => &mut self.minutes,
            "test_seconds" => &mut self.test_seconds,
            "repositories" => &mut self.repositories,
            _ => {
                let detail = format!("the form has no field {name:?}");
                return Err(Problem::unprocessable(detail));
            }
        };
        *field = text;
        Ok(())
    }

    /// Converts the form to a request. The content of a file is moved to the field `instances`, because browsers do not
    /// send files again.
    fn request(&mut self) -> ApiResult<ComparisonRequest> {
        self.check_what_is_missing()?;
        let instances = self.take_instances()?;
        let effort = match self.effort.trim() {
            "" => None,
            text => {
                let effort = serde_json::from_value(Value::String(text.to_owned()));
                Some(effort.map_err(|_| {
                    refused(
                        "Effort",
                        &format!("“{text}” is not a level"),
                        "choose a level from the list",
                    )
                })?)
            }
        };
        Ok(ComparisonRequest {
            name: self.name.clone(),
            instances,
            approaches: join_choices(&self.approaches, &self.variants),
            models: join_choices(&self.models, &self.other_models),
            samples: SAMPLES.read_whole(&self.samples, u64::from(MAX_SAMPLES))?,
            limits: ComparisonLimits {
                dollars: DOLLARS.read_decimal(&self.dollars)?,
                steps: STEPS.read_whole(&self.steps, u64::MAX)?,
                tokens: TOKENS.read_whole(&self.tokens, u64::MAX)?,
                minutes: MINUTES.read_decimal(&self.minutes)?,
            },
            effort,
            repositories: filled(&self.repositories).map(|_| self.repositories.clone()),
            test_seconds: TEST_SECONDS.read_whole(&self.test_seconds, MAX_TEST_SECONDS)?,
        })
    }

    /// Checks required fields, in the order of the page.
    fn check_what_is_missing(&self) -> ApiResult<()> {
        let has_file = self.file.is_some();
        if !has_file && filled(&self.instances).is_none() {
            let hint = "choose a file, or enter instances in the field";
            return Err(refused("Instances", "no instances were given", hint));
        }
        if !has_file && filled(&self.name).is_none() {
            let hint = "enter a name, or choose a file";
            return Err(refused("Name in lists", "the name is missing", hint));
        }
        if join_choices(&self.approaches, &self.variants).is_empty() {
            let hint = "choose at least one, or enter one with its options";
            return Err(refused("Approaches", "no approach was chosen", hint));
        }
        Ok(())
    }

    /// Returns the fields for limits.
    fn limits(&self) -> [Value; 5] {
        let priced = "every model needs a price in the server's settings";
        [
            DOLLARS.field(priced, &self.dollars),
            STEPS.field("", &self.steps),
            TOKENS.field("", &self.tokens),
            MINUTES.field("", &self.minutes),
            TEST_SECONDS.field("empty: 900", &self.test_seconds),
        ]
    }

    fn take_instances(&mut self) -> Result<Vec<Map<String, Value>>> {
        let Some(file) = self.file.take() else {
            let name = filled(&self.name).unwrap_or("the instances");
            return Dataset::records_in(name, self.instances.clone().into_bytes()).map_err(records);
        };
        if filled(&self.name).is_none() {
            self.name.clone_from(&file.name);
        }
        match Dataset::records_in(&file.name, file.bytes.clone()) {
            Ok(instances) => {
                let lines = instances
                    .iter()
                    .filter_map(|i| serde_json::to_string(i).ok());
                self.instances = lines.map(|line| line + "\n").collect();
                Ok(instances)
            }
            Err(error) => {
                self.instances = String::from_utf8(file.bytes).unwrap_or_default();
                Err(records(error))
            }
        }
    }
}

/// Joins the chosen items and those entered as text.
fn join_choices(ticked: &[String], written: &str) -> Vec<String> {
    let written = written.split_whitespace().map(str::to_owned);
    ticked.iter().cloned().chain(written).collect()
}

pub(super) async fn show(State(state): State<ApiState>) -> Response {
    let form = ComparisonForm {
        approaches: vec![state.settings.run.approach.clone()],
        ..ComparisonForm::default()
    };
    page(&state, StatusCode::OK, form, None)
}

pub(super) async fn create(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    fields: Multipart,
) -> ApiResult<Response> {
    let mut form = ComparisonForm::read(fields).await?;
    match ask(&state, &caller, &mut form).await {
        Ok(comparison) => Ok(to_page(comparison.id.as_str()).into_response()),
        Err(problem) => {
            let status = problem.status();
            Ok(page(&state, status, form, Some(problem.text())))
        }
    }
}

async fn ask(
    state: &ApiState,
    caller: &Caller,
    form: &mut ComparisonForm,
) -> ApiResult<StoredComparison> {
    let request = tokio::task::block_in_place(|| form.request())?;
    let (stored, _) = comparisons::add(state, caller, &request, None).await?;
    Ok(stored)
}

fn page(
    state: &ApiState,
    status: StatusCode,
    form: ComparisonForm,
    problem: Option<String>,
) -> Response {
    let note = "runs of each approach with each model on each instance (empty: 1)";
    let page = json!({
        "problem": problem,
        "samples": SAMPLES.field(note, &form.samples),
        "limits": form.limits(),
        "given": form,
        "approaches": approach_rows(),
        "models": model_rows(&state.settings),
        "efforts": EFFORTS,
    });
    let (template, title) = (template!("new-comparison"), "New comparison");
    render_with_status(state, status, template, title, None, page)
}
