//! `testwright list`: lists the runs in a local folder.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::accepted_test::quote_path;
use super::output::{self, cut};
use super::run_options::DEFAULT_RESULTS_FOLDER;
use testwright_agent::job::recorded_outcome;
use testwright_agent::trajectory::{Event, Events, RunFolder};
use testwright_config::error::{Error, Result};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder with folders of runs
    #[arg(value_name = "DIR", default_value = DEFAULT_RESULTS_FOLDER)]
    folder: PathBuf,
    /// Print a JSON list
    #[arg(long)]
    json: bool,
}

/// A run in its folder.
#[derive(Debug, PartialEq, Serialize)]
struct LocalRun {
    /// Start time (RFC 3339, UTC).
    started: String,
    repository: String,
    issue: String,
    approach: String,
    model: String,
    /// Summary of the outcome; `None` if the run has not ended.
    outcome: Option<String>,
    folder: PathBuf,
}

/// Maximum characters of a title or an outcome, if stdout is not a terminal.
const MAX_LEN: usize = 200;

pub(super) fn run(args: &Args) -> Result<()> {
    let runs = local_runs(&args.folder)?;
    if args.json {
        return output::print_json(&runs);
    }
    if runs.is_empty() {
        output::print_status("no runs");
    }
    let columns = output::stdout_columns();
    output::print_stdout(
        runs.iter()
            .map(|run| run.render(columns))
            .collect::<String>(),
    );
    Ok(())
}

/// Lists the runs in a folder, newest first. Folders of other kinds are skipped.
fn local_runs(folder: &Path) -> Result<Vec<LocalRun>> {
    let folders = run_folders(folder)?.into_iter();
    let mut runs: Vec<LocalRun> = folders.filter_map(LocalRun::read).collect();
    runs.sort_by(|a, b| {
        b.started
            .cmp(&a.started)
            .then_with(|| a.folder.cmp(&b.folder))
    });
    Ok(runs)
}

/// Lists the folders in a folder of runs, without links. The default folder may be missing.
fn run_folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(_) if folder == Path::new(DEFAULT_RESULTS_FOLDER) && !folder.exists() => {
            return Ok(Vec::new());
        }
        Err(error) => {
            check_exists(folder, "list the runs in")?;
            return Err(
                Error::usage(format!("list the runs in {}", folder.display())).cause(error),
            );
        }
    };
    let folders = entries.flatten();
    let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(folders.map(|entry| entry.path()).collect())
}

/// Checks that a folder exists. `action` is what the command does with it.
pub(super) fn check_exists(folder: &Path, action: &str) -> Result<()> {
    match folder.exists() {
        true => Ok(()),
        false => Err(Error::usage(format!("{action} {}", folder.display()))
            .cause("there is no such folder")
            .hint(
                "pass the folder of a run or of results; `testwright list` prints the folders of runs",
            )),
    }
}

/// Finds the newest run with a file of this name, and prints which one it is. `kind` is a name for such runs.
pub(super) fn newest_run(file: &str, kind: &str) -> Result<PathBuf> {
    let runs = Path::new(DEFAULT_RESULTS_FOLDER);
    RunFolder::check_default_folder(runs)?;
    let folders = run_folders(runs)?.into_iter();
    // Names begin with the time.
    let newest = folders.filter(|folder| folder.join(file).is_file()).max();
    let newest = newest.ok_or_else(|| {
        Error::usage(format!("find the newest {kind}"))
            .cause(format!("there is no {kind} in {DEFAULT_RESULTS_FOLDER}"))
            .hint("pass the folder of a run")
    })?;
    let note = format!("note: using the newest {kind}: {}", newest.display());
    output::print_status_line(output::escape_line(&note));
    Ok(newest)
}

impl LocalRun {
    /// Reads a run; `None` if the folder has no trajectory.
    fn read(folder: PathBuf) -> Option<LocalRun> {
        let Ok(Event::Started(started)) = Events::open(&folder).ok()?.next()? else {
            return None;
        };
        Some(LocalRun {
            started: started.at.clone(),
            repository: started.repository.clone(),
            issue: started.issue.title.clone(),
            approach: started.approach.clone(),
            model: started.model.clone(),
            outcome: recorded_outcome(&folder).map(|outcome| outcome.summary()),
            folder,
        })
    }

    /// Formats the run on three lines, each cut at the width of a terminal.
    fn render(&self, columns: Option<usize>) -> String {
        let outcome = match &self.outcome {
            Some(summary) => summary.lines().next().unwrap_or_default().to_owned(),
            None => format!(
                "not ended; resume it: testwright run --resume {}",
                quote_path(&self.folder)
            ),
        };
        let started = self.started.get(..16).unwrap_or(&self.started);
        let first = format!("{}  {}", started.replace('T', " "), self.folder.display());
        let second = format!("    {}: {}", self.repository, self.issue);
        // The model of a rule-based approach has the name of the approach.
        let system = match self.approach == self.model {
            true => self.approach.clone(),
            false => format!("{} with {}", self.approach, self.model),
        };
        let third = format!("    {system}: {outcome}");
        let fitted =
            |line: &str, max_len: usize| format!("{}\n", cut(line, columns.unwrap_or(max_len)));
        let lines = [(first, usize::MAX), (second, MAX_LEN), (third, MAX_LEN)];
        lines.map(|(line, max_len)| fitted(&line, max_len)).concat()
    }
}

#[cfg(test)]
mod tests;
