//! Reruns the failing contributed tests, each time under other conditions. The hash seeds and the name of the user are
//! random, so that a test cannot know them.
//!
//! If enough processors are available, the reruns start at the same time as the run of the changed files, before the
//! failing tests are known. The runs may then disturb each other by the files they write or the time they take. Unless
//! all runs agree, their results are discarded, and all are repeated one after the other.

use std::io::Read;
use std::time::Instant;

use crate::config::RunnerKind;
use crate::outcomes;
use crate::outcomes::report::{FailureClass, TestReport, TestResult};
use crate::runners::{self, Options};
use crate::test_run::side_by_side::{self, Job};
use crate::tool::{Context, Result};
use crate::tools::submission::{ContributedTest, Rerun};

use super::failures::failing_ids;

/// Maximum number of tests that run in separate processes; further ones run together.
const MAX_ALONE: usize = 8;

/// Order, and divisor of the time left for each rerun.
const CONDITIONS: [(Order, u32); 3] = [(Order::Given, 4), (Order::Reversed, 3), (Order::Alone, 2)];

/// Smallest hash seed of a rerun. The smaller ones are easy to guess, and 0 is that of the first run.
const MIN_HASH_SEED: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Given,
    Reversed,
    /// Each test in its own process.
    Alone,
}

impl Order {
    fn name(self) -> &'static str {
        match self {
            Order::Given => "given",
            Order::Reversed => "reversed",
            Order::Alone => "alone",
        }
    }

    /// Returns the options of the rerun's processes.
    fn options(self, deadline: Instant) -> Result<Options> {
        let mut options = Options::with_deadline(deadline);
        options.hash_seed = random_hash_seed()?;
        options.user = match self {
            Order::Given => Some(random_user()?),
            Order::Reversed | Order::Alone => None,
        };
        options.reversed = self == Order::Reversed;
        Ok(options)
    }

    /// Returns the tests of each process.
    fn groups(self, ids: &[String]) -> Vec<&[String]> {
        if self != Order::Alone {
            return vec![ids];
        }
        let (single, together) = ids.split_at(ids.len().min(MAX_ALONE));
        let rest = Some(together).filter(|rest| !rest.is_empty());
        single.chunks(1).chain(rest).collect()
    }
}

/// Makes the run of the changed files and the reruns concurrently; `None` if they must run one after the other.
///
/// # Errors
///
/// Fails if the runs cannot be made, or the call is interrupted.
pub(super) fn with_others(
    context: &Context<'_>,
    changed: &[String],
    ids: &[String],
    contributed: &[ContributedTest],
) -> Result<Option<(TestReport, Vec<Rerun>)>> {
    if side_by_side::max_parallel(context.workspace.config()) < 2 {
        return Ok(None);
    }
    let job = |ids: &[String], options: Options| Job {
        ids: ids.to_vec(),
        options,
    };
    let mut options = Options::with_deadline(context.share_of_time(3));
    options.trace = ids.to_vec();
    options.whole_values = ids.to_vec();
    let mut jobs = vec![job(changed, options)];
    // Forked processes do not repeat the imports.
    let forks = context.workspace.config().runner.kind == RunnerKind::Pytest && ids.len() > 1;
    let mut of_conditions = Vec::new();
    for (order, _) in CONDITIONS {
        let mut options = order.options(context.share_of_time(3))?;
        options.alone = forks && order == Order::Alone;
        options.whole_values = ids.to_vec();
        let groups = match forks {
            true => vec![ids],
            false => order.groups(ids),
        };
        of_conditions.push(groups.len());
        jobs.extend(groups.into_iter().map(|group| job(group, options.clone())));
    }
    let reports = side_by_side::run(context.workspace.checkout(), &jobs)?;
    let Some(reports) = reports.into_iter().collect::<Option<Vec<TestReport>>>() else {
        return Ok(None);
    };
    let mut reports = reports.into_iter();
    let Some(old) = reports.next().filter(|old| !old.timed_out) else {
        return Ok(None);
    };
    let mut reruns = Vec::new();
    for ((order, _), count) in CONDITIONS.into_iter().zip(of_conditions) {
        let report = outcomes::merge_reports(reports.by_ref().take(count));
        if !agree(&old, &report, contributed) {
            return Ok(None);
        }
        reruns.push(rerun(order, report));
    }
    let failing = failing_ids(&old, contributed);
    if failing.is_empty() {
        reruns.clear();
    }
    for rerun in &mut reruns {
        let is_failing = |id: &String| failing.iter().any(|failing| outcomes::covers(failing, id));
        rerun.report.tests.retain(|test| is_failing(&test.id));
        rerun.report.not_found.retain(is_failing);
    }
    Ok(Some((old, reruns)))
}

