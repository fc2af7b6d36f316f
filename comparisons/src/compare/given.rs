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
use testwright_tools::tools::count;

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
type Requested<'v> = (
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
    let golden = "a golden code patch";
    let other = "a patch of --code-patches";
    let tests = "golden tests in Python files";
    let requests: [Requested<'_>; 3] = [
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
                .cause(missing_input_message(
                    &without,
                    dataset.instances.len(),
                    of_what,
                ))
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

fn missing_input_message(without: &[&str], all: usize, what: &str) -> String {
    let examples = &without[..without.len().min(NAMED)];
    let more = if without.len() > NAMED { ", …" } else { "" };
    format!(
        "{} of {} {} no {}: {}{more}",
        without.len(),
        count(all, "instance"),
        if without.len() == 1 { "has" } else { "have" },
        what.trim_start_matches("a "),
        examples.join(", ")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::PathBuf;

    use serde_json::json;
    use testwright_evals::predictions::Prediction;

    use super::*;

    const PATCH: &str = "--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1 @@\n-a\n+b\n";

    fn dataset(test_patch: &str) -> Dataset {
        let instance = |number: u32, patch: &str| {
            let value = json!({
                "instance_id": format!("example__a-{number}"), "repo": "example/a", "base_commit": "abcdef",
                "problem_statement": "It fails.", "patch": patch, "test_patch": test_patch,
            });
            serde_json::from_value::<Instance>(value).unwrap()
        };
        Dataset {
            path: PathBuf::from("dataset.jsonl"),
            sha256: None,
            instances: vec![instance(1, PATCH), instance(2, "")],
        }
    }

    fn variants(names: &[&str]) -> Vec<Variant> {
        names.iter().map(|n| Variant::parse(n).unwrap()).collect()
    }

    fn patches() -> Predictions {
        let prediction = |number: u32| Prediction {
            instance_id: format!("example__a-{number}"),
            model_name_or_path: "other".to_owned(),
            model_patch: Some(PATCH.replace("+b", "+c")),
        };
        let all = [prediction(1), prediction(2)];
        Predictions {
            model: "other".to_owned(),
            by_instance: all.map(|p| (p.instance_id.clone(), p)).into(),
            sha256: Vec::new(),
        }
    }

    #[test]
    fn systems_get_the_inputs_they_request() {
        let tests = "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1 +1,2 @@\n a\n+++ b/no/file.py\n\
                     --- /dev/null\n+++ b/tests/test_new.py\n@@ -0,0 +1 @@\n+b\n\
                     --- a/tests/test_gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n\
                     --- a/tests/data.json\n+++ b/tests/data.json\n@@ -1 +1 @@\n-1\n+2\n";
        let mut dataset = dataset(tests);
        dataset.instances.pop();
        let names = [
            "zero-shot-plus",
            "zero-shot-plus:given-tests=on",
            "zero-shot-plus:given-files=on",
            "libro:given-patch=on:other-patch=on",
        ];
        let variants = variants(&names);
        let patches = patches();
        let inputs = inputs(&variants, &dataset, Some(&patches)).unwrap();
        let of = |at: usize| inputs["example__a-1"].given(variants[at].options());
        assert!(of(0).is_empty());
        assert_eq!(of(1).test_files, ["tests/test_a.py", "tests/test_new.py"]);
        assert_eq!(of(1).code_patch, None);
        assert_eq!(of(2).code_patch.as_deref(), Some(PATCH));
        assert!(of(3).code_patch.unwrap().contains("+c"));
        let planned = inputs["example__a-1"].planned().unwrap();
        assert_ne!(planned.golden_patch, planned.other_patch);
        assert_eq!(planned.golden_patch.unwrap().len(), 64);
    }

    #[test]
    fn missing_inputs_are_refused_by_name() {
        let error = |names: &[&str], patches: Option<&Predictions>| {
            let error = inputs(&variants(names), &dataset(""), patches).unwrap_err();
            error.render()
        };
        insta::assert_snapshot!(error(&["zero-shot:given-patch=on"], None), @r"
        error: failed to give `zero-shot:given-patch=on` a code patch
          cause: 1 of 2 instances has no golden code patch: example__a-2
          hint: select only instances that have it with --instances
        ");
        insta::assert_snapshot!(error(&["zero-shot:given-tests=on"], None), @r"
        error: failed to give `zero-shot:given-tests=on` test files
          cause: 2 of 2 instances have no golden tests in Python files: example__a-1, example__a-2
          hint: select only instances that have it with --instances
        ");
        insta::assert_snapshot!(error(&["zero-shot:given-patch=on:other-patch=on"], None), @r"
        error: failed to give `zero-shot:given-patch=on:other-patch=on` a code patch
          cause: `other-patch` needs a file of code patches
          hint: add --code-patches FILE, with instance_id and model_patch in each line
        ");
        insta::assert_snapshot!(error(&["zero-shot"], Some(&patches())), @r"
        error: failed to use --code-patches
          cause: no approach uses a patch from the file
          hint: add an approach such as zero-shot-plus:given-patch=on:other-patch=on
        ");
        let mut some = patches();
        some.by_instance.remove("example__a-1");
        let cause = error(&["zero-shot:given-files=on:other-patch=on"], Some(&some));
        assert!(
            cause.contains("1 of 2 instances has no patch of --code-patches: example__a-1"),
            "{cause}"
        );
        let plain = inputs(&variants(&["zero-shot"]), &dataset(""), None).unwrap();
        assert_eq!(plain["example__a-1"].planned(), None);
    }
}
