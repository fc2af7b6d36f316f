//! `testwright run`: turns arguments into a [`RunJob`] and prints its result.

use std::path::{Path, PathBuf};

use super::example;
use super::headings::{ISSUE, LIMITS, MODEL};
use super::list::check_exists;
use super::output::escape_line;
use super::repository_args::RepositoryArgs;
use super::repository_args::names::{approaches, sandboxes};
use super::revise;
use super::run_options::{RunOptions, add_recorded, check_results_folder};
use testwright_agent::approaches::extra_inputs::{self, ExtraInputs, hint};
use testwright_agent::approaches::{CommandLine, ModelKind, Variant, model_selection};
use testwright_agent::custom_prompts;
use testwright_agent::issues::{self, Issue};
use testwright_agent::job::{RecordedRun, RunJob};
use testwright_agent::rule_based;
use testwright_config::error::{Error, Kind, Result};
use testwright_config::settings::{Effort, Settings};
use testwright_sandboxes::{local, uv};

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = format!(
    "Approaches (default: testwright, or snippet without a model; options follow a colon, as in \
     otter:planner=off, and `testwright approaches` lists them):\n{}\n\nSandboxes (default: local):\n{}\n\n\
     Examples:\n  testwright run issue.md --repo path/to/repository\n  \
     testwright run https://github.com/OWNER/NAME/issues/7 --max-dollars 0.50",
    approaches().to_table(),
    sandboxes().to_table()
))]
pub(super) struct Args {
    /// Issue: the URL of an issue on GitHub, GitLab, Gitea or Bitbucket, its number in the repository
    /// (`12` or OWNER/NAME#12), a Markdown or text file, or `-` for standard input
    #[arg(required_unless_present_any = ["resume", "example"])]
    issue: Option<String>,
    /// Try the example of the guide: write it to testwright-example, and use its issue and repository
    #[arg(long, help_heading = ISSUE, conflicts_with_all = ["issue", "resume", "repo", "commit"])]
    example: bool,
    #[command(flatten)]
    place: RepositoryArgs,
    #[arg(
        short, long, help_heading = MODEL,
        value_name = "NAME",
        help = format!(
            "Approach: {}, or your own program: command:'python my_agent.py'",
            approaches().to_sentence()
        ),
        value_parser = approaches(),
        hide_possible_values = true
    )]
    approach: Option<String>,
    /// Amount of work for each test (model calls and checks); each level sets some options of the
    /// approach
    #[arg(long, help_heading = MODEL, value_name = "LEVEL", value_enum)]
    effort: Option<Effort>,
    /// Code patch for the issue, right or wrong; for approaches with the option given-patch or
    /// given-files, such as zero-shot:given-patch=on
    #[arg(long, help_heading = ISSUE, value_name = "FILE", conflicts_with = "resume")]
    code_patch: Option<PathBuf>,
    /// Path of a test file to change; submissions that change other test files are refused.
    /// Approaches with the option given-tests need it on, as in zero-shot:given-tests=on; may be
    /// repeated
    #[arg(long, help_heading = ISSUE, value_name = "PATH", conflicts_with = "resume")]
    test_file: Vec<String>,
    /// Description of the wanted test, in your words; the model and the reviewer see it
    #[arg(long, help_heading = ISSUE, value_name = "TEXT|@FILE", conflicts_with = "resume")]
    hint: Option<String>,
    /// Minimum confidence (0 to 1); tests below it are withheld [default: no minimum]
    #[arg(long, help_heading = LIMITS, value_name = "X")]
    min_confidence: Option<f64>,
    /// Read the issue's comments too, except those newer than the fix or --commit
    #[arg(long, help_heading = ISSUE)]
    comments: bool,
    /// Resume the run recorded in this folder, with its issue, commit, approach and model. You can
    /// change its sandbox, limits and --min-confidence
    #[arg(
        long, help_heading = ISSUE, value_name = "DIR",
        conflicts_with_all = ["issue", "comments", "effort", "model", "out"]
    )]
    resume: Option<PathBuf>,
    #[command(flatten)]
    options: RunOptions,
}

pub(super) async fn run(args: &Args) -> Result<u8> {
    let terminal = args.options.terminal();
    let job = match &args.resume {
        Some(folder) => resumed_job(args, folder)?,
        None if args.example => new_job(&args.for_example()?).await?,
        None => new_job(args).await?,
    };
    let revises = job.extra_inputs.revises.as_ref();
    let earlier = revises.map(|earlier| escape_line(&earlier.run).into_owned());
    let out = job.out.clone();
    let code = args.options.execute(job, terminal).await?;
    // Only a resumed run can revise another one here.
    if let Some(earlier) = earlier.filter(|_| !args.options.json) {
        revise::print_changes(&out, &earlier)?;
    }
    Ok(code)
}

impl Args {
    /// Writes the example, and returns these arguments with its issue and repository.
    fn for_example(&self) -> Result<Args> {
        let folder = example::write()?;
        let mut args = self.clone();
        args.issue = Some(folder.join(example::ISSUE).display().to_string());
        args.place.set_repository(&folder.join(example::REPOSITORY));
        Ok(args)
    }
}

