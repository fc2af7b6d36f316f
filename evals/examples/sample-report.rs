//! Creates a folder of sample results and their reports.
//!
//! `cargo run -p testwright-evals --example sample-report -- FOLDER [INSTANCES]`

#[path = "../src/report/tests/sample.rs"]
mod sample;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use testwright_evals::predictions::{Warning, WarningKind};
use testwright_evals::report::{self, RunMetadata};
use testwright_evals::result::results_file;

const SETS: [&str; 3] = [
    "zero-shot-gpt-4o",
    "otter-like",
    "a <b>long</b> name of a prediction set & more",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = PathBuf::from(arguments.first().ok_or("missing argument: FOLDER")?);
    let instances = arguments.get(1).map_or(Ok(449), |n| n.parse())?;
    std::fs::create_dir_all(&folder)?;
    let mut file = std::fs::File::create(folder.join(results_file::FILE))?;
    for graded in sample::results(&SETS, instances, 4) {
        serde_json::to_writer(&mut file, &graded)?;
        file.write_all(b"\n")?;
    }
    let metadata = RunMetadata {
        dataset: Some("data/tdd-bench.jsonl".to_owned()),
        instances: Some(instances as u64),
        grader: Some("0.1.0".to_owned()),
        started: Some("2025-03-01T10:00:00Z".to_owned()),
        seconds: Some(9_312.0),
        workers: Some(2),
        sandbox: Some("local".to_owned()),
        sets: SETS.map(str::to_owned).into(),
        predictions: vec![Warning {
            model_name_or_path: SETS[0].to_owned(),
            instance_id: "pallets__flask-1".to_owned(),
            kind: WarningKind::Unknown,
        }],
        notes: vec!["using one worker fewer than requested: memory is low".to_owned()],
        ..RunMetadata::default()
    };
    metadata.write(&folder)?;
    let start = Instant::now();
    let report = report::write(&folder, &metadata)?;
    println!(
        "{} prediction sets on {instances} instances: reports in {:.2} s",
        report.summary.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
