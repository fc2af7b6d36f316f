//! Prices of tokens in US dollars. They come only from the configuration: prices change, and a built-in
//! number would be wrong sooner or later.
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

use super::{Model, ModelError, ModelName, Reply, Request, Usage};
use testwright_config::error::{self, Error};
use testwright_config::settings::Price;

/// Prices by name of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(BTreeMap<String, Price>);

impl From<&BTreeMap<String, Price>> for Prices {
    fn from(prices: &BTreeMap<String, Price>) -> Self {
        Prices(prices.clone())
    }
}

impl Prices {
    /// Returns a model's price: by its exact name, otherwise without the provider before it (`openai/…`),
    /// otherwise without the date after it (`…-2025-08-07`).
    pub fn price_of(&self, model: &ModelName) -> Option<&Price> {
        let names = price_names(model);
        names.iter().find_map(|name| self.0.get(*name))
    }

    /// Checks that the model has a price. Without one, a limit in dollars cannot be enforced.
    ///
    /// # Errors
    ///
    /// Fails with a usage error if the model has no price.
    pub fn check(&self, model: &ModelName) -> error::Result<()> {
        match self.price_of(model) {
            Some(_) => Ok(()),
            None => Err(Error::usage("enforce the limit in dollars")
                .cause(format!("the model `{model}` has no price in the settings"))
                .hint(format!(
                    "add [prices.\"{model}\"] with prompt and completion, in dollars per million tokens"
                ))),
        }
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

fn undated(name: &str) -> &str {
    let Some(at) = name.len().checked_sub(11) else {
        return name;
    };
    let is_date = name.get(at..).is_some_and(|tail| {
        tail.bytes().enumerate().all(|(i, b)| match i {
            0 | 5 | 8 => b == b'-',
            _ => b.is_ascii_digit(),
        })
    });
    if is_date { &name[..at] } else { name }
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
        for name in ["gpt-5", "gpt-5-mini-pro", "coder"] {
            assert_eq!(dollars(name, &USAGE), None, "{name}");
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
