//! Builds the environments of benchmark instances and runs their golden tests in them.
//!
//! ```text
//! cargo run -p testwright-sandboxes --example environments -- --mirrors DIR --cache DIR [--only WORD]…
//!     [--docker] [--detect] [--no-tests] [--new-code] [--python X.Y] [--run SCRIPT] FILE.jsonl…
//! ```
//!
//! The folder of mirrors contains `OWNER+NAME/repo`. The output has one line for each instance: the seconds, the
//! contributed tests that fail on the old code, and those of them that pass with the code patch. `--run` runs a shell
//! script instead. `--new-code` prints the packages that only an environment of the patched code has installed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use testwright_sandboxes::docker::{Docker, DockerSettings};
use testwright_sandboxes::environment::{BuildEvent, BuildSettings, Environment, prepare};
use testwright_sandboxes::local::{Local, LocalSettings, jail_main};
use testwright_sandboxes::recipe::{Overrides, available_pythons, find};
use testwright_sandboxes::repository::{Files, OpenOptions, apply as apply_patch, open};
use testwright_sandboxes::sandbox::output;
use testwright_sandboxes::{Backend, Command, Limits, Sandbox};

#[derive(Default)]
struct Arguments {
    mirrors: PathBuf,
    cache: PathBuf,
    only: Vec<String>,
    detect: bool,
    docker: bool,
    no_tests: bool,
    new_code: bool,
    python: Option<String>,
    script: Option<String>,
    files: Vec<PathBuf>,
}

fn arguments() -> Arguments {
    let mut all = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--mirrors" => all.mirrors = words.next().unwrap().into(),
            "--cache" => all.cache = words.next().unwrap().into(),
            "--only" => all.only.push(words.next().unwrap()),
            "--python" => all.python = words.next(),
            "--run" => all.script = words.next(),
            "--docker" => all.docker = true,
            "--detect" => all.detect = true,
            "--no-tests" => all.no_tests = true,
            "--new-code" => all.new_code = true,
            file => all.files.push(file.into()),
        }
    }
    all
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("jail") {
        jail_main();
    }
    tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(run(arguments()));
}

async fn run(arguments: Arguments) {
    let backend: Box<dyn Backend> = if arguments.docker {
        Box::new(Docker::connect(DockerSettings::default()).await.unwrap())
    } else {
        let settings = LocalSettings {
            cache: arguments.cache.join("local"),
            launcher: vec![std::env::current_exe().unwrap().into(), "jail".into()],
            ..LocalSettings::default()
        };
        Box::new(Local::new(settings).unwrap())
    };
    let backend = backend.as_ref();
    let pythons = available_pythons(backend).await.unwrap();
    let mut seen = BTreeSet::new();
    for file in &arguments.files {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let instance: serde_json::Value = serde_json::from_str(line).unwrap();
            let id = instance["instance_id"].as_str().unwrap().to_owned();
            let is_selected =
                arguments.only.is_empty() || arguments.only.iter().any(|o| id.contains(o.as_str()));
            if is_selected && seen.insert(id.clone()) {
                let report = match one(backend, &arguments, &pythons, &instance).await {
                    Ok(Some(report)) => report,
                    Ok(None) => continue,
                    Err(error) => format!("FAILED {error}"),
                };
                println!("{id}: {report}");
            }
        }
    }
}

type Failure = Box<dyn std::error::Error>;

async fn one(
    backend: &dyn Backend,
    arguments: &Arguments,
    pythons: &[String],
    instance: &serde_json::Value,
) -> Result<Option<String>, Failure> {
    let text = |key: &str| instance[key].as_str().unwrap_or_default().to_owned();
    let mirror = arguments
        .mirrors
        .join(text("repo").replace('/', "+"))
        .join("repo");
    if !mirror.is_dir() {
        return Ok(None);
    }
    let begun = Instant::now();
    let commit = text("base_commit");
    let options = OpenOptions::default();
    let source = open(
        mirror.to_str().unwrap(),
        Some(&commit),
        &arguments.cache,
        &options,
    )?
    .source()?;
    let read = begun.elapsed();
    let overrides = Overrides {
        no_built_in: arguments.detect,
        pythons: pythons.to_vec(),
        python: arguments.python.clone(),
        ..Overrides::default()
    };
    let (recipe, origin) = find(&source, &overrides)?;
    let settings = BuildSettings::new(&arguments.cache);
    let quiet = |event: BuildEvent| {
        if let BuildEvent::Finished { step, seconds } = event
            && seconds > 5.0
        {
            eprintln!("    {step}: {seconds:.1} s");
        }
    };
    let environment = prepare(backend, &source, &recipe, &origin, &settings, &quiet).await?;
    let mut report = format!(
        "{origin}, Python {}, source {:.2} s, build {:.1} s{}",
        recipe.python.as_deref().unwrap_or("?"),
        read.as_secs_f64(),
        environment.seconds,
        if environment.cached { " (cached)" } else { "" },
    );
    if arguments.new_code {
        let applied = apply_patch(&source.tree()?, &Files::new(), &text("patch"))??;
        let new = source.with_files(&applied.files, &arguments.cache)?;
        let new = prepare(backend, &new, &recipe, &origin, &settings, &quiet).await?;
        let more = new
            .packages
            .iter()
            .filter(|p| !environment.packages.contains(*p));
        report.push_str(&format!(
            ", with the patch (notes {:?}) also: {:?}",
            applied.notes,
            more.collect::<Vec<_>>()
        ));
    } else if let Some(script) = &arguments.script {
        let sandbox = backend
            .start(&environment.tool_spec(Limits::default(), "golden"))
            .await?;
        environment.prepare_tests(sandbox.as_ref(), &[]).await?;
        apply(sandbox.as_ref(), &text("test_patch")).await?;
        let printed = output(
            sandbox.as_ref(),
            &Command::shell(script.clone()),
            Duration::from_secs(900),
        )
        .await?;
        sandbox.stop().await?;
        let printed = [printed.stdout, printed.stderr].concat();
        report.push_str(&format!("\n{}", String::from_utf8_lossy(&printed)));
    } else if !arguments.no_tests {
        let list = |key: &str| -> BTreeSet<String> {
            // The value is a list, or a list encoded as a string.
            let value = &instance[key];
            let parsed = value.as_str().and_then(|t| serde_json::from_str(t).ok());
            serde_json::from_value(parsed.unwrap_or_else(|| value.clone())).unwrap_or_default()
        };
        let published = (list("FAIL_TO_PASS"), list("PASS_TO_PASS"));
        report.push_str(
            &golden(
                backend,
                &environment,
                &text("test_patch"),
                &text("patch"),
                &published,
            )
            .await?,
        );
    }
    for note in &environment.notes {
        report.push_str(&format!("\n    note: {note}"));
    }
    Ok(Some(report))
}