/// Creates the job of a new run. Cheap checks come first.
async fn new_job(args: &Args) -> Result<RunJob> {
    let issue_arg = args.issue.as_deref().unwrap_or("-");
    let settings = args.place.settings_for_issue(Some(issue_arg), |flags| {
        flags.set("run.approach", args.approach.clone());
        flags.set("run.effort", args.effort);
        flags.set("run.min-confidence", args.min_confidence);
        args.options.add_to_flags(flags);
    })?;
    // Only a user may name a command: a repository's settings must not start programs.
    let parse = match &args.approach {
        Some(_) => Variant::parse_with_commands,
        None => Variant::parse,
    };
    // A missing key must not hide a misspelled name.
    parse(&settings.run.approach)?.check_program()?;
    let selection = model_selection::select(&settings)?;
    let approach = parse(&selection.approach)?;
    let inputs = read_extra_inputs(args)?;
    inputs.check_options(&approach)?;
    check_results_folder(&settings)?;
    check_python(&settings)?;
    let options = issues::Options::from_settings(&settings, args.comments);
    let issue = args.place.load_issue(issue_arg, &options).await?;
    check_issue(&approach, &issue)?;
    let place = args.place.repository_location(Some(&issue));
    let mut job = args
        .options
        .job(settings, issue, place, approach, selection);
    job.extra_inputs = inputs;
    job.notes.extend(job.issue.notes.clone());
    if let Some(effort) = job.settings.run.effort {
        match job.approach.clone().at_effort(effort) {
            Some(at_effort) => job.approach = at_effort,
            None => job.notes.push(format!(
                "the approach `{}` has no levels of effort; `testwright approaches` shows its options",
                job.approach.approach.name
            )),
        }
    }
    Ok(job)
}

/// Checks that this machine has a Python, and the one that was asked for, unless the sandbox has its own.
fn check_python(settings: &Settings) -> Result<()> {
    if settings.run.sandbox == "docker" || settings.run.image.is_some() {
        return Ok(());
    }
    let found = uv::require_python(&settings.cache).and_then(|()| match &settings.run.python {
        Some(version) => local::find_python(version).map(drop),
        None => Ok(()),
    });
    found.map_err(|error| {
        let clause = error.message.clone();
        Error {
            message: clause,
            is_clause: true,
            cause: None,
            ..Error::from(error)
        }
    })
}

/// Refuses an issue from which an approach without a language model cannot make a test.
fn check_issue(approach: &Variant, issue: &Issue) -> Result<()> {
    let ModelKind::Rules(name) = approach.approach.model else {
        return Ok(());
    };
    if rule_based::has_code(&issue.folded_text_with_hint()) {
        return Ok(());
    }
    let clause = format!("the issue contains no code that `{name}` can run");
    Err(Error::clause(Kind::Nothing, clause)
        .hint("set OPENAI_API_KEY, or OPENAI_BASE_URL for another server, to use a language model"))
}

/// Reads the extra inputs that flags name: a hint, a code patch and test files.
fn read_extra_inputs(args: &Args) -> Result<ExtraInputs> {
    let mut inputs = ExtraInputs {
        hint: args.hint.as_deref().map(hint::read).transpose()?,
        ..ExtraInputs::default()
    };
    if let Some(path) = &args.code_patch {
        inputs.code_patch = Some(extra_inputs::read_patch(path)?);
    }
    for file in &args.test_file {
        let path = extra_inputs::test_path(file)?;
        if !inputs.test_files.contains(&path) {
            inputs.test_files.push(path);
        }
    }
    Ok(inputs)
}

/// Creates a job that resumes the run recorded in this folder.
fn resumed_job(args: &Args, path: &Path) -> Result<RunJob> {
    check_exists(path, "resume")?;
    let recorded = RecordedRun::open(path)?;
    // Secrets are not recorded, so they come from the current settings, as do budgets raised by flags.
    let (repository, commit) = (&recorded.settings.repository, &recorded.started.commit);
    let place = (args.place).or_recorded(Some(repository), commit.as_deref());
    let mut settings = place.settings_for_issue(None, |flags| {
        add_recorded(flags, &recorded.settings);
        flags.set("run.min-confidence", args.min_confidence);
        args.options.add_to_flags(flags);
    })?;
    if settings.additions.is_empty() {
        settings.additions = recorded.settings.additions.clone();
    }
    custom_prompts::check_same(
        recorded.settings.prompts.as_deref(),
        Error::usage(format!("resume {}", path.display())),
    )?;
    let approach = recorded_approach(args, &recorded.started.approach, path)?;
    let mut job = RunJob::resumed(recorded, settings, approach)?;
    job.place = place.repository_location(None);
    job.traffic = args.options.record.clone();
    Ok(job)
}

/// Returns the approach of a recorded run. A record may come from anyone, so the user must repeat the name of a program.
fn recorded_approach(args: &Args, recorded: &str, path: &Path) -> Result<Variant> {
    if !CommandLine::is_command(recorded) {
        return Variant::parse(recorded);
    }
    let repeated = args.approach.as_deref().map(Variant::parse_with_commands);
    match repeated.transpose()? {
        Some(approach) if approach.name() == recorded => {
            approach.check_program().map(|()| approach)
        }
        _ => Err(Error::usage(format!("resume {}", path.display()))
            .cause(format!("it runs a program: {recorded}"))
            .hint("read its command line, and pass the same with --approach")),
    }
}
