//! The request for a run, as clients send it and as the store keeps it.

use serde::{Deserialize, Serialize};

use super::allow_list::AllowList;
use super::fields::{MAX_ISSUE_LEN, MAX_PATCH_LEN, check_name, check_path};
use crate::json::encode;
use crate::store::NewRun;
use testwright_agent::approaches::extra_inputs::{self, ExtraInputs, hint};
use testwright_agent::approaches::{Variant, model_selection};
use testwright_agent::check::TestInput;
use testwright_agent::issues;
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Effort, Settings};
use testwright_models::provider::{Variable, azure_deployment};
use testwright_models::{ModelName, ModelSource};

/// A request for a test for an issue.
#[derive(
    Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// URL of a GitHub issue, or the issue itself: a line with its title, then its text.
    #[schema(min_length = 1, max_length = 1_048_576)]
    pub issue: String,
    /// Repository: a URL, or a folder on the server. Required unless the issue is a URL. The server must allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2048)]
    pub repository: Option<String>,
    /// Commit, tag or branch of the old code. Default: HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    pub commit: Option<String>,
    /// Folder of the one project to use, if the repository has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2048)]
    pub project: Option<String>,
    /// Whether to read the issue's comments too, except those newer than the fix or `commit`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub comments: bool,
    /// Approach, with its options. Default: the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    pub approach: Option<String>,
    /// Effort level, which sets options of approaches that have levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^(low|medium|high)$")]
    pub effort: Option<Effort>,
    /// Model, by the name that its provider uses, without surrounding whitespace. Default: the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    pub model: Option<String>,
    /// Description of the wanted test, in the words of a person whom the model should trust. The model and the
    /// reviewer see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 8_192)]
    pub hint: Option<String>,
    /// The only test files that may change, as paths in the repository. Default: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test_files: Vec<String>,
    /// Minimum confidence (0 to 1); tests below it are withheld. Default: the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub min_confidence: Option<f64>,
    /// Id of an earlier run on the same code, whose test is revised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    pub revises: Option<String>,
    /// Limits of the run.
    #[serde(default, skip_serializing_if = "RunLimits::is_empty")]
    pub limits: RunLimits,
}

/// Limits of a run, or of a model that checks a test. The server's limits apply too; larger values are reduced.
#[derive(
    Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct RunLimits {
    /// Maximum number of steps: model calls without reviews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub steps: Option<u32>,
    /// Maximum cost in US dollars. The server and its workers need a price for the model in their settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0.0)]
    pub dollars: Option<f64>,
    /// Maximum number of tokens (prompt and completion).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub tokens: Option<u64>,
    /// Maximum minutes, not counting the environment build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0.0)]
    pub minutes: Option<f64>,
}

impl RunLimits {
    pub(crate) fn is_empty(&self) -> bool {
        *self == RunLimits::default()
    }

    /// Returns the server's settings, with these limits applied.
    pub(crate) fn apply(&self, server: &Settings) -> Settings {
        let mut settings = server.clone();
        let run = &mut settings.run;
        if let Some(steps) = self.steps {
            run.max_steps = run.max_steps.min(u64::from(steps));
        }
        if let Some(dollars) = self.dollars {
            run.max_dollars = Some(run.max_dollars.unwrap_or(f64::MAX).min(dollars));
        }
        if let Some(tokens) = self.tokens {
            run.max_tokens = Some(run.max_tokens.unwrap_or(u64::MAX).min(tokens));
        }
        if let Some(minutes) = self.minutes {
            run.max_minutes = run.max_minutes.min(minutes);
        }
        settings
    }

    /// Checks that all limits are greater than zero.
    pub(crate) fn check(&self) -> Result<()> {
        match self.problem() {
            None => Ok(()),
            Some(cause) => Err(Error::usage("read the limits")
                .cause(cause)
                .hint("omit a limit to leave it unset")),
        }
    }

    /// Returns what is wrong with the first limit that is not a number greater than zero.
    pub(crate) fn problem(&self) -> Option<String> {
        let limits = [
            ("steps", self.steps.map(f64::from)),
            ("dollars", self.dollars),
            ("tokens", self.tokens.map(|tokens| tokens as f64)),
            ("minutes", self.minutes),
        ];
        let is_invalid = |value: f64| !(value.is_finite() && value > 0.0);
        let mut limits = limits.into_iter();
        let (name, _) = limits.find(|(_, value)| value.is_some_and(is_invalid))?;
        Some(format!("`{name}` is not greater than zero"))
    }
}