/// Runs the files of the golden test on the old code, then with the code patch.
async fn golden(
    backend: &dyn Backend,
    environment: &Environment,
    test_patch: &str,
    code_patch: &str,
    (fail_to_pass, pass_to_pass): &(BTreeSet<String>, BTreeSet<String>),
) -> Result<String, Failure> {
    let begun = Instant::now();
    let sandbox = backend
        .start(&environment.tool_spec(Limits::default(), "golden"))
        .await?;
    environment.prepare_tests(sandbox.as_ref(), &[]).await?;
    let started = begun.elapsed();
    let files: Vec<String> = test_patch
        .lines()
        .filter_map(|l| l.strip_prefix("+++ b/"))
        .filter(|p| p.ends_with(".py") && p.contains("test"))
        .map(str::to_owned)
        .collect();
    apply(sandbox.as_ref(), test_patch).await?;
    let old = outcomes(sandbox.as_ref(), environment, &files).await?;
    apply(sandbox.as_ref(), code_patch).await?;
    let new = outcomes(sandbox.as_ref(), environment, &files).await?;
    sandbox.stop().await?;
    let count = |outcomes: &BTreeMap<String, String>, outcome: &str| {
        outcomes.values().filter(|o| *o == outcome).count()
    };
    let turned = old
        .iter()
        .filter(|(id, o)| *o != "PASSED" && new.get(*id).is_some_and(|o| o == "PASSED"));
    let fresh = new
        .iter()
        .filter(|(id, o)| *o == "PASSED" && !old.contains_key(*id));
    let green = |ids: &BTreeSet<String>| {
        ids.iter()
            .filter(|id| new.get(*id).is_some_and(|o| o == "PASSED"))
            .count()
    };
    let mut published = String::new();
    if !fail_to_pass.is_empty() {
        let red = fail_to_pass
            .iter()
            .filter(|id| old.get(*id).is_none_or(|o| o != "PASSED"))
            .count();
        published = format!(
            "; published: of {} F2P {red} red before, {} green after; of {} P2P {} green after",
            fail_to_pass.len(),
            green(fail_to_pass),
            pass_to_pass.len(),
            green(pass_to_pass),
        );
    }
    Ok(format!(
        ", start {:.2} s; old: {} passed {} failed {} errors; fail to pass: {} (absent before: {}){published}",
        started.as_secs_f64(),
        count(&old, "PASSED"),
        count(&old, "FAILED"),
        count(&old, "ERROR"),
        turned.count(),
        fresh.count(),
    ))
}

async fn apply(sandbox: &dyn Sandbox, patch: &str) -> Result<(), Failure> {
    let path = Path::new("/tmp/x.patch");
    sandbox.upload(path, patch.as_bytes(), 0o644).await?;
    let result = output(
        sandbox,
        &Command::new(["git", "apply", "/tmp/x.patch"]),
        Duration::from_secs(60),
    )
    .await?;
    match result.code {
        0 => Ok(()),
        _ => Err(String::from_utf8_lossy(&result.stderr).into_owned().into()),
    }
}

async fn outcomes(
    sandbox: &dyn Sandbox,
    environment: &Environment,
    files: &[String],
) -> Result<BTreeMap<String, String>, Failure> {
    let python = environment.python.to_string_lossy().into_owned();
    let mut argv: Vec<String> = vec![python, "-m".into(), "pytest".into()];
    argv.extend(environment.recipe.runner.options.clone());
    argv.extend(
        [
            "-rA",
            "--tb=no",
            "-q",
            "--color=no",
            "-p",
            "no:cacheprovider",
        ]
        .map(str::to_owned),
    );
    argv.extend(files.iter().cloned());
    let result = output(sandbox, &Command::new(argv), Duration::from_secs(900)).await?;
    let text = String::from_utf8_lossy(&result.stdout).into_owned();
    let mut outcomes = BTreeMap::new();
    for line in text.lines() {
        for word in ["PASSED", "FAILED", "ERROR"] {
            if let Some(id) = line.strip_prefix(&format!("{word} ")) {
                let id = id.split(" - ").next().unwrap_or(id).to_owned();
                outcomes.insert(id, word.to_owned());
            }
        }
    }
    if outcomes.is_empty() {
        eprintln!("{text}\n{}", String::from_utf8_lossy(&result.stderr));
    }
    Ok(outcomes)
}
