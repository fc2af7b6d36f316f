//! `testwright models`: lists common models with their prices, and the model that would be used now.

use std::path::PathBuf;

use serde::Serialize;

use super::headings::OUTPUT;
use super::output::{self, escape_line};
use super::repository_args::load_settings;
use testwright_agent::approaches::model_selection;
use testwright_config::error::Result;
use testwright_config::settings::{Flags, Origin, Price, Settings, Sources};
use testwright_models::ModelName;
use testwright_models::known_models::providers;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the list as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    #[arg(from_global)]
    config: Option<PathBuf>,
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
struct ModelList {
    models: Vec<ModelRow>,
    selected: SelectedModel,
}

/// A model with its price in US dollars per million tokens.
#[derive(Debug, Serialize)]
struct ModelRow {
    name: String,
    /// Provider in the table of common models; `None` if the price comes from the settings.
    provider: Option<&'static str>,
    #[serde(flatten)]
    price: Price,
    /// Origin of the price: a page of the provider, or a settings file.
    source: String,
}

/// The model that a run would use now.
#[derive(Debug, Default, Serialize)]
struct SelectedModel {
    /// `None` if no model can be used.
    model: Option<String>,
    approach: Option<String>,
    reason: String,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let sources = Sources::of_process(Flags::default()).config(args.config.clone());
    let settings = load_settings(&sources)?;
    let list = ModelList {
        models: rows(&settings),
        selected: selected(&settings),
    };
    if args.json {
        return output::print_json(&list);
    }
    output::print_stdout(render(&list));
    Ok(())
}

/// Returns the prices of the settings, then those of the table that the settings do not override.
fn rows(settings: &Settings) -> Vec<ModelRow> {
    let own = settings.prices.iter().map(|(name, price)| ModelRow {
        name: name.clone(),
        provider: None,
        price: price.clone(),
        source: settings.origin(&format!("prices.{name}")).to_string(),
    });
    let known = providers().iter().flat_map(|provider| {
        let models = provider.models.iter();
        models.map(move |(name, price)| ModelRow {
            name: name.clone(),
            provider: Some(&provider.name),
            price: price.clone(),
            source: provider.source.clone(),
        })
    });
    let known = known.filter(|row| !settings.prices.contains_key(&row.name));
    own.chain(known).collect()
}

/// Selects the model as `testwright run` without flags does.
fn selected(settings: &Settings) -> SelectedModel {
    let selection = match model_selection::select(settings) {
        Ok(selection) => selection,
        Err(error) => {
            return SelectedModel {
                reason: error.with_cause(),
                ..SelectedModel::default()
            };
        }
    };
    let is_named = |name: &str| ModelName::parse(name).is_ok_and(|name| name == selection.model);
    let reason = match (selection.note, settings.run.model.as_deref()) {
        (Some(note), _) => note,
        (None, Some(name)) if is_named(name) => match settings.origin("run.model") {
            Origin::Default => "it is the default".to_owned(),
            origin => format!("set by {origin}"),
        },
        (None, _) => format!("the approach {} uses it", selection.approach),
    };
    SelectedModel {
        model: Some(selection.model.to_string()),
        approach: Some(selection.approach),
        reason,
    }
}

fn render(list: &ModelList) -> String {
    let names = list.models.iter().map(|row| row.name.chars().count());
    let width = names.max().unwrap_or_default().max("model".len());
    let mut text = format!(
        "{:<width$}  {:>8} {:>8} {:>10}  {:<10}  provider\n",
        "model", "prompt", "cached", "completion", "date"
    );
    for row in &list.models {
        let price = &row.price;
        let cached = price.cached.unwrap_or(price.prompt);
        let provider = match row.provider {
            Some(provider) => provider.to_owned(),
            None => format!("your settings ({})", row.source),
        };
        let line = format!(
            "{:<width$}  {:>8} {cached:>8} {:>10}  {:<10}  {provider}",
            row.name,
            price.prompt,
            price.completion,
            price.date.as_deref().unwrap_or("–"),
        );
        text.push_str(&escape_line(&line));
        text.push('\n');
    }
    text.push_str("\nUS dollars per million tokens, on that date. [prices.\"NAME\"] in the settings overrides a price.\n");
    let selected = &list.selected;
    let line = match &selected.model {
        Some(model) => format!("selected: {model} ({})", selected.reason),
        None => format!("selected: none ({})", selected.reason),
    };
    text.push_str(&escape_line(&line));
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
