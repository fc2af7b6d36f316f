//! Checks a setup against a dataset: grades its golden tests, and compares the outcomes with the dataset's lists
//! (FAIL_TO_PASS, PASS_TO_PASS).

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;
use testwright_tools::outcomes::report::Outcome;

use crate::dataset::{Dataset, Instance};
use crate::harness::logged_pairs;
use crate::result::InstanceResult;
use crate::untrusted_text::excerpt;
use crate::verdict::{Pair, Pairs};

/// Results of the golden tests of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetupCheck {
    /// Checked instances, in the order of the dataset.
    pub instances: Vec<InstanceCheck>,
}

/// Result of the golden tests of one instance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstanceCheck {
    /// Id of the instance.
    pub instance_id: String,
    /// Whether the strict verdict is fail-to-pass.
    pub fail_to_pass: bool,
    /// Explanation of the strict verdict.
    pub reason: String,
    /// Infrastructure failure that prevented grading.
    pub infrastructure: Option<String>,
    /// Agreement with the lists of the dataset; `None` without a list.
    pub fail_to_pass_list: Option<ListAgreement>,
    /// Agreement with the list `PASS_TO_PASS`; `None` without a list.
    pub pass_to_pass_list: Option<ListAgreement>,
}

/// Agreement of a list of tests with the observed outcomes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ListAgreement {
    /// Number of tests in the list.
    pub listed: usize,
    /// Number of tests with the listed outcomes.
    pub matching: usize,
    /// Tests with another outcome, and that outcome.
    pub mismatches: Vec<String>,
}

/// Maximum characters of a reason or a test's name in the output.
const SHOWN: usize = 300;

/// Compares the results of the golden tests, in the folder `out`, with the dataset.
pub fn verify(dataset: &Dataset, results: &[InstanceResult], out: &Path) -> SetupCheck {
    let by_id: BTreeMap<&str, &InstanceResult> = results
        .iter()
        .map(|r| (r.instance_id.as_str(), r))
        .collect();
    let check = |instance: &Instance| {
        let result = by_id.get(instance.instance_id.as_str())?;
        Some(check_instance(instance, result, out))
    };
    SetupCheck {
        instances: dataset.instances.iter().filter_map(check).collect(),
    }
}

fn check_instance(instance: &Instance, result: &InstanceResult, out: &Path) -> InstanceCheck {
    let pairs = logged_pairs(result, out);
    let agreement = |list: &Option<Vec<String>>, old: &dyn Fn(Outcome) -> bool| {
        let (list, pairs) = (list.as_ref()?, pairs.as_ref()?);
        Some(agreement(list, pairs, old))
    };
    let trouble = result.infrastructure.as_ref();
    InstanceCheck {
        instance_id: result.instance_id.clone(),
        fail_to_pass: result.strict.fail_to_pass,
        reason: result.strict.reason.clone(),
        infrastructure: trouble.map(ToString::to_string),
        fail_to_pass_list: agreement(&instance.fail_to_pass, &|old| old != Outcome::Passed),
        pass_to_pass_list: agreement(&instance.pass_to_pass, &|old| passes(old)),
    }
}

/// Returns whether an outcome counts as passed; SWE-bench includes xfailed tests.
fn passes(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Passed | Outcome::Xfailed)
}

fn agreement(list: &[String], pairs: &Pairs, old: &dyn Fn(Outcome) -> bool) -> ListAgreement {
    let mut agreement = ListAgreement {
        listed: list.len(),
        ..ListAgreement::default()
    };
    for name in list {
        let mut matches = pairs.iter().filter(|(id, _)| is_named(id, name)).peekable();
        if matches.peek().is_none() {
            agreement.mismatches.push(format!("{name}: not found"));
            continue;
        }
        let other = matches.find(|(_, pair)| !(old(pair.old) && passes(pair.new)));
        match other {
            None => agreement.matching += 1,
            Some((_, Pair { old, new })) => {
                agreement
                    .mismatches
                    .push(format!("{name}: {old:?}, then {new:?}").to_lowercase());
            }
        }
    }
    agreement
}

/// Returns whether a name in a dataset denotes this node id. Names are node ids, function names only (SymPy), or
/// `method (path.Class)` (Django). They were parsed from printed text, so parameters may end at their first blank.
fn is_named(id: &str, name: &str) -> bool {
    if id == name {
        return true;
    }
    if let Some((method, class)) = name.strip_suffix(')').and_then(|n| n.split_once(" (")) {
        let dotted = id
            .replace(".py::", ".")
            .replace("::", ".")
            .replace('/', ".");
        let above = dotted.strip_suffix(&format!("{class}.{method}"));
        return above.is_some_and(|above| above.is_empty() || above.ends_with('.'));
    }
    if name.contains('[') && !name.ends_with(']') {
        return id.starts_with(name);
    }
    !name.contains("::") && id.rsplit("::").next() == Some(name)
}

impl SetupCheck {
    /// Returns whether every golden test is fail-to-pass.
    pub fn all_fail_to_pass(&self) -> bool {
        self.instances.iter().all(|checked| checked.fail_to_pass)
    }
}

impl fmt::Display for SetupCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turned = self.instances.iter().filter(|c| c.fail_to_pass).count();
        writeln!(
            f,
            "golden tests fail-to-pass: {turned} of {}",
            self.instances.len()
        )?;
        for checked in self.instances.iter().filter(|c| !c.fail_to_pass) {
            let why = checked.infrastructure.as_ref().unwrap_or(&checked.reason);
            writeln!(f, "  {}: {}", checked.instance_id, excerpt(why, SHOWN))?;
        }
        for (what, list) in [
            (
                "FAIL_TO_PASS",
                (|c| c.fail_to_pass_list.as_ref()) as fn(&InstanceCheck) -> Option<&ListAgreement>,
            ),
            ("PASS_TO_PASS", |c| c.pass_to_pass_list.as_ref()),
        ] {
            let lists: Vec<(&InstanceCheck, &ListAgreement)> = self
                .instances
                .iter()
                .filter_map(|c| Some((c, list(c)?)))
                .collect();
            if lists.is_empty() {
                continue;
            }
            let sum =
                |of: fn(&ListAgreement) -> usize| lists.iter().map(|(_, a)| of(a)).sum::<usize>();
            writeln!(
                f,
                "{what} of the dataset: {} of {} tests agree",
                sum(|a| a.matching),
                sum(|a| a.listed)
            )?;
            for (checked, list) in &lists {
                for line in list.mismatches.iter().take(5) {
                    writeln!(f, "  {}: {}", checked.instance_id, excerpt(line, SHOWN))?;
                }
                if list.mismatches.len() > 5 {
                    let more = list.mismatches.len() - 5;
                    writeln!(f, "  {}: and {more} more", checked.instance_id)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
