//! Usage of models by all workers together: requests and tokens per minute, dollars per day, and dollars per batch of
//! runs. If a worker dies during a call, the reservation of the call remains counted.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use super::Store;
use super::job_id::now;
use testwright_config::error::Result;
use testwright_config::settings::ModelLimits;
use testwright_models::price::price_names;
use testwright_models::quota::{CallCost, Quota, Reservation};
use testwright_models::{ModelError, ModelName};

/// Prefix of a batch's scope.
const BATCH: &str = "batch ";
/// Deletes the cost of a batch.
pub(super) const FORGET_BATCH: &str = "DELETE FROM model_usage WHERE scope = 'batch ' || $1";
const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// The budget of a batch of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchBudget {
    /// Id of the batch.
    pub batch: String,
    /// Maximum US dollars; `None` means no limit.
    pub dollars: Option<f64>,
}

/// Limits from the settings and of a batch, counted in the store.
#[derive(Debug, Clone)]
pub struct StoreQuota {
    /// Database that counts the usage.
    pub store: Store,
    /// Limits by model name.
    pub limits: BTreeMap<String, ModelLimits>,
    /// Budget of the batch, if it has one.
    pub budget: Option<BatchBudget>,
}

/// A scope whose usage is counted together, with its limits.
struct Window {
    scope: String,
    requests: Option<u64>,
    tokens: Option<u64>,
    dollars: Option<f64>,
    ends_at: Option<i64>,
}

impl StoreQuota {
    /// Returns the limits of a model and the name they are configured under, found in the same way as its price.
    fn find_limits(&self, model: &ModelName) -> Option<(&str, &ModelLimits)> {
        let names = price_names(model);
        let entry = names
            .iter()
            .find_map(|name| self.limits.get_key_value(*name));
        entry.map(|(name, limits)| (name.as_str(), limits))
    }

    /// Returns whether calls of this model have a limit in dollars.
    pub fn limits_dollars(&self, model: &ModelName) -> bool {
        let a_day = self
            .find_limits(model)
            .and_then(|(_, limits)| limits.dollars_per_day);
        let of_batch = self.budget.as_ref().and_then(|budget| budget.dollars);
        a_day.or(of_batch).is_some()
    }

    /// Returns the windows with budgets in dollars. A call that exceeds one fails instead of waiting for the next
    /// window.
    fn budgets(&self, model: &ModelName, now: i64) -> Vec<Window> {
        let of_dollars = |scope, dollars, ends_at| Window {
            scope,
            requests: None,
            tokens: None,
            dollars,
            ends_at,
        };
        let (model, limits) = self.find_limits(model).unzip();
        let model = model.unwrap_or_default();
        let a_day = limits.and_then(|limits| limits.dollars_per_day);
        let day = now / DAY;
        let of_day = a_day.map(|dollars| {
            let scope = format!("day {day} {model}");
            of_dollars(scope, Some(dollars), Some((day + 1) * DAY))
        });
        let of_batch = self
            .budget
            .as_ref()
            .map(|budget| of_dollars(format!("{BATCH}{}", budget.batch), budget.dollars, None));
        of_day.into_iter().chain(of_batch).collect()
    }

    fn minute(&self, model: &ModelName, now: i64) -> Option<Window> {
        let (model, limits) = self.find_limits(model)?;
        let minute = now / MINUTE;
        let is_limited = limits.requests_per_minute.is_some() || limits.tokens_per_minute.is_some();
        is_limited.then(|| Window {
            scope: format!("minute {minute} {model}"),
            requests: limits.requests_per_minute,
            tokens: limits.tokens_per_minute,
            dollars: None,
            ends_at: Some((minute + 1) * MINUTE),
        })
    }
}

