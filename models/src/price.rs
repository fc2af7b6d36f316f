//! Prices of tokens in US dollars: from the settings, otherwise from the dated table of common models.
//!
//! ```toml
//! [prices."gpt-5-mini"]   # dollars per million tokens
//! prompt = 0.25
//! cached = 0.025
//! completion = 2.0
//! date = "2026-11-01"
//! ```

use async_trait::async_trait;
use testwright_sandboxes::Pattern;

use super::{Model, ModelError, ModelName, ModelSource, Reply, Request, Usage, known_models};
use testwright_config::error::{self, Error};
use testwright_config::settings::{Price, Settings};

/// Returns a model's price: by its exact name, otherwise without the provider before it (`openai/…`),
/// otherwise without the date after it (`…-2025-08-07`). Prices of the settings come first.
pub fn price_of<'a>(settings: &'a Settings, model: &ModelName) -> Option<&'a Price> {
    let names = price_names(model);
    let of_settings = names.iter().find_map(|name| settings.prices.get(*name));
    of_settings.or_else(|| names.iter().find_map(|name| known_models::price(name)))
}

/// Checks that the model has a price. Without one, a limit in dollars cannot be enforced. Rules and
/// recordings cost nothing.
///
/// # Errors
///
/// Fails with a usage error if the model has no price.
pub fn check_price(settings: &Settings, model: &ModelName) -> error::Result<()> {
    let is_free = matches!(
        model.source(),
        ModelSource::Rules | ModelSource::Recording { .. }
    );
    if is_free || price_of(settings, model).is_some() {
        return Ok(());
    }
    Err(Error::usage("enforce the limit in dollars")
        .cause(format!(
            "the model `{model}` has no price in the settings, nor in the table of `testwright models`"
        ))
        .hint(format!(
            "add [prices.\"{model}\"] with prompt and completion, in dollars per million tokens; set both to 0 for a local model"
        )))
}

/// Checks that the limit of a run in dollars can be enforced, if the settings have one.
///
/// # Errors
///
/// Fails with a usage error if there is a limit, and the model has no price.
pub fn check_limit(settings: &Settings, model: &ModelName) -> error::Result<()> {
    match settings.run.max_dollars {
        Some(_) => check_price(settings, model),
        None => Ok(()),
    }
}

/// Returns the names under which a model may be in the settings, in order of preference.
pub fn price_names(model: &ModelName) -> [&str; 6] {
    let (whole, bare) = (model.as_str(), model.bare());
    let last = bare.rsplit('/').next().unwrap_or(bare);
    [
        whole,
        bare,
        last,
        undated(whole),
        undated(bare),
        undated(last),
    ]
}

/// Computes the cost in US dollars.
pub(super) fn cost(price: &Price, usage: &Usage) -> f64 {
    let cached = usage.cached_tokens.min(usage.prompt_tokens);
    let fresh = usage.prompt_tokens - cached;
    let sum = fresh as f64 * price.prompt
        + cached as f64 * price.cached.unwrap_or(price.prompt)
        + usage.completion_tokens as f64 * price.completion;
    sum / 1e6
}

/// Returns the name without a date or `-latest` at its end.
fn undated(name: &str) -> &str {
    static DATE: Pattern = Pattern::new("-(?:latest|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8})$");
    DATE.find(name).map_or(name, |date| &name[..date.start()])
}

/// A model that adds the cost to each reply's usage.
pub(super) struct PricedModel {
    pub(super) inner: Box<dyn Model>,
    /// Price of the tokens; replies have no cost without one.
    pub(super) price: Option<Price>,
}

#[async_trait]
impl Model for PricedModel {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError> {
        let mut reply = self.inner.complete(request).await?;
        let usage = &reply.usage;
        reply.usage.dollars = self.price.as_ref().map(|price| cost(price, usage));
        Ok(reply)
    }
}

#[cfg(test)]
mod tests;
