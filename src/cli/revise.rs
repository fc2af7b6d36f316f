//! `testwright revise`: a new run that revises the test of an ended one as the user says.

use std::path::{Path, PathBuf};

use super::output;
use super::repository_args::{RepositoryArgs, patch_of_project};
use super::run_options::{RunOptions, add_recorded, check_results_folder};
use super::show::read_ended;
use testwright_agent::approaches::extra_inputs::{EarlierTest, check_can_revise, hint};
use testwright_agent::approaches::{Variant, model_selection};
use testwright_agent::custom_prompts;
use testwright_agent::job::{REVISION_FILE, RecordedSettings, RunJob};
use testwright_agent::trajectory::Started;
use testwright_config::error::{Error, Result};
use testwright_sandboxes::plain_file::{self, Links};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of a run that ended with a test, accepted or not
    dir: PathBuf,
    /// Changes to make, in your words, or a file with them
    #[arg(value_name = "TEXT|@FILE")]
    hint: String,
    #[command(flatten)]
    place: RepositoryArgs,
    #[command(flatten)]
    options: RunOptions,
}

/// Maximum bytes of the difference between the tests.
const MAX_DIFFERENCE: u64 = 64 << 20;

pub(super) async fn run(args: &Args) -> Result<u8> {
    let terminal = args.options.terminal();
    let job = new_job(args)?;
    let out = job.out.clone();
    let code = args.options.execute(job, terminal).await?;
    if !args.options.json {
        print_changes(&out, &args.dir.display().to_string())?;
    }
    Ok(code)
}

/// Prints how the test of a run differs from the test of the `earlier` run that it revises.
pub(super) fn print_changes(folder: &Path, earlier: &str) -> Result<()> {
    let file = folder.join(REVISION_FILE);
    if !file.exists() {
        return Ok(());
    }
    let read = plain_file::read_text(&file, Links::Refuse, MAX_DIFFERENCE);
    let difference = read.map_err(|error| {
        Error::infrastructure(format!("read {}", file.display())).cause(error.to_string())
    })?;
    output::print_stdout(match difference.is_empty() {
        true => "The test is the same as before.\n".to_owned(),
        false => format!("Changes since {earlier}:\n\n{difference}"),
    });
    Ok(())
}

/// Returns the start of an ended run, and the test that it wrote.
fn read_test(folder: &Path) -> Result<(Box<Started>, String)> {
    let (started, outcome) = read_ended(folder)?;
    let Some(patch) = outcome.written_patch() else {
        return Err(
            Error::usage(format!("revise the test of {}", folder.display()))
                .cause("the run ended without a test")
                .hint("start a new run with --hint"),
        );
    };
    Ok((started, patch.to_owned()))
}

/// Creates the job of a new run with the issue, code, settings and model of the ended one.
fn new_job(args: &Args) -> Result<RunJob> {
    let words = hint::read(&args.hint)?;
    let (started, patch) = read_test(&args.dir)?;
    let approach = Variant::parse(&started.approach)?;
    check_can_revise(&approach)?;
    let recorded: RecordedSettings = serde_json::from_value(started.settings).map_err(|error| {
        Error::usage(format!(
            "read the settings recorded in {}",
            args.dir.display()
        ))
        .cause(error.to_string())
    })?;
    let place = (args.place).or_recorded(Some(&recorded.repository), started.commit.as_deref());
    let mut settings = place.settings(|flags| {
        flags.set("run.approach", Some(started.approach.clone()));
        flags.set("run.model", Some(started.model.clone()));
        add_recorded(flags, &recorded);
        args.options.add_to_flags(flags);
    })?;
    if settings.additions.is_empty() {
        settings.additions = recorded.additions;
    }
    custom_prompts::check_same(
        recorded.prompts.as_deref(),
        Error::usage(format!("revise the test of {}", args.dir.display())),
    )?;
    let selection = model_selection::select(&settings)?;
    check_results_folder(&settings)?;
    let place = place.repository_location(None);
    let dir = std::path::absolute(&args.dir).unwrap_or_else(|_| args.dir.clone());
    let extra_inputs = recorded.extra_inputs.revising(
        EarlierTest {
            run: dir.display().to_string(),
            patch: patch_of_project(&patch, &place.location),
        },
        &words,
    )?;
    let issue = started.issue;
    let job = args
        .options
        .job(settings, issue, place, approach, selection);
    Ok(RunJob {
        extra_inputs,
        ..job
    })
}
