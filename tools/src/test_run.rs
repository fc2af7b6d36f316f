//! One run of tests for a grader: a request in, what happened and which lines ran out. `toolbox test` reads a
//! [`Request`] as JSON from stdin and writes an [`Answer`] as JSON to stdout; nothing is kept between two runs.

pub mod side_by_side;

use std::path::{Component, Path};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::coverage::{Coverage, Measure};
use crate::error::ToolError;
use crate::outcomes::file_of;
use crate::outcomes::report::Report;
use crate::process;
use crate::runners::{self, Options};
use crate::workspace::Checkout;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub config: Config,
    /// Node ids, files or folders, relative to the workspace.
    pub ids: Vec<String>,
    /// When the run has to be over; what ran until then is reported.
    pub seconds: u64,
    /// `PYTHONHASHSEED`.
    #[serde(default)]
    pub hash_seed: u32,
    /// The last test first.
    #[serde(default)]
    pub reversed: bool,
    /// Each test in a process of its own, forked when all are collected.
    #[serde(default)]
    pub alone: bool,
    /// Tests of which [`crate::outcomes::report::TestResult::executed`] is filled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
    /// Tests in whose messages of assertions values are shown whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whole_values: Vec<String>,
    /// Runs at the same time in the same folders have different numbers.
    #[serde(default)]
    pub lane: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Measure>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub report: Report,
    /// `None` where none was asked for.
    pub coverage: Option<Coverage>,
}

/// Seconds; more are the same as these.
const MAX_TEST_SECONDS: u64 = 7 * 24 * 3600;

/// Makes the run. `Refused` is a request that asks for something impossible, `Broken` that nothing could be run;
/// whatever the tests did is an answer. The base archive is not needed: files may have changed since.
pub fn perform(request: Request) -> Result<Answer, ToolError> {
    let begun = Instant::now();
    if let Some(name) = request.outside() {
        return Err(ToolError::Refused(format!(
            "`{name}` is not a path relative to the workspace"
        )));
    }
    let seconds = request.seconds.min(MAX_TEST_SECONDS);
    let mut options = Options::until(begun + Duration::from_secs(seconds));
    options.hash_seed = request.hash_seed;
    options.reversed = request.reversed;
    options.alone = request.alone;
    options.trace.clone_from(&request.trace);
    options.whole_values.clone_from(&request.whole_values);
    options.lane = request.lane;
    make_folders(&request.config)?;
    process::adopt_orphans()?;
    let checkout = Checkout::open(request.config)?;
    let measure = request.coverage.as_ref();
    let (report, coverage) = runners::run_measured(&checkout, &request.ids, &options, measure)?;
    Ok(Answer { report, coverage })
}

/// Makes the folders of a configuration.
pub fn make_folders(config: &Config) -> Result<(), ToolError> {
    let cannot = |folder: &Path, e: &dyn std::fmt::Display| {
        let folder = folder.display();
        ToolError::Broken(format!("the folder {folder} cannot be made: {e}"))
    };
    process::make_home(&config.scratch).map_err(|e| cannot(&config.scratch, &e))?;
    let private = config.private();
    std::fs::create_dir_all(&private).map_err(|e| cannot(&private, &e))
}

impl Request {
    /// A path that does not stay inside the workspace.
    fn outside(&self) -> Option<&str> {
        let of_ids = self.ids.iter().map(|id| file_of(id));
        let of_coverage = self.coverage.iter().flat_map(|asked| &asked.files);
        let mut paths = of_ids.chain(of_coverage.map(String::as_str));
        paths.find(|path| {
            let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
            path.is_empty() || !Path::new(path).components().all(inside)
        })
    }
}
