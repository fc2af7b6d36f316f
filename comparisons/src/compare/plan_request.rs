//! Converts a request for a comparison, given by names, to a plan.

use testwright_evals::Dataset;
use testwright_evals::predictions::Predictions;

use super::given::{Inputs, inputs};
use super::{Plan, System};
use testwright_agent::approaches::{CommandLine, ModelKind, Variant, model_selection};
use testwright_config::error::Result;
use testwright_config::settings::{Effort, Settings};
use testwright_models::ModelName;
use testwright_models::price::check_price;
use testwright_models::quota::check_budget;

/// A request for a comparison of approaches and models on a dataset.
#[derive(Debug, Clone, Default)]
pub struct PlanRequest {
    /// Approaches with their options.
    pub approaches: Vec<String>,
    /// Models; if empty, the model of the settings is used.
    pub models: Vec<ModelName>,
    /// Minimum number of samples of each system.
    pub samples: u32,
    /// Maximum cost of all runs together, in dollars.
    pub max_dollars: Option<f64>,
    /// Code patches to give to systems in place of the golden ones.
    pub code_patches: Option<Predictions>,
    /// Whether the approaches may be programs to run, as only the user of this machine may choose.
    pub allows_commands: bool,
}

impl PlanRequest {
    /// Returns the plan, the extra inputs of its systems, and a note for the user.
    ///
    /// # Errors
    ///
    /// Fails if an approach or model is invalid, a price for the budget or an extra input is missing, or the budget is
    /// too small for one call.
    pub fn plan(
        self,
        dataset: &Dataset,
        settings: &Settings,
    ) -> Result<(Plan, Inputs, Option<String>)> {
        let variants = self.approaches.iter().map(|name| {
            match self.allows_commands && CommandLine::is_command(name) {
                true => Variant::parse_with_commands(name),
                false => Variant::parse_for_issues(name),
            }
        });
        let mut variants: Vec<Variant> = variants.collect::<Result<_>>()?;
        variants.iter().try_for_each(Variant::check_program)?;
        let effort = settings.run.effort;
        let note = effort.and_then(|effort| at_effort(&mut variants, effort));
        let mut models = self.models;
        if models.is_empty() {
            models.extend(model_selection::default_model(settings)?);
        }
        check_prices(&variants, &models, self.max_dollars, settings)?;
        let systems = System::all(&variants, &models)?;
        let inputs = inputs(&variants, dataset, self.code_patches.as_ref())?;
        let plan = Plan::new(dataset, systems, self.samples, settings);
        let plan = Plan {
            code_patches: self.code_patches.map(|patches| patches.model),
            ..plan.with_given(|id| inputs.get(id)?.planned())
        };
        Ok((plan, inputs, note))
    }
}

/// Checks that the limits in dollars, of the comparison and of each run, can be enforced and allow a call.
fn check_prices(
    variants: &[Variant],
    models: &[ModelName],
    max_dollars: Option<f64>,
    settings: &Settings,
) -> Result<()> {
    if max_dollars.is_none() && settings.run.max_dollars.is_none() {
        return Ok(());
    }
    let speaks = variants
        .iter()
        .any(|v| v.approach.model == ModelKind::Language);
    let mut language_models = models.iter().filter(|_| speaks);
    language_models.try_for_each(|model| {
        check_price(settings, model)?;
        match max_dollars {
            Some(dollars) => check_budget(settings, model, dollars, settings.model.max_tokens),
            None => Ok(()),
        }
    })
}

/// Sets the effort of the approaches that support levels, and returns a note on the others.
fn at_effort(variants: &mut [Variant], effort: Effort) -> Option<String> {
    let mut without: Vec<&str> = Vec::new();
    for variant in variants {
        match variant.clone().at_effort(effort) {
            Some(at_effort) => *variant = at_effort,
            None => without.push(variant.approach.name),
        }
    }
    without.dedup();
    (!without.is_empty()).then(|| {
        format!(
            "these approaches have no effort levels: {}",
            without.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