/// Returns whether the contributed tests have the same outcomes in both runs.
fn agree(old: &TestReport, rerun: &TestReport, contributed: &[ContributedTest]) -> bool {
    let sorted = |report| {
        let mut ids = failing_ids(report, contributed);
        ids.sort_unstable();
        ids
    };
    let same = |test: &TestResult| {
        let mut others = rerun.tests.iter();
        others
            .find(|other| other.id == test.id)
            .is_none_or(|other| other.outcome == test.outcome && kind(other) == kind(test))
    };
    let mut of_old = old.tests.iter();
    !rerun.timed_out && sorted(old) == sorted(rerun) && of_old.all(same)
}

fn kind(test: &TestResult) -> Option<(FailureClass, &str)> {
    let failure = test.failure.as_ref()?;
    Some((failure.class, &failure.exception))
}

/// Makes the reruns one after the other.
///
/// # Errors
///
/// Fails if a run cannot be made.
pub(super) fn one_by_one(
    context: &Context<'_>,
    old: &TestReport,
    contributed: &[ContributedTest],
) -> Result<Vec<Rerun>> {
    let ids = failing_ids(old, contributed);
    let mut reruns = Vec::new();
    if ids.is_empty() {
        return Ok(reruns);
    }
    for (order, parts) in CONDITIONS {
        let mut options = order.options(context.share_of_time(parts))?;
        options.whole_values.clone_from(&ids);
        let groups = order.groups(&ids).into_iter();
        let reports = groups.map(|ids| runners::run(context.workspace.checkout(), ids, &options));
        let reports = reports.collect::<Result<Vec<_>>>()?;
        reruns.push(rerun(order, outcomes::merge_reports(reports)));
    }
    Ok(reruns)
}

fn rerun(order: Order, report: TestReport) -> Rerun {
    Rerun {
        order: order.name().to_owned(),
        report,
    }
}

/// Returns a value of `PYTHONHASHSEED` from the operating system's random numbers.
///
/// # Errors
///
/// Fails if the operating system has none.
fn random_hash_seed() -> Result<u32> {
    let [a, b, c, d, ..] = random_bytes()?;
    let number = u32::from_ne_bytes([a, b, c, d]);
    Ok(MIN_HASH_SEED + number % (u32::MAX - MIN_HASH_SEED + 1))
}

/// Returns a name of a user, from the operating system's random numbers.
///
/// # Errors
///
/// Fails if the operating system has none.
fn random_user() -> Result<String> {
    let letters = random_bytes()?.map(|byte| char::from(b'a' + byte % 26));
    Ok(letters.into_iter().collect())
}

/// Returns random bytes from the operating system.
///
/// # Errors
///
/// Fails if the operating system has none.
pub(super) fn random_bytes() -> Result<[u8; 8]> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn hash_seeds_are_large_and_differ() {
        let seeds: Vec<u32> = (0..8).map(|_| random_hash_seed().unwrap()).collect();
        assert!(seeds.iter().all(|seed| *seed >= MIN_HASH_SEED));
        assert!(seeds.iter().any(|seed| *seed != seeds[0]), "{seeds:?}");
    }
}
