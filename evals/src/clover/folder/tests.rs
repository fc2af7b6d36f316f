#![allow(clippy::unwrap_used)]
use super::*;
use crate::clover::VERSION;
use crate::clover::manifest::BuildLimits;
use crate::clover::problem::Question;
use crate::clover::problem::tests::{passing_test, problem};
use crate::clover::rejections::Counts;

fn built(commit: &str) -> RepositoryProblems {
    let text = passing_test();
    let blocks = Question::Blocks { blocks: Vec::new() };
    let problem = Problem {
        commit: commit.to_owned(),
        ..problem("test_a.py", "test_x", text, blocks)
    };
    RepositoryProblems {
        facts: RepositoryFacts {
            name: problem.repository.clone(),
            commit: commit.to_owned(),
            date: None,
            python: "3.11".to_owned(),
            packages: Vec::new(),
            test_files: 1,
            tests: Counts::default(),
            tasks: BTreeMap::new(),
        },
        sources: vec![SourceFile {
            repository: problem.repository.clone(),
            commit: commit.to_owned(),
            path: "a.py".to_owned(),
            sha256: sha256("x"),
            text: "x".to_owned(),
        }],
        problems: vec![problem],
    }
}

fn empty_benchmark() -> Benchmark {
    Benchmark::new(Manifest {
        version: VERSION.to_owned(),
        seed: 0,
        tokenizer: "characters".to_owned(),
        limits: BuildLimits {
            tasks: Vec::new(),
            max_tests: 1,
            test_seconds: 1,
        },
        repositories: Vec::new(),
    })
}

#[test]
fn manifest_is_written_after_the_locations() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(LOCATIONS)).unwrap();
    assert!(empty_benchmark().write(folder.path()).is_err());
    assert!(!folder.path().join(MANIFEST).exists());
}

#[test]
fn repository_built_after_a_crash_replaces_its_problems() {
    let mut benchmark = empty_benchmark();
    benchmark.add(built("b"), "here".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let unfinished = benchmark.manifest.clone();
    benchmark.add(built("a"), "here".to_owned());
    benchmark.write(folder.path()).unwrap();
    write_json(
        &folder.path().join(MANIFEST),
        folder::pretty_json(&unfinished),
    )
    .unwrap();
    let mut resumed = Benchmark::read(folder.path()).unwrap();
    assert!(!resumed.has("own/package", "a"));
    resumed.add(built("a"), "here".to_owned());
    assert_eq!(resumed, benchmark);
}