#[async_trait]
impl Quota for StoreQuota {
    async fn reserve(
        &self,
        model: &ModelName,
        most: CallCost,
    ) -> std::result::Result<Reservation, ModelError> {
        let mut reserved = Reservation {
            call: 0,
            most,
            scopes: Vec::new(),
        };
        // The call waits before it reserves a budget, because the run may be cancelled meanwhile.
        while let Some(window) = self.minute(model, now()) {
            let is_counted = self.store.use_model(&window, most).await;
            if is_counted.map_err(to_model_error)? {
                reserved.scopes.push(window.scope);
                break;
            }
            let remaining_ms = window.ends_at.unwrap_or_default() - now();
            tokio::time::sleep(Duration::from_millis(
                remaining_ms.clamp(1, MINUTE).unsigned_abs(),
            ))
            .await;
        }
        for window in self.budgets(model, now()) {
            let is_counted = self
                .store
                .use_model(&window, most)
                .await
                .map_err(to_model_error);
            if matches!(is_counted, Ok(true)) {
                reserved.scopes.push(window.scope);
                continue;
            }
            // No call is made, so its reservations are removed.
            self.commit(&reserved, CallCost::default()).await?;
            is_counted?;
            return Err(ModelError::CeilingReached(format!(
                "the next call could cost ${:.4}, which exceeds what is left of ${} ({})",
                most.dollars,
                window.dollars.unwrap_or_default(),
                window.scope
            )));
        }
        Ok(reserved)
    }

    async fn commit(
        &self,
        reserved: &Reservation,
        used: CallCost,
    ) -> std::result::Result<(), ModelError> {
        for scope in &reserved.scopes {
            let settled = self.store.commit_usage(scope, reserved.most, used).await;
            settled.map_err(to_model_error)?;
        }
        Ok(())
    }
}

/// Converts an error of the database. Like an error of a model service, it is retried.
fn to_model_error(error: testwright_config::error::Error) -> ModelError {
    ModelError::Transient {
        message: error.with_cause(),
        after: None,
        unbilled: true,
    }
}

fn microdollars(dollars: f64) -> i64 {
    (dollars * 1e6).ceil() as i64
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Store {
    /// Counts a call unless it would exceed a limit. A call that is larger than the tokens per minute gets a minute of
    /// its own.
    async fn use_model(&self, window: &Window, most: CallCost) -> Result<bool> {
        let what = "count the calls of a model";
        let insertion = sqlx::query(
            "INSERT INTO model_usage (scope, requests, tokens, microdollars, ends_at) VALUES ($1, 0, 0, 0, $2) \
             ON CONFLICT (scope) DO NOTHING",
        )
        .bind(&window.scope)
        .bind(window.ends_at);
        if self.changed_rows(what, insertion).await? > 0 {
            // Running calls may still be settled.
            let deletion =
                sqlx::query("DELETE FROM model_usage WHERE ends_at < $1").bind(now() - DAY);
            self.execute(what, deletion).await?;
        }
        let update = sqlx::query(
            "UPDATE model_usage SET requests = requests + 1, tokens = tokens + $2, microdollars = microdollars + $3 \
             WHERE scope = $1 AND requests < $4 AND (tokens = 0 OR tokens + $2 <= $5) AND microdollars + $3 <= $6",
        )
        .bind(&window.scope)
        .bind(to_i64(most.tokens))
        .bind(microdollars(most.dollars))
        .bind(window.requests.map_or(i64::MAX, to_i64))
        .bind(window.tokens.map_or(i64::MAX, to_i64))
        .bind(window.dollars.map_or(i64::MAX, |most| (most * 1e6) as i64));
        Ok(self.changed_rows(what, update).await? > 0)
    }

    async fn commit_usage(&self, scope: &str, reserved: CallCost, used: CallCost) -> Result<()> {
        let update = sqlx::query(
            "UPDATE model_usage SET tokens = tokens + $2, microdollars = microdollars + $3 WHERE scope = $1",
        )
        .bind(scope)
        .bind(to_i64(used.tokens) - to_i64(reserved.tokens))
        .bind(microdollars(used.dollars) - microdollars(reserved.dollars));
        self.execute("count the calls of a model", update).await
    }

    /// Returns the US dollars that batches of runs have cost, including reservations.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn batch_dollars(&self, batches: &[&str]) -> Result<BTreeMap<String, f64>> {
        let scopes: Vec<String> = batches.iter().map(|b| format!("{BATCH}{b}")).collect();
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let query = "SELECT scope, microdollars FROM model_usage WHERE scope IN";
        let spent: Vec<(String, i64)> = self
            .list_in("read what was spent", query, &scopes, "")
            .await?;
        let spent = spent.into_iter().map(|(scope, microdollars)| {
            let batch = scope.strip_prefix(BATCH).unwrap_or(&scope);
            (batch.to_owned(), microdollars as f64 / 1e6)
        });
        Ok(spent.collect())
    }
}