/// Replaces the hint of a failed selection, which names flags, if no model can be chosen.
fn hint_for_client(error: Error, settings: &Settings) -> Error {
    match model_selection::default_model(settings) {
        Ok(None) if settings.model.base_url.is_some() => error.hint(
            "pass `model` in the request, or set TESTWRIGHT_MODEL or `[run] model` for the server",
        ),
        Ok(None) => {
            let key = &settings.model.api_key_env;
            error.hint(format!("set {key} or model.base-url for the server"))
        }
        _ => error,
    }
}

impl RunRequest {
    /// Checks the request and returns the run to store.
    ///
    /// # Errors
    ///
    /// Fails with a usage error that names the invalid field, or the missing price of the model.
    pub fn check(
        &self,
        settings: &Settings,
        allowed: &AllowList,
        owner: &str,
        idempotency_key: Option<String>,
    ) -> Result<NewRun> {
        check_issue(&self.issue)?;
        self.limits.check()?;
        let repository = allowed_repository(
            Some(&self.issue),
            self.repository.as_deref(),
            settings,
            allowed,
        )?;
        self.commit.as_deref().map(check_revision).transpose()?;
        if let Some(project) = &self.project {
            check_path("project", project)?;
        }
        if let Some(minimum) = self.min_confidence
            && !(0.0..=1.0).contains(&minimum)
        {
            return Err(Error::usage("read `min_confidence`").cause("it is not from 0 to 1"));
        }
        let mut settings = self.settings(settings);
        if let Some(approach) = &self.approach {
            check_name("approach", approach)?;
            Variant::parse_for_issues(approach)?;
            settings.set_approach(approach);
        }
        if let Some(model) = &self.model {
            let model = allowed_model("model", model, &settings, allowed)?;
            settings.run.model = Some(model.to_string());
        }
        let selection = model_selection::select(&settings)
            .map_err(|error| hint_for_client(error, &settings))?;
        let mut approach = selection.approach;
        let mut variant = Variant::parse_for_issues(&approach)?;
        if let Some(effort) = self.effort {
            let name = variant.approach.name;
            variant = variant.at_effort(effort).ok_or_else(|| {
                Error::usage("set `effort`")
                    .cause(format!("the approach `{name}` has no levels of effort"))
                    .hint("omit `effort`")
            })?;
            approach = variant.name();
        }
        let inputs = self.extra_inputs()?;
        if !inputs.test_files.is_empty() {
            inputs.check_options(&variant)?;
        }
        if self.revises.is_some() {
            extra_inputs::check_can_revise(&variant)?;
        }
        Ok(NewRun {
            request: encode(self, "store the request")?,
            title: issues::title(&self.issue).unwrap_or_default(),
            repository,
            approach,
            model: selection.model.to_string(),
            idempotency_key,
            owner: owner.to_owned(),
            batch: String::new(),
            traceparent: None,
        })
    }

    /// Returns the hint and the test files as inputs of an approach.
    ///
    /// # Errors
    ///
    /// Fails with a usage error if the hint or the path of a test file is not usable.
    pub fn extra_inputs(&self) -> Result<ExtraInputs> {
        let path = |path: &String| {
            check_path("test_files", path)?;
            extra_inputs::test_path(path)
        };
        Ok(ExtraInputs {
            hint: self.hint.as_deref().map(hint::check).transpose()?,
            test_files: self.test_files.iter().map(path).collect::<Result<_>>()?,
            ..ExtraInputs::default()
        })
    }

    /// Returns the server's settings, with those of this request applied.
    pub fn settings(&self, server: &Settings) -> Settings {
        let mut settings = self.limits.apply(server);
        let run = &mut settings.run;
        run.min_confidence = self.min_confidence.or(run.min_confidence);
        run.project = self.project.clone().or(run.project.take());
        settings
    }
}

/// Checks the length of an issue.
///
/// # Errors
///
/// Fails with a usage error if it is empty or too long.
pub fn check_issue(issue: &str) -> Result<()> {
    if issue.trim().is_empty() || issue.contains('\0') {
        return Err(Error::usage("read the issue")
            .cause("it is empty")
            .hint("give the URL of a GitHub issue, or its title and text"));
    }
    if issue.len() > MAX_ISSUE_LEN {
        return Err(Error::usage("read the issue").cause(format!(
            "it has {} bytes; the maximum is {MAX_ISSUE_LEN}",
            issue.len()
        )));
    }
    Ok(())
}

