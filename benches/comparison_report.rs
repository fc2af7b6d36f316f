//! Measures the report of a comparison of 449 instances × 13 systems × 3 samples.
//!
//! - Time, also relative to reading its input. Target: under 5 s.
//! - Memory. Target: under 300 MB.
//! - Size of the page. Target: under 8 MB.
//!
//! Run `cargo bench --bench comparison_report`.

#[path = "../evals/src/report/tests/sample.rs"]
#[allow(dead_code)]
mod sample;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use testwright_comparisons::compare::report::{self, Data};
use testwright_comparisons::compare::{
    GRADING, Plan, PlanLimits, PlannedInstance, RunCost, RunRecord, RunStatus, StageCost, System,
};

const INSTANCES: usize = 449;
const SYSTEMS: usize = 13;
const SAMPLES: u32 = 3;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    write(folder.path())?;
    let mut reading = Vec::new();
    let mut report_times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        drop(Data::read(folder.path())?);
        reading.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        report::write(folder.path())?;
        report_times.push(start.elapsed().as_secs_f64());
    }
    let (reading, report_time) = (median(reading), median(report_times));
    let megabytes = peak_kilobytes()? as f64 / 1024.0;
    let page = std::fs::metadata(folder.path().join("report.html"))?.len() as f64 / 1e6;
    println!(
        "{INSTANCES} instances × {SYSTEMS} systems × {SAMPLES} samples: {report_time:.2} s (target: under 5), {:.1} times reading \
         ({reading:.2} s); at most {megabytes:.0} MiB (target: under 300); page {page:.1} MB (target: under 8)",
        report_time / reading
    );
    if let Some(destination) = std::env::args().skip_while(|arg| arg != "--keep").nth(1) {
        std::fs::copy(folder.path().join("report.html"), destination)?;
    }
    let good = report_time < 5.0 && megabytes < 300.0 && page < 8.0;
    std::process::exit(i32::from(!good));
}

/// Writes a folder like that of a comparison.
fn write(folder: &Path) -> Result<(), Failure> {
    let systems: Vec<System> = (0..SYSTEMS)
        .map(|n| System {
            approach: format!("approach-{n}"),
            model: "some-model".to_owned(),
            oracle_samples: (n == 12).then_some(SAMPLES),
            extra_inputs: Vec::new(),
            predictions: None,
        })
        .collect();
    let names: Vec<String> = systems
        .iter()
        .flat_map(|system| (1..=SAMPLES).map(|sample| system.prediction_set(sample)))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let results = sample::results(&names, INSTANCES, 4);
    let mut instances: BTreeMap<&str, PlannedInstance> = BTreeMap::new();
    std::fs::create_dir_all(folder.join(GRADING))?;
    let mut file = std::io::BufWriter::new(std::fs::File::create(
        folder.join(GRADING).join("results.jsonl"),
    )?);
    for result in &results {
        serde_json::to_writer(&mut file, result)?;
        file.write_all(b"\n")?;
        instances.insert(
            &result.instance_id,
            PlannedInstance {
                id: result.instance_id.clone(),
                repository: result.repo.clone(),
                issue_tokens: result.issue_tokens,
                extra_inputs: None,
            },
        );
    }
    file.flush()?;
    let plan = Plan {
        format: 1,
        dataset: "dataset.jsonl".to_owned(),
        systems,
        samples: SAMPLES,
        limits: PlanLimits {
            steps: 60,
            tokens: None,
            minutes: 30.0,
            min_confidence: None,
        },
        code_patches: None,
        prompts: None,
        instances: instances.into_values().collect(),
    };
    plan.write(folder)?;
    let mut file = std::io::BufWriter::new(std::fs::File::create(folder.join("runs.jsonl"))?);
    for cell in plan.cells(plan.instances.iter().map(|i| i.id.as_str())) {
        serde_json::to_writer(&mut file, &run(&cell))?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    Ok(())
}

fn run(cell: &testwright_comparisons::compare::RunSpec) -> RunRecord {
    let stage = StageCost {
        model_calls: 2,
        tokens: 12_345,
        model_seconds: 4.2,
        tool_seconds: 1.7,
    };
    RunRecord {
        instance_id: cell.instance.clone(),
        approach: cell.system.approach.clone(),
        model: cell.system.model.clone(),
        sample: cell.sample,
        status: RunStatus::Submitted,
        outcome: "accepted: tests/test_it.py::test_it fails (assertion)".to_owned(),
        patch: Some("+    assert f(1) == 2\n".repeat(60)),
        confidence: Some(0.25 * f64::from(cell.sample)),
        cost: RunCost {
            model_calls: 8,
            prompt_tokens: 40_000,
            completion_tokens: 2_000,
            dollars: Some(0.014),
            ..RunCost::default()
        },
        stages: ["localize", "plan", "write", "run"]
            .map(|name| (name.to_owned(), stage))
            .into(),
    }
}

fn peak_kilobytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmHWM")?.parse()?)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
