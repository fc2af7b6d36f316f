//! Measures the coverage of a thousand small test files in one batch, with one and two workers, relative to a run of
//! `pytest --cov` for each file.
//!
//! Target: at most a third of that time, with two workers. A sample stands for all `pytest --cov` runs, because the
//! files are alike.
//!
//! Run `cargo bench --bench cases` on an idle machine.

#[path = "../tests/it/product/cases/repository.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod repository;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use repository::case;
use testwright_evals::cases::{Case, CaseEnvironment, CaseOptions, cov};

const CASES: usize = 1000;
/// Number of files to run one by one.
const SAMPLE: usize = 50;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let cases: Vec<Case> = (0..CASES).map(numbered).collect();
    let place = repository::local().await;
    let two = batch(&place, &cases, 2).await?;
    let one = batch(&place, &cases, 1).await?;
    let scale = u32::try_from(CASES / SAMPLE)?;
    let alone = one_by_one(&cases[..SAMPLE])? * scale;
    let share = |time: Duration| time.as_secs_f64() / alone.as_secs_f64();
    println!("{CASES} cases, pytest --cov one by one {alone:>10.1?} (from {SAMPLE})");
    println!(
        "in a batch, one worker            {one:>10.1?} ({:.2} of it)",
        share(one)
    );
    println!(
        "in a batch, two workers           {two:>10.1?} ({:.2} of it; target: at most 0.33)",
        share(two)
    );
    std::process::exit(i32::from(share(two) > 1.0 / 3.0));
}

fn numbered(number: usize) -> Case {
    let source = format!(
        "from shop import total\nfrom shop.stock import Stock\n\n\ndef test_{number}():\n    stock = Stock()\n    \
         stock.add('tea', {number} + 1)\n    assert len(stock) == {number} + 1\n    \
         assert total([({number}, 'food')]) == {number} * 107 / 100\n"
    );
    case(&number.to_string(), &source)
}

async fn batch(
    place: &CaseEnvironment,
    cases: &[Case],
    workers: usize,
) -> Result<Duration, Failure> {
    let options = CaseOptions {
        workers,
        ..CaseOptions::default()
    };
    let begun = Instant::now();
    let coverages = cov(place, cases, &options).await?;
    let took = begun.elapsed();
    for coverage in &coverages {
        if !coverage.verification.passed() || !coverage.files.contains_key("shop/stock.py") {
            return Err(format!("{coverage:?}").into());
        }
    }
    Ok(took)
}

/// Measures the sample with `pytest --cov`, one file at a time.
fn one_by_one(cases: &[Case]) -> Result<Duration, Failure> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("shop");
    repository::write(&root);
    let venv = folder.path().join("venv");
    done(Command::new("uv").args(["venv", "--quiet"]).arg(&venv))?;
    let python = venv.join("bin/python");
    let install = [
        "pip",
        "install",
        "--quiet",
        "--compile-bytecode",
        "pytest",
        "pytest-cov",
        "--python",
    ];
    done(Command::new("uv").args(install).arg(&python))?;
    // The first run compiles the imported modules.
    measure(&root, &python, &cases[0])?;
    let begun = Instant::now();
    for case in cases {
        measure(&root, &python, case)?;
    }
    Ok(begun.elapsed())
}

fn measure(root: &Path, python: &Path, case: &Case) -> Result<(), Failure> {
    std::fs::write(root.join(&case.path), &case.source)?;
    done(
        Command::new(python)
            .args([
                "-m",
                "pytest",
                "-q",
                "--cov=.",
                "--cov-report=json",
                &case.path,
            ])
            .current_dir(root)
            .env("PYTHONPATH", root),
    )
}

fn done(command: &mut Command) -> Result<(), Failure> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {output:?}").into());
    }
    Ok(())
}
