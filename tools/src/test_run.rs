//! Makes one test run for a grader. `toolbox test` reads a [`Request`] as JSON from stdin, and writes an [`TestRunResult`]
//! with the outcomes and the executed lines as JSON to stdout. It keeps nothing between two runs.

pub mod side_by_side;

use std::path::{Component, Path};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::coverage::{Coverage, Measure};
use crate::error::{Result, ToolError, refusal};
use crate::outcomes::file_of;
use crate::outcomes::report::TestReport;
use crate::process;
use crate::runners::{self, Options};
use crate::workspace::Checkout;

/// Input of `toolbox test`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Checkout of the code under test, and how to run its tests.
    pub config: Config,
    /// Node ids, files or folders, relative to the workspace.
    pub ids: Vec<String>,
    /// Time limit in seconds; tests that ended before it are reported.
    pub seconds: u64,
    /// Other options of the run, except for its deadline.
    pub options: Options,
    /// Lines to measure; `None` for no coverage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Measure>,
}

/// Output of `toolbox test`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestRunResult {
    /// Outcomes of the tests.
    pub report: TestReport,
    /// `None` if coverage was not requested.
    pub coverage: Option<Coverage>,
}

/// Maximum seconds of a run; larger values are reduced to this.
const MAX_TEST_SECONDS: u64 = 7 * 24 * 3600;

/// Makes the run. The base archive is not needed, because the files may have changed since the base commit.
///
/// # Errors
///
/// Returns `Refused` for an invalid request, and `Broken` if no test could be run. A test failure is not an error.
pub fn perform(request: Request) -> Result<TestRunResult> {
    let begun = Instant::now();
    if let Some(name) = request.first_outside_path() {
        return Err(refusal!("`{name}` is not a path relative to the workspace"));
    }
    let seconds = request.seconds.min(MAX_TEST_SECONDS);
    let options = Options {
        deadline: begun + Duration::from_secs(seconds),
        ..request.options
    };
    make_folders(&request.config)?;
    process::adopt_orphans()?;
    let checkout = Checkout::open(request.config)?;
    let measure = request.coverage.as_ref();
    let ran = runners::run_in(&checkout, &request.ids, &options, measure, None)?;
    Ok(TestRunResult {
        report: ran.report,
        coverage: ran.coverage,
    })
}

/// Creates the folders of a configuration.
///
/// # Errors
///
/// Fails if a folder cannot be created.
pub fn make_folders(config: &Config) -> Result<()> {
    let cannot = |folder: &Path, e: &dyn std::fmt::Display| {
        let folder = folder.display();
        ToolError::Broken(format!("could not create the folder {folder}: {e}"))
    };
    process::make_home(&config.scratch).map_err(|e| cannot(&config.scratch, &e))?;
    let private = config.private();
    std::fs::create_dir_all(&private).map_err(|e| cannot(&private, &e))
}

impl Request {
    /// Returns the first path that leaves the workspace, if any.
    fn first_outside_path(&self) -> Option<&str> {
        let of_ids = self.ids.iter().map(|id| file_of(id));
        let of_coverage = self.coverage.iter().flat_map(|measure| &measure.files);
        let mut paths = of_ids.chain(of_coverage.map(String::as_str));
        paths.find(|path| {
            let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
            path.is_empty() || !Path::new(path).components().all(inside)
        })
    }
}
