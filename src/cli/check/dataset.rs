//! `testwright check --dataset`: checks the predictions for a whole dataset.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testwright_evals::{harness, predictions};

use super::model_args::ModelArgs;
use crate::cli::headings::{DATA, ENVIRONMENT, LIMITS, OUTPUT};
use crate::cli::instance_args::InstanceArgs;
use crate::cli::output::{self, ProgressLine, escape_line};
use crate::cli::output_folder;
use testwright_agent::agent::NotesToLog;
use testwright_comparisons::check::{
    CHECKS_FILE, CheckListener, CheckRecord, KEPT_FILE, check_predictions, count_patches,
    write_kept,
};
use testwright_comparisons::grading::{GradingOptions, GradingRun, records};
use testwright_comparisons::record_file::RecordFile;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_server::artifacts::shared_environments;
use testwright_tools::tools::count;

#[derive(Debug, clap::Args)]
pub(super) struct DatasetArgs {
    /// Check the predictions for this dataset: JSON lines, a JSON list or Parquet, in SWE-bench's
    /// format. Its reference patches (golden patches) are neither needed nor read
    #[arg(
        long, help_heading = DATA,
        value_name = "FILE",
        requires_all = ["predictions", "out"],
        conflicts_with_all = ["issue", "tests", "repo", "commit", "requirement", "extra", "env"]
    )]
    pub dataset: Option<PathBuf>,
    /// Predictions for the dataset, as for `testwright eval`; may be repeated
    #[arg(long, help_heading = DATA, value_name = "FILE", requires = "dataset")]
    predictions: Vec<PathBuf>,
    #[command(flatten)]
    instances: InstanceArgs,
    /// URL or path template of git repositories; {owner} and {name} are substituted
    #[arg(long, help_heading = ENVIRONMENT, value_name = "TEMPLATE", default_value = harness::FORGE)]
    repositories: String,
    /// Maximum concurrent instances; fewer if memory or disk space is short [default: half the
    /// CPUs]
    #[arg(long, help_heading = LIMITS, value_name = "N", requires = "dataset")]
    workers: Option<usize>,
    /// Folder for the results (checks.jsonl). Run again with the same folder to resume
    #[arg(short, long, help_heading = OUTPUT, value_name = "DIR", requires = "dataset")]
    out: Option<PathBuf>,
}

impl DatasetArgs {
    pub(super) async fn check(
        &self,
        path: &Path,
        settings: Settings,
        model: &ModelArgs,
        minimum: Option<f64>,
        json: bool,
    ) -> Result<u8> {
        let Some(out) = &self.out else {
            return Err(Error::usage("check the predictions").cause("--out is required"));
        };
        output_folder::check_is_folder(out)?;
        let (whole, dataset) = self.instances.read(path)?;
        let files: Vec<&Path> = self.predictions.iter().map(PathBuf::as_path).collect();
        let (sets, warnings) = predictions::read(&files, &whole, &dataset).map_err(records)?;
        for line in predictions::summary(&sets, &warnings) {
            output::print_status(escape_line(&line));
        }
        let model = model.open(&settings, Arc::new(NotesToLog)).await?;
        let run = GradingRun {
            options: GradingOptions {
                repositories: self.repositories.clone(),
                test_seconds: settings.limits.test_seconds,
                workers: self.workers,
            },
            whole,
            dataset,
            out: out.clone(),
            shared: shared_environments(&settings)?,
            settings,
        };
        let progress = ProgressLine::new(Some(count_patches(&run, &sets)), json);
        let checked = check_predictions(&run, model.as_ref(), &sets, &progress).await;
        progress.clear();
        let checked = checked?;
        let failed = checked.iter().filter(|check| check.evidence.is_none());
        let failed = failed.count();
        if let Some(minimum) = minimum {
            write_kept(out, &sets, &checked, minimum)?;
        }
        if json {
            output::print_json(&checked)?;
        } else {
            output::print_stdout(summary(&checked));
            let path = out.join(CHECKS_FILE);
            output::print_status(escape_line(&format!("results: {}", path.display())));
            if minimum.is_some() {
                let path = out.join(KEPT_FILE);
                output::print_status(escape_line(&format!("kept tests: {}", path.display())));
            }
        }
        Ok(if failed > 0 { 3 } else { 0 })
    }
}

/// Reads the results of a folder that `testwright check --dataset` wrote; `None` if it has none.
pub(in crate::cli) fn read(folder: &Path) -> Result<Option<String>> {
    let path = folder.join(CHECKS_FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let checked: Vec<CheckRecord> = RecordFile::read(&path)?.into_values().collect();
    let lines = checked.iter().map(|record| format!("{}\n", line(record)));
    let lines: String = lines.collect();
    Ok(Some(lines + &summary(&checked)))
}

fn summary(checked: &[CheckRecord]) -> String {
    let evidence = checked.iter().filter_map(|check| check.evidence.as_ref());
    let accepted = evidence
        .clone()
        .filter(|evidence| evidence.accepted)
        .count();
    let not_accepted = evidence.count() - accepted;
    format!(
        "{}: {accepted} accepted, {not_accepted} not accepted, {} could not be checked\n",
        count(checked.len(), "prediction"),
        checked.len() - accepted - not_accepted
    )
}

/// Formats a result in one line.
fn line(record: &CheckRecord) -> String {
    let result = match (&record.evidence, &record.infrastructure) {
        (Some(evidence), _) if evidence.accepted => {
            let verdict = evidence.verdict(None);
            format!("{verdict}, confidence {:.2}", evidence.probability)
        }
        (Some(evidence), _) => evidence.verdict(None).to_owned(),
        (None, Some(failure)) => format!("not checked: {failure}"),
        (None, None) => "not checked".to_owned(),
    };
    let line = format!("{} {}: {result}", record.instance_id, record.prediction);
    escape_line(&line).into_owned()
}

impl CheckListener for ProgressLine {
    fn note(&self, text: &str) {
        self.print_note(text);
    }

    fn checked(&self, record: &CheckRecord, fresh: bool) {
        self.advance(fresh);
        if fresh {
            self.print_result(&line(record));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_prediction_is_not_plural() {
        let record = CheckRecord {
            instance_id: "a__b-1".to_owned(),
            prediction: "mine".to_owned(),
            sha256: String::new(),
            evidence: None,
            infrastructure: None,
        };
        assert_eq!(
            summary(&[record]),
            "1 prediction: 0 accepted, 0 not accepted, 1 could not be checked\n"
        );
    }
}
