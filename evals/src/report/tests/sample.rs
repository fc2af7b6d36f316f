//! Generates realistic sample results for tests, for the benchmark, and for looking at the pages.
//!
//! The data is seeded: the same call gives the same results. Verdicts are computed from generated outcomes.

use testwright_evals::result::{Infrastructure, InstanceResult, Seconds, TestPair};
use testwright_evals::verdict::{Adequacy, Observations, Pair};
use testwright_tools::outcomes::report::{FailureClass, Outcome};

/// Repositories of the public benchmarks, with their frequency per thousand instances.
const REPOSITORIES: [(&str, u64); 12] = [
    ("django/django", 462),
    ("sympy/sympy", 150),
    ("sphinx-doc/sphinx", 88),
    ("matplotlib/matplotlib", 68),
    ("scikit-learn/scikit-learn", 64),
    ("astropy/astropy", 44),
    ("pydata/xarray", 44),
    ("pytest-dev/pytest", 38),
    ("pylint-dev/pylint", 20),
    ("psf/requests", 16),
    ("mwaskom/seaborn", 4),
    ("pallets/flask", 2),
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn chance(&mut self, per_cent: u64) -> bool {
        self.below(100) < per_cent
    }

    fn share(&mut self) -> f64 {
        self.below(10_001) as f64 / 10_000.0
    }
}

/// Generates results of `instances` instances for each prediction set; later sets are better.
pub(crate) fn results(sets: &[&str], instances: usize, seed: u64) -> Vec<InstanceResult> {
    let mut random = Random(seed);
    let mut all = Vec::new();
    for number in 0..instances {
        let mut at = random.below(1000);
        let repository = REPOSITORIES.iter().find(|(_, weight)| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        });
        let repo = repository.map_or("django/django", |(repo, _)| repo);
        let id = format!("{}-{}", repo.replace('/', "__"), 10_000 + number * 7);
        let tokens = [40, 130, 320, 900][random.below(4) as usize] + random.below(90);
        let hard = random.below(100);
        for (at, set) in sets.iter().enumerate() {
            let mut graded = one(&mut random, hard, at as u64);
            graded.instance_id = id.clone();
            graded.prediction = (*set).to_owned();
            graded.key = format!("{at}-{number}");
            graded.repo = repo.to_owned();
            graded.issue_tokens = tokens;
            graded.logs = ["build", "old", "new"]
                .map(|name| (name.to_owned(), format!("logs/{set}/{id}/{name}.txt")))
                .into();
            all.push(graded);
        }
    }
    all
}

fn one(random: &mut Random, hard: u64, set: u64) -> InstanceResult {
    let has_patch = random.chance(97);
    let applied = has_patch && random.chance(94);
    let contributed = "tests/test_topic.py::TestTopic::test_issue".to_owned();
    let mut observations = Observations::default();
    if applied {
        observations.contributed = vec![contributed.clone()];
        let tests = 1 + random.below(4);
        let solved = hard < 14 + 7 * set + random.below(12);
        let mut kind = random.below(90);
        for test in 0..tests {
            let id = format!("{contributed}[{test}-a b]");
            // Most tests of a prediction have the same outcome.
            if random.chance(12) {
                kind = random.below(100);
            }
            let (old, new) = match kind {
                _ if solved => (Outcome::Failed, Outcome::Passed),
                0..25 => (Outcome::Passed, Outcome::Passed),
                25..60 => (Outcome::Failed, Outcome::Failed),
                60..76 => (Outcome::Error, Outcome::Error),
                76..82 => (Outcome::Error, Outcome::Passed),
                82..86 => (Outcome::Skipped, Outcome::Passed),
                86..88 => (Outcome::Xfailed, Outcome::Xfailed),
                88..90 => (Outcome::Absent, Outcome::Absent),
                _ => (Outcome::Failed, Outcome::Passed),
            };
            let class = if random.chance(65) {
                FailureClass::Assertion
            } else {
                FailureClass::Exception
            };
            observations.failures.insert(id.clone(), class);
            observations.patched.insert(id, Pair { old, new });
        }
    }
    let verdict = observations.verdict();
    let coverage = |random: &mut Random, good: bool| match random.below(100) {
        _ if !applied => Some(0.0),
        0..4 => None,
        _ if good => Some(1.0 - random.share().powi(3) * 0.6),
        4..45 => Some(0.0),
        _ => Some(random.share()),
    };
    let coverage_delta = coverage(random, verdict.swt.success);
    let adequacy = coverage(random, verdict.tdd.fail_to_pass);
    let infrastructure = random.chance(2).then(|| Infrastructure {
        stage: "build".to_owned(),
        cause: "pip could not build numpy==1.17: no space left on device".to_owned(),
        log: Some("logs/build/environment.txt".to_owned()),
        shortage: None,
    });
    let (build, old, new) = (
        30.0 * random.share() * random.share(),
        4.0 + 20.0 * random.share().powi(4),
        4.0 + 20.0 * random.share().powi(4),
    );
    InstanceResult {
        has_patch,
        applied,
        notes: if has_patch && !applied {
            vec!["tests/test_topic.py: the patch does not apply at line 214".to_owned()]
        } else {
            Vec::new()
        },
        contributed: observations.contributed.clone(),
        tests: observations
            .patched
            .iter()
            .map(|(id, pair)| TestPair {
                id: id.clone(),
                pair: *pair,
            })
            .collect(),
        old_class: verdict.old_class,
        strict: verdict.strict,
        swt: verdict.swt,
        tdd: verdict
            .tdd
            .with_adequacy(adequacy.map_or(Adequacy::LeftOut, Adequacy::Share)),
        coverage_delta,
        coverage_lines: coverage_delta.map(|_| 10),
        adequacy_lines: Some(12),
        differs: verdict.differs,
        infrastructure,
        seconds: Seconds {
            build,
            old,
            new,
            base: 2.0,
            golden: 0.5,
            repeats: 0.0,
            waiting: 0.0,
            other: 1.0,
            total: build + old + new + 3.5,
        },
        ..InstanceResult::default()
    }
}
