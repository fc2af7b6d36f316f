//! Extra inputs of the systems in a comparison, in addition to the issue: the golden code patch and the names of the
//! golden test files from the dataset, and other code patches from a predictions file. The golden tests themselves are
//! never given.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use testwright_evals::harness::ChangedLines;
use testwright_evals::predictions::Predictions;
use testwright_evals::{Dataset, Instance};

use super::plan::PlannedGiven;
use testwright_agent::approaches::extra_inputs::{self, ExtraInputs};
use testwright_agent::approaches::{Options, Variant};
use testwright_config::error::{Error, Result};
use testwright_config::hex::hex;

/// Extra inputs available for an instance, limited to those that some system uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceInputs {
    golden_patch: Option<String>,
    other_patch: Option<String>,
    test_files: Vec<String>,
}

/// Extra inputs by instance.
pub type Inputs = BTreeMap<String, InstanceInputs>;

impl InstanceInputs {
    /// Returns the inputs that these options request.
    pub fn given(&self, options: &Options) -> ExtraInputs {
        let patch = match extra_inputs::takes_other_patch(options) {
            true => &self.other_patch,
            false => &self.golden_patch,
        };
        ExtraInputs {
            code_patch: patch.clone().filter(|_| extra_inputs::takes_patch(options)),
            test_files: match extra_inputs::takes_tests(options) {
                true => self.test_files.clone(),
                false => Vec::new(),
            },
            ..ExtraInputs::default()
        }
    }

    /// Returns the inputs for the plan, with digests in place of patches.
    pub fn planned(&self) -> Option<PlannedGiven> {
        let digest = |patch: &String| hex(&Sha256::digest(patch));
        let is_empty = *self == InstanceInputs::default();
        (!is_empty).then(|| PlannedGiven {
            golden_patch: self.golden_patch.as_ref().map(digest),
            other_patch: self.other_patch.as_ref().map(digest),
            test_files: self.test_files.clone(),
        })
    }
}

/// First variant that requests each kind of input.
struct RequestedInputs<'v> {
    tests: Option<&'v Variant>,
    golden: Option<&'v Variant>,
    other: Option<&'v Variant>,
}

/// The variant that requests an input, two names of the input, and whether an instance lacks it.
type InputRequest<'v> = (
    Option<&'v Variant>,
    &'static str,
    &'static str,
    fn(&InstanceInputs) -> bool,
);

/// Collects the inputs that these approaches request.
///
/// # Errors
///
/// Fails if the options or the file of code patches do not fit together, or an instance lacks a requested input.
pub fn inputs(
    variants: &[Variant],
    dataset: &Dataset,
    code_patches: Option<&Predictions>,
) -> Result<Inputs> {
    variants.iter().try_for_each(extra_inputs::check_options)?;
    let first = |takes: &dyn Fn(&Options) -> bool| variants.iter().find(|v| takes(v.options()));
    let requested_inputs = RequestedInputs {
        tests: first(&extra_inputs::takes_tests),
        golden: first(&|o| extra_inputs::takes_patch(o) && !extra_inputs::takes_other_patch(o)),
        other: first(&extra_inputs::takes_other_patch),
    };
    match (requested_inputs.other, code_patches) {
        (Some(variant), None) => {
            return Err(
                Error::usage(format!("give `{}` a code patch", variant.name()))
                    .cause("`other-patch` needs a file of code patches")
                    .hint("add --code-patches FILE, with instance_id and model_patch in each line"),
            );
        }
        (None, Some(_)) => {
            return Err(Error::usage("use --code-patches")
                .cause("no approach uses a patch from the file")
                .hint("add an approach such as zero-shot-plus:given-patch=on:other-patch=on"));
        }
        _ => {}
    }
    let inputs: Inputs = dataset
        .instances
        .iter()
        .map(|instance| {
            let inputs = of_instance(&requested_inputs, instance, code_patches);
            (instance.instance_id.clone(), inputs)
        })
        .collect();
    let golden = "golden code patch";
    let other = "patch of --code-patches";
    let tests = "golden tests in Python files";
    let requests: [InputRequest<'_>; 3] = [
        (requested_inputs.tests, "test files", tests, |inputs| {
            inputs.test_files.is_empty()
        }),
        (requested_inputs.golden, "a code patch", golden, |inputs| {
            inputs.golden_patch.is_none()
        }),
        (requested_inputs.other, "a code patch", other, |inputs| {
            inputs.other_patch.is_none()
        }),
    ];
    for (variant, what, of_what, is_without) in requests {
        let Some(variant) = variant else { continue };
        let without = dataset.instances.iter().map(|i| i.instance_id.as_str());
        let without: Vec<&str> = without.filter(|id| is_without(&inputs[*id])).collect();
        if !without.is_empty() {
            return Err(Error::usage(format!("give `{}` {what}", variant.name()))
                .cause(dataset.lacking_message(&without, of_what, NAMED))
                .hint("select only instances that have it with --instances"));
        }
    }
    Ok(inputs)
}

fn of_instance(
    requested_inputs: &RequestedInputs<'_>,
    instance: &Instance,
    code_patches: Option<&Predictions>,
) -> InstanceInputs {
    let other = code_patches.and_then(|set| set.by_instance.get(&instance.instance_id));
    let other = other.and_then(|prediction| prediction.model_patch.as_ref());
    let patch = |patch: Option<&String>, variant: Option<&Variant>| {
        let patch = patch.filter(|text| variant.is_some() && extra_inputs::contains_diff(text));
        patch.cloned()
    };
    let tests = instance.test_patch.as_deref().unwrap_or_default();
    InstanceInputs {
        golden_patch: patch(instance.patch.as_ref(), requested_inputs.golden),
        other_patch: patch(other, requested_inputs.other),
        test_files: match requested_inputs.tests {
            Some(_) => ChangedLines::from_patch(tests).added.into_keys().collect(),
            None => Vec::new(),
        },
    }
}

/// Maximum instances that an error names.
const NAMED: usize = 5;

#[cfg(test)]
mod tests;
