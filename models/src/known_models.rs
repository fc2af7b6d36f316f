//! Providers of common models and their prices, as shipped with the program in `prices.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use testwright_config::settings::Price;

use super::{ModelName, ModelSource};

/// A provider of models.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KnownProvider {
    /// Name of the provider.
    pub name: String,
    /// Page on which the provider publishes its prices.
    pub source: String,
    /// Day on which these prices were known to hold, `YYYY-MM-DD`.
    pub date: String,
    /// Starts of the names of its models. Empty for OpenAI, whose address is the default.
    #[serde(default)]
    pub prefixes: Vec<String>,
    /// OpenAI-compatible endpoint. `None` for OpenAI, whose address is the default.
    pub base_url: Option<String>,
    /// Prices by name of the model.
    pub models: BTreeMap<String, Price>,
}

#[derive(Deserialize)]
struct PriceFile {
    provider: Vec<KnownProvider>,
}

#[allow(clippy::expect_used)] // a constant file, read by a test
static PROVIDERS: LazyLock<Vec<KnownProvider>> = LazyLock::new(|| {
    let file: PriceFile =
        toml::from_str(include_str!("../prices.toml")).expect("the table of prices");
    let mut providers = file.provider;
    for provider in &mut providers {
        for price in provider.models.values_mut() {
            price.date = Some(provider.date.clone());
        }
    }
    providers
});

/// Returns the providers in the table.
pub fn providers() -> &'static [KnownProvider] {
    &PROVIDERS
}

/// Returns the price of a model with exactly this name.
pub(super) fn price(name: &str) -> Option<&'static Price> {
    providers()
        .iter()
        .find_map(|provider| provider.models.get(name))
}

/// Returns the provider that serves the model at another address than OpenAI's, if its name tells.
pub fn other_provider(model: &ModelName) -> Option<&'static KnownProvider> {
    let ModelSource::Service(name) = model.source() else {
        return None;
    };
    providers().iter().find(|provider| {
        let mut prefixes = provider.prefixes.iter();
        prefixes.any(|prefix| name.starts_with(prefix.as_str()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn table_is_complete_and_unambiguous() {
        let mut names = std::collections::BTreeSet::new();
        for provider in providers() {
            assert!(provider.date.parse::<jiff::civil::Date>().is_ok());
            assert!(provider.source.starts_with("https://"));
            assert_eq!(provider.prefixes.is_empty(), provider.base_url.is_none());
            for (name, price) in &provider.models {
                assert!(names.insert(name), "{name} is in the table twice");
                let model = ModelName::parse(name).unwrap();
                let other = other_provider(&model).map(|other| &other.name);
                assert_eq!(other.is_some(), provider.base_url.is_some(), "{name}");
                assert!(other.is_none_or(|other| *other == provider.name), "{name}");
                assert!(0.0 < price.prompt && price.prompt < price.completion);
                assert!(price.cached.is_none_or(|cached| cached < price.prompt));
            }
        }
    }

    #[test]
    fn provider_follows_from_prefix() {
        let provider = |name: &str| {
            let found = other_provider(&ModelName::parse(name).unwrap());
            found.map(|provider| provider.name.as_str())
        };
        assert_eq!(provider("claude-sonnet-4-5"), Some("Anthropic"));
        assert_eq!(provider("openai/gemini-9"), Some("Google"));
        for name in ["gpt-5", "azure/claude-x", "snippet", "replay:claude-1"] {
            assert_eq!(provider(name), None, "{name}");
        }
    }
}
