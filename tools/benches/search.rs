//! Measures `search` as a ratio to `rg` with the same pattern on the same folder, both with a warm cache.
//!
//! `cargo bench -p testwright-tools --bench search [-- FOLDER [PATTERN]]`; the default is a generated tree.
//! Prints the ratio of the medians: below 1 means faster than `rg`. The time of `rg` includes starting its process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testwright_tools::config::Config;
use testwright_tools::registry;
use testwright_tools::tool::Context;
use testwright_tools::workspace::Workspace;

const ROUNDS: usize = 31;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let scratch = tempfile::tempdir()?;
    let folder = match arguments
        .first()
        .cloned()
        .or_else(|| std::env::var("BENCH_FOLDER").ok())
    {
        Some(folder) => PathBuf::from(folder),
        None => generate(scratch.path())?,
    };
    let pattern = arguments
        .get(1)
        .map_or(r"def _?value_\d*7\b", String::as_str);
    let base_archive = scratch.path().join("base.tar");
    tar::Builder::new(std::fs::File::create(&base_archive)?).finish()?;
    let mut workspace = Workspace::open(Config {
        workspace: folder.clone(),
        base_archive,
        scratch: scratch.path().join("scratch"),
        private: None,
        python: PathBuf::from("python3"),
        env: Default::default(),
        runner: Default::default(),
        test_seconds: 60,
        processors: None,
        wanted: None,
    })?;
    let search = registry::find("search").ok_or("no search")?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let start = Instant::now();
        let mut context = Context {
            workspace: &mut workspace,
            deadline: start + Duration::from_secs(60),
        };
        let answer = search.call(&mut context, serde_json::json!({ "pattern": pattern }))?;
        ours.push(start.elapsed());
        if round == 0 {
            println!("{}", answer.text.lines().next().unwrap_or_default());
        }
        theirs.push(rg(&folder, pattern)?);
    }
    println!(
        "search / rg = {:.2}",
        median(ours).as_secs_f64() / median(theirs).as_secs_f64()
    );
    Ok(())
}

fn rg(folder: &Path, pattern: &str) -> Result<Duration, std::io::Error> {
    let start = Instant::now();
    let mut child = Command::new("rg")
        .args(["--no-config", "-n", pattern])
        .arg(folder)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut sink = std::io::sink();
    if let Some(mut out) = child.stdout.take() {
        std::io::copy(&mut out, &mut sink)?;
    }
    child.wait()?;
    Ok(start.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Generates 1500 Python files in 50 folders, about the size of SymPy.
fn generate(scratch: &Path) -> Result<PathBuf, std::io::Error> {
    let folder = scratch.join("tree");
    for package in 0..50 {
        let inside = folder.join(format!("package_{package}"));
        std::fs::create_dir_all(&inside)?;
        for module in 0..30 {
            let text: String = (0..100)
                .map(|n| format!("def value_{package}{module}{n}(argument, other=None):\n    \"\"\"Docs.\"\"\"\n    return argument + {n}\n\n\n"))
                .collect();
            std::fs::write(inside.join(format!("module_{module}.py")), text)?;
        }
    }
    Ok(folder)
}
