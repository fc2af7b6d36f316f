//! Measures the overhead of grading.
//!
//! - One warm instance with one prediction, relative to the time of its two test runs alone. Target: at most 1.3 times
//!   that time plus 3 s.
//! - Thirty predictions with two workers, relative to one worker. Target: at least 1.7 times the speed.
//! - The same predictions with one worker, relative to their time without repeats. Target: at most 1.35 times.
//!
//! Run `cargo bench --bench eval` on an idle machine.

#[path = "../tests/it/product/eval/repository.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod repository;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use repository::{GOOD, Repository, TESTS, lines};
use serde_json::{Value, json};

const INSTANCES: usize = 10;
const SETS: usize = 3;
const ROUNDS: usize = 3;
/// Existing tests of the file, with as much work as those of a medium-sized project.
const EXISTING_TESTS: &str = "\n\nimport json\nimport pytest\n\n\n@pytest.mark.parametrize('n', range(400))\ndef test_work(n):\n    assert json.loads(json.dumps([{'n': i, 'text': str(i)} for i in range(500)]))[n]['n'] == n\n";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let scratch = tempfile::tempdir()?;
    let bench = Bench::new(scratch.path())?;
    let good = bench.one_warm()? & bench.workers()?;
    std::process::exit(i32::from(!good));
}

struct Bench {
    folder: PathBuf,
    repository: Repository,
}

impl Bench {
    fn new(folder: &Path) -> Result<Bench, Failure> {
        let repository = Repository::new(folder.join("repositories/example+sums"), None);
        repository.write(
            "tests/test_calc.py",
            format!("{TESTS}{EXISTING_TESTS}").as_bytes(),
        );
        repository.git(&["commit", "-qam", "Work"]);
        let issue = "add(1, -2) gives 0, and I expected -1.";
        let mut instances: Vec<Value> = (0..INSTANCES)
            .map(|n| repository.instance(&format!("instance-{n}"), issue))
            .collect();
        let golden = bench_patch(&repository, "golden");
        for instance in &mut instances {
            instance["test_patch"] = json!(golden);
        }
        lines(&folder.join("dataset.jsonl"), &instances);
        let bench = Bench {
            folder: folder.to_owned(),
            repository,
        };
        // The first run builds the environment and caches what does not depend on a prediction.
        bench.grade("begin", 1, 1)?;
        Ok(bench)
    }

    /// Measures the grading of `sets` new predictions for each instance.
    fn grade(&self, name: &str, sets: usize, workers: usize) -> Result<Duration, Failure> {
        self.grade_of(name, sets, workers, INSTANCES)
    }

    fn grade_of(
        &self,
        name: &str,
        sets: usize,
        workers: usize,
        instances: usize,
    ) -> Result<Duration, Failure> {
        let mut predictions = Vec::new();
        for instance in 0..instances {
            for set in 0..sets {
                let patch = bench_patch(&self.repository, &format!("{name}_{instance}_{set}"));
                predictions.push(json!({
                    "instance_id": format!("instance-{instance}"),
                    "model_name_or_path": format!("set {set}"),
                    "model_patch": patch,
                }));
            }
        }
        let file = self.folder.join(format!("{name}.jsonl"));
        lines(&file, &predictions);
        let begun = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_testwright"))
            .args(["eval", "--workers", &workers.to_string(), "--dataset"])
            .arg(self.folder.join("dataset.jsonl"))
            .arg("--predictions")
            .arg(&file)
            .arg("--instances")
            .arg(if instances == 1 { "instance-0" } else { "*" })
            .arg("--repositories")
            .arg(self.folder.join("repositories/{owner}+{name}"))
            .arg("--out")
            .arg(self.folder.join(name))
            .env("TESTWRIGHT_CACHE", self.folder.join("cache"))
            .output()?;
        let took = begun.elapsed();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let results = std::fs::read_to_string(self.folder.join(name).join("results.jsonl"))?;
        let turned = results.matches("\"strict\":{\"fail_to_pass\":true").count();
        if turned != instances * sets {
            return Err(format!("{turned} of {} turned: {results}", instances * sets).into());
        }
        Ok(took)
    }

    fn one_warm(&self) -> Result<bool, Failure> {
        let mut times = Vec::new();
        for round in 0..ROUNDS {
            times.push(self.grade_of(&format!("warm{round}"), 1, 1, 1)?);
        }
        let mut bare = Vec::new();
        for _ in 0..ROUNDS {
            bare.push(self.measure_bare_tests()?);
        }
        let (time, bare) = (median(&mut times), median(&mut bare));
        let target = bare.mul_f64(1.3) + Duration::from_secs(3);
        println!("bare time of the two runs         {bare:>10.2?}");
        println!("one warm instance, one prediction {time:>10.2?} (target: at most {target:.2?})");
        Ok(time <= target)
    }

    /// Measures the tests of the file on the old and the new code, without testwright's plugin.
    fn measure_bare_tests(&self) -> Result<Duration, Failure> {
        let venv = self.folder.join("venv");
        if !venv.exists() {
            done(
                Command::new("uv")
                    .args(["venv", "--quiet", "--python", "3.11"])
                    .arg(&venv),
            )?;
            done(
                Command::new("uv")
                    .args([
                        "pip",
                        "install",
                        "--quiet",
                        "--compile-bytecode",
                        "pytest==8.3.3",
                        "--python",
                    ])
                    .arg(venv.join("bin/python")),
            )?;
        }
        let begun = Instant::now();
        for _ in 0..2 {
            done(
                Command::new(venv.join("bin/python"))
                    .args(["-m", "pytest", "-q", "tests/test_calc.py"])
                    .current_dir(&self.repository.folder),
            )?;
        }
        Ok(begun.elapsed())
    }

    fn workers(&self) -> Result<bool, Failure> {
        let one = self.grade("one", SETS, 1)?;
        let two = self.grade("two", SETS, 2)?;
        let ratio = one.as_secs_f64() / two.as_secs_f64();
        println!(
            "{} predictions, one worker       {one:>10.2?}",
            INSTANCES * SETS
        );
        println!(
            "{} predictions, two workers      {two:>10.2?}",
            INSTANCES * SETS
        );
        println!("speed                             {ratio:>10.2} (target: at least 1.7)");
        let cost = self.cost_of_repeats("one")?;
        println!("time with repeats                 {cost:>10.2} (target: at most 1.35)");
        Ok(ratio >= 1.7 && cost <= 1.35)
    }

    /// Returns the time of gradings as a multiple of their time without repeats and placebos.
    fn cost_of_repeats(&self, name: &str) -> Result<f64, Failure> {
        let results = std::fs::read_to_string(self.folder.join(name).join("results.jsonl"))?;
        let (mut total, mut repeats) = (0.0, 0.0);
        for line in results.lines() {
            let result: Value = serde_json::from_str(line)?;
            let seconds = |part: &str| result["seconds"][part].as_f64().unwrap_or_default();
            total += seconds("total");
            repeats += seconds("repeats");
        }
        Ok(total / (total - repeats))
    }
}

/// Returns a patch with a correct test of this name.
fn bench_patch(repository: &Repository, name: &str) -> String {
    let test = GOOD.replace("test_negative", &format!("test_{name}"));
    repository.patch(|r| {
        r.write(
            "tests/test_calc.py",
            format!("{TESTS}{EXISTING_TESTS}{test}").as_bytes(),
        )
    })
}

fn done(command: &mut Command) -> Result<(), Failure> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {output:?}").into());
    }
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
