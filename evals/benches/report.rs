//! Measures the time of reports on 449 results: in seconds, with a limit of 2, and as a ratio to reading the results.
//!
//! `cargo bench -p testwright-evals --bench report`

#[path = "../src/report/tests/sample.rs"]
mod sample;

use std::io::{BufReader, Write as _};
use std::time::{Duration, Instant};

use testwright_evals::report::{self, RunMetadata};
use testwright_evals::result::results_file::{self, ResultsFile};
use testwright_sandboxes::plain_file::LineReader;

const INSTANCES: usize = 449;
const ROUNDS: usize = 9;
const WANTED: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let mut lines = Vec::new();
    for graded in sample::results(&["some"], INSTANCES, 4) {
        serde_json::to_writer(&mut lines, &graded)?;
        lines.push(b'\n');
    }
    std::fs::File::create(folder.path().join(results_file::FILE))?.write_all(&lines)?;
    let (mut reading, mut report_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let file = std::fs::File::open(folder.path().join(results_file::FILE))?;
        let results = ResultsFile::read(&mut LineReader::new(BufReader::new(file)))?;
        reading.push(start.elapsed());
        if results.by_name.len() != INSTANCES {
            return Err("not all results were read".into());
        }
        let start = Instant::now();
        report::write(folder.path(), &RunMetadata::default())?;
        report_times.push(start.elapsed());
    }
    let (reading, report_time) = (median(reading), median(report_times));
    println!(
        "reports on {INSTANCES} results: {:.3} s (limit: {} s); {:.1} times reading them ({:.3} s)",
        report_time.as_secs_f64(),
        WANTED.as_secs(),
        report_time.as_secs_f64() / reading.as_secs_f64(),
        reading.as_secs_f64()
    );
    if report_time > WANTED {
        return Err("the reports exceed the time limit".into());
    }
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
