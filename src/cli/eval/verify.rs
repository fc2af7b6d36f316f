//! `testwright eval verify`: grades the golden tests as predictions. If one is not fail-to-pass, this setup
//! cannot grade its instance correctly.

use testwright_evals::folder::Versioned;
use testwright_evals::predictions::{Prediction, Predictions};
use testwright_evals::{Dataset, Instance, InstanceResult, verify};

use super::{GradeArgs, WorkersArgs};
use crate::cli::output::{self, escape_line};
use crate::cli::output_folder;
use crate::cli::repository_args::load_settings;
use testwright_comparisons::grading::{RemoteGrading, records};
use testwright_config::error::Result;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    grade: GradeArgs,
    #[command(flatten)]
    workers: WorkersArgs,
}

/// Model name of the predictions that hold the golden tests.
pub(super) const GOLDEN_MODEL_NAME: &str = "golden";

/// Grades the golden tests. The exit code is 0 if all are fail-to-pass, 1 if one is not, and 3 if something
/// could not be graded.
pub(crate) async fn run(args: &Args) -> Result<u8> {
    let settings = load_settings(&args.grade.sandbox.sources(|_| {}))?;
    let grading = args.grade.shard_run(settings)?;
    output_folder::check_has_no_comparison(&grading.out)?;
    grading.dataset.require_test_patches().map_err(|error| {
        records(error).hint("select other instances with --instances, or add the field test_patch")
    })?;
    let golden = golden_tests(&grading.dataset);
    let workers = args.workers.remote(&grading).await?;
    let remote: Option<&dyn RemoteGrading> = workers.as_ref().map(|remote| remote as _);
    let graded = args
        .grade
        .grade(&grading, &[golden], Vec::new(), remote)
        .await;
    let (report, results) = super::cancel_if_interrupted(graded, workers.as_ref()).await?;
    let verified = verify::verify(&grading.dataset, &results, &grading.out);
    if args.grade.json {
        output::print_json(&Versioned::new(&verified))?;
    } else {
        output::print_stdout(super::report::table(&report, output::stdout_columns()));
        output::print_stdout(verified.to_string());
        output::print_status(escape_line(&format!("results: {}", grading.out.display())));
    }
    let blocked = |result: &InstanceResult| result.infrastructure.is_some();
    Ok(if results.iter().any(blocked) {
        3
    } else {
        u8::from(!verified.all_fail_to_pass())
    })
}

/// Returns the golden tests of a dataset as predictions.
pub(crate) fn golden_tests(dataset: &Dataset) -> Predictions {
    let instances = dataset.instances.iter();
    Predictions {
        model: GOLDEN_MODEL_NAME.to_owned(),
        by_instance: instances
            .map(|instance| (instance.instance_id.clone(), golden(instance)))
            .collect(),
        sha256: Vec::new(),
    }
}

fn golden(instance: &Instance) -> Prediction {
    Prediction {
        instance_id: instance.instance_id.clone(),
        model_name_or_path: GOLDEN_MODEL_NAME.to_owned(),
        model_patch: instance
            .test_patch
            .clone()
            .filter(|patch| !patch.trim().is_empty()),
    }
}
