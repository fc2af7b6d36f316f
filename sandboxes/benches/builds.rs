//! Measures concurrent builds of environments of two repositories, which must not wait for each other.
//!
//! The target on two cores or more: both together take at most 1.2 times as long as the longer one alone, so two
//! workers are at least 1.6 times as fast as one.
//!
//! Run `cargo bench --workspace --bench builds` on an otherwise idle machine. It needs a C compiler and PyPI.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use testwright_sandboxes::environment::{BuildSettings, prepare};
use testwright_sandboxes::local::{Local, LocalSettings, jail_main};
use testwright_sandboxes::recipe::Recipe;
use testwright_sandboxes::repository::{OpenOptions, Source, open};

type Failure = Box<dyn std::error::Error>;

const ROUNDS: usize = 3;
/// Number of functions in the extension, which keep a compiler busy for some ten seconds.
const FUNCTIONS: usize = 1_500;

const SETUP: &str = "from setuptools import Extension, setup\n\
                     setup(name='thing', ext_modules=[Extension('thing', ['thing.c'])])\n";

fn main() -> Result<(), Failure> {
    if std::env::args().nth(1).as_deref() == Some("jail") {
        jail_main();
    }
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache");
    let backend = Local::new(LocalSettings {
        cache: cache.join("local"),
        launcher: vec![std::env::current_exe()?.into(), "jail".into()],
        ..LocalSettings::default()
    });
    let backend = match backend {
        Ok(backend) => backend,
        Err(error) => {
            println!("skipped: {error}");
            return Ok(());
        }
    };
    let first = repository(folder.path(), "first", &cache)?;
    let second = repository(folder.path(), "second", &cache)?;
    let build = async |source: &Source, python: &str| -> Result<Duration, Failure> {
        let recipe = Recipe {
            python: Some(python.to_owned()),
            requirements: vec!["pytest==8.3.3".to_owned()],
            exclude_newer: Some("2024-10-01".to_owned()),
            ..Recipe::default()
        };
        let settings = BuildSettings {
            rebuild: true,
            ..BuildSettings::new(&cache)
        };
        let begun = Instant::now();
        prepare(&backend, source, &recipe, "a bench", &settings, &|_| {}).await?;
        Ok(begun.elapsed())
    };
    let python = python()?;
    // Downloads the packages once, so that they do not count.
    build(&first, &python).await?;
    let (mut ratios, mut speeds) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let one = build(&first, &python).await?;
        let other = build(&second, &python).await?;
        let begun = Instant::now();
        let (a, b) = tokio::join!(build(&first, &python), build(&second, &python));
        let both = begun.elapsed();
        a?;
        b?;
        println!("alone {one:.1?} and {other:.1?}, both at once {both:.1?}");
        ratios.push(both.as_secs_f64() / one.max(other).as_secs_f64());
        speeds.push((one + other).as_secs_f64() / both.as_secs_f64());
    }
    let (ratio, speed) = (median(&mut ratios), median(&mut speeds));
    println!("both, relative to the longer one alone  {ratio:>6.2} (target: at most 1.2)");
    println!("speed of two workers relative to one    {speed:>6.2} (target: at least 1.6)");
    std::process::exit(i32::from(ratio > 1.2 || speed < 1.6));
}

/// Creates a repository with an extension that takes a while to compile.
fn repository(folder: &Path, name: &str, cache: &Path) -> Result<Source, Failure> {
    let work = folder.join(name);
    std::fs::create_dir(&work)?;
    let mut code = String::from("#include <Python.h>\n");
    for n in 0..FUNCTIONS {
        code.push_str(&format!(
            "int f{n}(int a) {{ int s = {n}; for (int i = 0; i < a; i++) s += a * i % ({n} + 7); return s; }}\n"
        ));
    }
    code.push_str(
        "static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, \"thing\"};\n\
         PyMODINIT_FUNC PyInit_thing(void) { return PyModule_Create(&module); }\n",
    );
    std::fs::write(work.join("thing.c"), code)?;
    std::fs::write(work.join("setup.py"), SETUP)?;
    std::fs::write(
        work.join("test_thing.py"),
        format!("def test_{name}(): import thing\n"),
    )?;
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &[
            "-c",
            "user.name=b",
            "-c",
            "user.email=b@example.org",
            "commit",
            "-qm",
            "x",
        ],
    ] {
        let status = Command::new("git")
            .current_dir(&work)
            .args(arguments)
            .status()?;
        assert!(status.success(), "git {arguments:?}");
    }
    Ok(open(
        &work.to_string_lossy(),
        None,
        cache,
        &OpenOptions::default(),
    )?
    .source()?)
}

fn python() -> Result<String, Failure> {
    let ask = ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"];
    let answer = Command::new("python3").args(ask).output()?;
    Ok(String::from_utf8(answer.stdout)?.trim().to_owned())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
