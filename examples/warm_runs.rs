//! Runs the golden test files of benchmark instances in new and in forked processes, on the old and the new code, and
//! compares the outcomes.
//!
//! ```text
//! cargo run --release --example warm_runs -- --mirrors DIR --cache DIR [--only WORD]… FILE.jsonl…
//! ```
//!
//! The folder of mirrors contains `OWNER+NAME/repo`. Each line of the output shows an instance and a side, with the
//! seconds of three runs: in a new process, repeated, and after an edit of the first test file. It also shows whether
//! all outcomes are the same.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testwright_agent::session::{Contents, Session, SessionSettings};
use testwright_sandboxes::environment::{BuildSettings, prepare};
use testwright_sandboxes::local::{Local, LocalSettings, jail_main};
use testwright_sandboxes::recipe::{Overrides, available_pythons, find};
use testwright_sandboxes::repository::{Files, OpenOptions, apply, open};
use testwright_sandboxes::{Backend, Limits};
use testwright_tools::outcomes::report::TestReport;
use testwright_tools::program as toolbox;

type Failure = Box<dyn std::error::Error>;

const TEST_TIMEOUT: Duration = Duration::from_secs(900);

struct Arguments {
    mirrors: PathBuf,
    cache: PathBuf,
    only: Vec<String>,
    files: Vec<PathBuf>,
}

fn main() -> std::process::ExitCode {
    if toolbox::is_invoked() {
        return toolbox::main();
    }
    if std::env::args().nth(1).as_deref() == Some("jail") {
        jail_main();
    }
    let mut all = Arguments {
        mirrors: PathBuf::new(),
        cache: PathBuf::new(),
        only: Vec::new(),
        files: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--mirrors" => all.mirrors = words.next().unwrap().into(),
            "--cache" => all.cache = words.next().unwrap().into(),
            "--only" => all.only.push(words.next().unwrap()),
            file => all.files.push(file.into()),
        }
    }
    tokio::runtime::Runtime::new().unwrap().block_on(run(all));
    std::process::ExitCode::SUCCESS
}

async fn run(arguments: Arguments) {
    let settings = LocalSettings {
        cache: arguments.cache.join("local"),
        launcher: vec![std::env::current_exe().unwrap().into(), "jail".into()],
        ..LocalSettings::default()
    };
    let backend: Arc<dyn Backend> = Arc::new(Local::new(settings).unwrap());
    for file in &arguments.files {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let instance: Value = serde_json::from_str(line).unwrap();
            let id = instance["instance_id"].as_str().unwrap();
            let is_match = |word: &String| id.contains(word.as_str());
            if !arguments.only.is_empty() && !arguments.only.iter().any(is_match) {
                continue;
            }
            if let Err(error) = one(backend.clone(), &arguments, &instance).await {
                println!("{id}: FAILED {error}");
            }
        }
    }
}

async fn one(
    backend: Arc<dyn Backend>,
    arguments: &Arguments,
    instance: &Value,
) -> Result<(), Failure> {
    let text = |key: &str| instance[key].as_str().unwrap_or_default().to_owned();
    let mirror = arguments.mirrors.join(text("repo").replace('/', "+"));
    if !mirror.join("repo").is_dir() {
        return Ok(());
    }
    let options = OpenOptions::default();
    let commit = text("base_commit");
    let source = open(
        mirror.join("repo").to_str().unwrap(),
        Some(&commit),
        &arguments.cache,
        &options,
    )?
    .source()?;
    let overrides = Overrides {
        pythons: available_pythons(backend.as_ref()).await?,
        ..Overrides::default()
    };
    let (recipe, origin) = find(&source, &overrides)?;
    let build = BuildSettings::new(&arguments.cache);
    let tree = source.tree()?;
    let tests = apply(&tree, &Files::new(), &text("test_patch"))??.files;
    let fix = apply(&tree, &Files::new(), &text("patch"))??.files;
    let ids: Vec<String> = tests
        .keys()
        .filter(|path| path.ends_with(".py") && path.contains("test"))
        .cloned()
        .collect();
    for (side, code) in [("old", Files::new()), ("new", fix)] {
        let source = source.with_files(&code, &arguments.cache)?;
        let environment =
            prepare(backend.as_ref(), &source, &recipe, &origin, &build, &|_| {}).await?;
        let settings = SessionSettings {
            limits: Limits::default(),
            test_seconds: TEST_TIMEOUT.as_secs(),
            processors: None,
            wanted: None,
            run: "warm-runs".to_owned(),
        };
        let session = Session::start(backend.clone(), &environment, &settings).await?;
        println!(
            "{} {side}: {}",
            text("instance_id"),
            compared(&session, &tests, &ids).await?
        );
        session.close().await?;
    }
    Ok(())
}

async fn compared(session: &Session, tests: &Files, ids: &[String]) -> Result<String, Failure> {
    let mut contents: Contents = tests
        .iter()
        .map(|(path, file)| {
            let content = file.as_ref().map(|file| STANDARD.encode(&file.content));
            (path.clone(), content)
        })
        .collect();
    session.restore(&contents).await?;
    let (cold, first) = timed(session, ids).await?;
    tokio::time::sleep(Duration::from_secs_f64(1.5 * cold + 0.5)).await;
    let (warm, second) = timed(session, ids).await?;
    let (_, third) = timed(session, ids).await?;
    if let Some(Some(content)) = ids.first().and_then(|id| contents.get_mut(id)) {
        let mut bytes = STANDARD.decode(&*content)?;
        // A comment is added, because tests that check their own file would fail on an extra empty line.
        bytes.extend(b"# edited\n");
        *content = STANDARD.encode(bytes);
    }
    session.restore(&contents).await?;
    let (edited, fourth) = timed(session, ids).await?;
    let mut differences = Vec::new();
    for (name, other) in [("repeated", second), ("again", third), ("edited", fourth)] {
        for (id, outcome) in &first {
            if other.get(id) != Some(outcome) {
                differences.push(format!("{name}: {id} {outcome} {:?}", other.get(id)));
            }
        }
        if other.len() != first.len() {
            differences.push(format!("{name}: {} tests", other.len()));
        }
    }
    let verdict = match differences.len() {
        0 => "same".to_owned(),
        n => format!("{n} DIFFER: {}", differences.join("; ")),
    };
    Ok(format!(
        "{} tests, new {cold:.2} s, repeated {warm:.2} s, edited {edited:.2} s, {verdict}",
        first.len()
    ))
}

/// Runs tests. Returns the seconds and the outcome of each test.
async fn timed(
    session: &Session,
    ids: &[String],
) -> Result<(f64, BTreeMap<String, String>), Failure> {
    let begun = Instant::now();
    let answer = session
        .call(
            "run_pytest",
            json!({ "tests": ids, "timeout": TEST_TIMEOUT.as_secs() }),
            TEST_TIMEOUT,
        )
        .await?;
    let seconds = begun.elapsed().as_secs_f64();
    let report: TestReport = serde_json::from_value(answer.data)?;
    let mut outcomes: BTreeMap<String, String> = report
        .tests
        .into_iter()
        .map(|test| {
            let failure = test
                .failure
                .map(|failure| (failure.class, failure.exception));
            (test.id, format!("{:?} {failure:?}", test.outcome))
        })
        .collect();
    for error in report.collection_errors {
        outcomes.insert(
            error.id,
            format!("not collected {}", error.failure.exception),
        );
    }
    Ok((seconds, outcomes))
}
