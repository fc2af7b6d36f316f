//! Prices of tokens in US dollars: from the settings, otherwise from the dated table of common models.
//!
//! ```toml
//! [prices."gpt-5-mini"]   # dollars per million tokens
//! prompt = 0.25
//! cached = 0.025
//! completion = 2.0
//! date = "2026-11-01"
//! ```

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{Model, ModelError, ModelName, ModelSource, Reply, Request, Usage, known_models};
use testwright_config::error::{self, Error};
use testwright_config::settings::{Price, Settings};

/// Prices of the settings, by name of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(BTreeMap<String, Price>);

impl From<&BTreeMap<String, Price>> for Prices {
    fn from(prices: &BTreeMap<String, Price>) -> Self {
        Prices(prices.clone())
    }
}

impl Prices {
    /// Returns a model's price: by its exact name, otherwise without the provider before it (`openai/…`),
    /// otherwise without the date after it (`…-2025-08-07`). Prices of the settings come first.
    pub fn price_of(&self, model: &ModelName) -> Option<&Price> {
        let names = price_names(model);
        let of_settings = names.iter().find_map(|name| self.0.get(*name));
        of_settings.or_else(|| names.iter().find_map(|name| known_models::price(name)))
    }

    /// Checks that the model has a price. Without one, a limit in dollars cannot be enforced. Rules and
    /// recordings cost nothing.
    ///
    /// # Errors
    ///
    /// Fails with a usage error if the model has no price.
    pub fn check(&self, model: &ModelName) -> error::Result<()> {
        let is_free = matches!(
            model.source(),
            ModelSource::Rules | ModelSource::Recording { .. }
        );
        if is_free || self.price_of(model).is_some() {
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
}

/// Checks that the limit of a run in dollars can be enforced, if the settings have one.
///
/// # Errors
///
/// Fails with a usage error if there is a limit, and the model has no price.
pub fn check_limit(settings: &Settings, model: &ModelName) -> error::Result<()> {
    match settings.run.max_dollars {
        Some(_) => Prices::from(&settings.prices).check(model),
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
    if let Some(base) = name.strip_suffix("-latest") {
        return base;
    }
    for form in ["-0000-00-00", "-00000000"] {
        let Some(at) = name.len().checked_sub(form.len()) else {
            continue;
        };
        let is_date = name.get(at..).is_some_and(|tail| {
            tail.bytes().zip(form.bytes()).all(|(b, form)| match form {
                b'-' => b == b'-',
                _ => b.is_ascii_digit(),
            })
        });
        if is_date {
            return &name[..at];
        }
    }
    name
}

/// A model that adds the cost to each reply's usage.
pub struct PricedModel {
    inner: Box<dyn Model>,
    price: Option<Price>,
}

impl PricedModel {
    /// Wraps a model. Without a price, its replies have no cost.
    pub fn new(inner: Box<dyn Model>, price: Option<Price>) -> Self {
        PricedModel { inner, price }
    }
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
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn prices() -> Prices {
        #[derive(serde::Deserialize)]
        struct File {
            prices: BTreeMap<String, Price>,
        }
        let file: File = toml::from_str(
            "[prices.\"gpt-5-mini\"]\nprompt = 0.25\ncached = 0.025\ncompletion = 2.0\ndate = \"2026-11-01\"\n[prices.\"qwen/coder\"]\nprompt = 1\ncompletion = 0\n",
        )
        .unwrap();
        Prices::from(&file.prices)
    }

    fn dollars(model: &str, usage: &Usage) -> Option<f64> {
        let prices = prices();
        let price = prices.price_of(&ModelName::parse(model).unwrap())?;
        Some(cost(price, usage))
    }

    const USAGE: Usage = Usage {
        prompt_tokens: 1_000_000,
        cached_tokens: 400_000,
        completion_tokens: 100_000,
        dollars: None,
        estimated: false,
    };

    #[test]
    fn cached_tokens_have_own_price() {
        let mini = dollars("gpt-5-mini", &USAGE).unwrap();
        assert!((mini - (0.6 * 0.25 + 0.4 * 0.025 + 0.1 * 2.0)).abs() < 1e-12);
        assert_eq!(dollars("qwen/coder", &USAGE), Some(1.0));
    }

    #[test]
    fn price_ignores_provider_and_date() {
        for name in [
            "openai/gpt-5-mini",
            "azure/gpt-5-mini",
            "gpt-5-mini-2025-08-07",
            "openai/gpt-5-mini-2025-08-07",
            "openai/qwen/coder",
        ] {
            assert!(dollars(name, &USAGE).is_some(), "{name}");
        }
        for name in ["gpt-5-mini-pro", "coder", "gpt-5-mini-2025-08", "snippet"] {
            assert_eq!(dollars(name, &USAGE), None, "{name}");
        }
    }

    #[test]
    fn settings_override_table() {
        let own = Price {
            prompt: 1.0,
            cached: None,
            completion: 1.0,
            date: None,
        };
        let model = ModelName::parse("claude-sonnet-4-5-20250929").unwrap();
        let table = Prices::default();
        let price = table.price_of(&model).unwrap();
        assert_eq!((price.prompt, price.completion), (3.0, 15.0));
        assert!(price.date.is_some());
        let name = "claude-sonnet-4-5".to_owned();
        let settings = Prices::from(&BTreeMap::from([(name, own.clone())]));
        assert_eq!(settings.price_of(&model), Some(&own));
    }

    #[test]
    fn limit_needs_price() {
        let mut settings = Settings::default();
        let check = |settings: &Settings, name: &str| {
            check_limit(settings, &ModelName::parse(name).unwrap())
        };
        assert!(check(&settings, "local").is_ok());
        settings.run.max_dollars = Some(1.0);
        let error = check(&settings, "local").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.hint.unwrap().contains("set both to 0"));
        for name in ["gpt-5-mini", "snippet", "replay:a.jsonl"] {
            assert!(check(&settings, name).is_ok(), "{name}");
        }
    }

    #[test]
    fn sum_needs_all_prices() {
        let priced = Usage {
            dollars: Some(1.0),
            ..USAGE
        };
        let mut sum = Usage::default();
        sum += priced;
        sum += priced;
        assert_eq!(sum.dollars, Some(2.0));
        sum += Usage {
            estimated: true,
            ..USAGE
        };
        assert_eq!(sum.dollars, None);
        assert!(sum.estimated);
        sum += priced;
        assert_eq!(sum.dollars, None, "what is unknown stays unknown");
    }
}