/// Returns a test that a client provides: a patch, or a file with its content.
///
/// # Errors
///
/// Fails with a usage error if there is not exactly one of the two forms, the path is invalid, or the text is too long.
pub fn read_test(
    patch: Option<&str>,
    path: Option<&str>,
    content: Option<&str>,
) -> Result<TestInput> {
    let refused = |cause: String| Error::usage("read the test").cause(cause);
    let (text, input) = match (patch, path, content) {
        (Some(patch), None, None) => (patch, TestInput::Patch(patch.to_owned())),
        (None, Some(path), Some(content)) => {
            check_path("path", path)?;
            let file = TestInput::File {
                path: path.to_owned(),
                content: content.as_bytes().to_vec(),
            };
            (content, file)
        }
        _ => {
            let cause = "there is neither a patch nor a file, or both".to_owned();
            return Err(refused(cause).hint("set either `patch`, or `path` and `content`"));
        }
    };
    if text.len() > MAX_PATCH_LEN || text.contains('\0') {
        return Err(refused(format!(
            "it is not a text of at most {MAX_PATCH_LEN} bytes"
        )));
    }
    Ok(input)
}

/// Returns the repository that the request names, or otherwise the repository in the issue's URL.
///
/// # Errors
///
/// Fails if the path is invalid, no repository is given, or the server does not allow a repository.
pub fn allowed_repository(
    issue: Option<&str>,
    requested_repository: Option<&str>,
    settings: &Settings,
    allowed: &AllowList,
) -> Result<String> {
    if let Some(requested_repository) = requested_repository {
        check_path("repository", requested_repository)?;
    }
    let options = issues::Options::from_settings(settings, false);
    let of_issue = match issue {
        Some(issue) => issues::repository_of_url(issue, &options)?,
        None => None,
    };
    let Some(repository) = requested_repository.or(of_issue.as_deref()) else {
        return Err(Error::usage("find the repository")
            .cause("no repository was given, and the issue is not a URL")
            .hint("set `repository`"));
    };
    allowed.check(repository)?;
    if let Some(of_issue) = &of_issue {
        allowed.check(of_issue)?;
    }
    Ok(repository.to_owned())
}

/// Parses the model that a client names in a field.
///
/// # Errors
///
/// Fails with a usage error that names the field if the text is not a model name or the server does not allow the
/// model.
pub fn allowed_model(
    field: &str,
    text: &str,
    settings: &Settings,
    allowed: &AllowList,
) -> Result<ModelName> {
    let variable = |name: &str| std::env::var(name).ok();
    allowed_model_with(field, text, settings, allowed, &variable)
}

fn allowed_model_with(
    field: &str,
    text: &str,
    settings: &Settings,
    allowed: &AllowList,
    variable: Variable<'_>,
) -> Result<ModelName> {
    check_name(field, text)?;
    let reading = format!("read `{field}`");
    let name = ModelName::parse(text).map_err(|error| error.doing(&reading))?;
    let refused = |cause: &str| Err(Error::usage(reading).cause(cause));
    match (name.source(), azure_deployment(&name, settings, variable)) {
        (ModelSource::Recording { .. }, _) if !allowed.allows_recordings() => {
            refused("recordings are disabled on this server (--allow-recordings enables them)")
        }
        // A different name would use the deployment with the price and limits of another model.
        (ModelSource::Azure(model) | ModelSource::Service(model), Some(deployment))
            if model != deployment && settings.run.model.as_deref() != Some(text) =>
        {
            refused("this server has one Azure deployment, which is a different model")
        }
        _ => Ok(name),
    }
}

/// Checks a revision; texts that git could read as something else are refused.
///
/// # Errors
///
/// Fails with a usage error if the text is not a plain commit, tag or branch name.
pub fn check_revision(commit: &str) -> Result<()> {
    check_name("commit", commit)?;
    let is_revision = |c: char| c.is_ascii_alphanumeric() || "._-/~^".contains(c);
    if commit.is_empty() || commit.starts_with('-') || !commit.chars().all(is_revision) {
        return Err(
            Error::usage("read `commit`").cause("it is not a valid commit, tag or branch name")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
