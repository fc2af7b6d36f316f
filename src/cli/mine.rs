//! `testwright mine`: creates a dataset of recent issues from the history of a repository.

mod work_folder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use testwright_evals::folder::write_file;
use testwright_evals::mine::{
    self, Candidate, IssueText, IssueTexts, Mined, MissingText, Selection, Table,
};
use testwright_evals::{Instance, InstanceResult};
use testwright_sandboxes::repository::{self, Repository};

use super::accepted_test::{quote, quote_path};
use super::eval::GradeArgs;
use super::eval::verify::golden_tests;
use super::headings::{ISSUE, LIMITS, OUTPUT};
use super::instance_args::InstanceArgs;
use super::output::{self, ProgressLine, escape_line};
use super::repository_args::{SandboxArgs, absolute_location, load_settings};
use testwright_agent::issues::{self, IssueSource};
use testwright_agent::setup::open_options;
use testwright_config::error::{Error, Kind, Result};
use testwright_config::settings::Settings;
use testwright_tools::tools::count;
use work_folder::{MiningPlan, WorkFolder};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Repository to read: a folder or a URL
    #[arg(long, help_heading = ISSUE, value_name = "PATH|URL")]
    repo: String,
    /// Name of the repository [default: taken from its URL, or from the URL of its remote]
    #[arg(long, help_heading = ISSUE, value_name = "OWNER/NAME")]
    name: Option<String>,
    /// Use fixes committed on or after this day (UTC): YYYY-MM-DD, or a time such as
    /// 2026-04-01T12:00:00Z
    #[arg(long, help_heading = ISSUE, value_name = "DATE", value_parser = parse_since)]
    since: Timestamp,
    /// Use fixes committed on or before this day [default: no limit]
    #[arg(long, help_heading = ISSUE, value_name = "DATE", value_parser = parse_until)]
    until: Option<Timestamp>,
    /// Folder with issues: N.md, or N.json in the format of GitHub's API [default: GitHub's API]
    #[arg(long, help_heading = ISSUE, value_name = "FOLDER")]
    issues: Option<PathBuf>,
    /// Maximum number of lines of code that a fix adds and removes, taken together and without
    /// tests [default: no limit]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    max_changed_lines: Option<usize>,
    /// Maximum concurrent verifications; fewer if memory or disk space is short [default: half the
    /// CPUs]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    workers: Option<usize>,
    /// Maximum seconds for each test run
    #[arg(long, help_heading = LIMITS, value_name = "SECONDS", default_value_t = 900)]
    test_seconds: u64,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// Dataset to write, as JSON lines. Also writes a table of rejected changes (.md) and a work
    /// folder for resuming (.work)
    #[arg(short, long, help_heading = OUTPUT, value_name = "FILE")]
    out: PathBuf,
    /// Print only the table of changes, as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

/// Parses a time, or the start of a day.
fn parse_since(text: &str) -> std::result::Result<Timestamp, String> {
    parse_day(text, 0)
}

/// Parses a time, or the end of a day: `--until` includes the whole day.
fn parse_until(text: &str) -> std::result::Result<Timestamp, String> {
    parse_day(text, 1)
}

fn parse_day(text: &str, days: i32) -> std::result::Result<Timestamp, String> {
    // A time also parses as a date, which would drop the time of day.
    let date = text.parse::<Date>().ok();
    let Some(date) = date.filter(|date| date.to_string() == text) else {
        return text.parse().map_err(|_| {
            "expected a day (YYYY-MM-DD) or a time (2026-04-01T12:00:00Z)".to_owned()
        });
    };
    let day = date.checked_add(days.days()).map_err(|e| e.to_string())?;
    let start = day.to_zoned(TimeZone::UTC).map_err(|e| e.to_string())?;
    Ok(start.timestamp())
}

/// Creates the dataset. The exit code is 0 if at least one instance is verified, otherwise 1.
pub(super) async fn run(args: &Args) -> Result<u8> {
    let settings = load_settings(&args.sandbox.sources(|_| {}))?;
    if let Some(folder) = &args.issues
        && !folder.is_dir()
    {
        return Err(Error::usage("read issues")
            .cause(format!("{} is not a folder", folder.display()))
            .hint("pass a folder with files N.md or N.json"));
    }
    if args.until.is_some_and(|until| until <= args.since) {
        return Err(Error::usage("read the history")
            .cause("--until is before --since")
            .hint("pass a day on or after --since with --until"));
    }
    let work = WorkFolder::beside(&args.out)?;
    let (plan, mut mined) = read_history(args, &settings, &work).await?;
    let source = match &args.issues {
        Some(folder) => IssueSource::Folder(folder.clone()),
        None => IssueSource::GitHub {
            repo: plan.repo.clone(),
            options: issues::Options::from_settings(&settings, false),
        },
    };
    let texts = read_texts(&mined.candidates, &source, &work, args.json).await?;
    let instances = mined.with_texts(&texts);
    let results = verify(args, &instances, &work).await?;
    let (rows, table) = mine::select_verified(mined, instances, &results, &work.grading());
    write(args, &plan, &work, &rows, &table)?;
    if args.json {
        output::print_json(&table)?;
    } else {
        output::print_stdout(table.to_string());
        if args.issues.is_none() {
            print_edit_note(&texts);
        }
        if rows.is_empty() {
            output::print_stderr("no dataset was written: no instance was verified");
        } else {
            output::print_status(escape_line(&format!("instances: {}", args.out.display())));
        }
        let page = args.out.with_extension("md");
        output::print_status(escape_line(&format!("table: {}", page.display())));
        let repository = absolute_location(&args.repo);
        if !rows.is_empty() && !repository.starts_with("https://github.com/") {
            // Other commands clone from GitHub unless they are told otherwise.
            let (dataset, repository) = (quote_path(&args.out), quote(&repository));
            output::print_status_line(escape_line(&format!(
                "grade predictions: testwright eval --dataset {dataset} --repositories {repository} \
                 --predictions FILE --out DIR"
            )));
        }
    }
    Ok(u8::from(rows.is_empty()))
}

/// Reads the candidates from the history, up to the newest commit at the first start of this command.
async fn read_history(
    args: &Args,
    settings: &Settings,
    work: &WorkFolder,
) -> Result<(MiningPlan, Mined)> {
    let earlier = work.plan()?;
    let head = earlier.as_ref().map(|plan| plan.head.clone());
    let (location, cache) = (absolute_location(&args.repo), settings.cache.clone());
    let (options, name) = (open_options(settings), args.name.clone());
    let live = ProgressLine::new(None, args.json);
    live.set_status("reading the history");
    let opened = tokio::task::spawn_blocking(move || {
        repository::open(&location, head.as_deref(), &cache, &options)
    });
    let repository = join_result(opened.await)?.map_err(|error| {
        let mut error = Error::from(error);
        error.message = format!("open the repository {}", args.repo);
        error
    })?;
    let plan = MiningPlan {
        repo: repository_name(&repository, name)?,
        head: head_of(&repository)?,
        since: args.since,
        until: args.until,
        max_changed_lines: args.max_changed_lines,
    };
    work.write_or_check_plan(&plan, earlier.as_ref())?;
    let selection = Selection {
        repo: plan.repo.clone(),
        head: plan.head.clone(),
        since: plan.since.as_second(),
        until: plan.until.map(Timestamp::as_second),
        max_changed_lines: plan.max_changed_lines,
    };
    let read = tokio::task::spawn_blocking(move || mine::candidates(&repository, &selection));
    let mined = join_result(read.await)??;
    live.clear();
    if !args.json {
        let candidates = count(mined.candidates.len(), "candidate");
        output::print_stderr(format!("{candidates} in {}", plan.repo));
    }
    Ok((plan, mined))
}

/// Converts the error of a failed thread.
fn join_result<T>(done: std::result::Result<T, tokio::task::JoinError>) -> Result<T> {
    done.map_err(|error| Error::infrastructure("read the history").cause(error))
}

fn repository_name(repository: &Repository, explicit_name: Option<String>) -> Result<String> {
    let name = explicit_name.unwrap_or_else(|| repository.name().to_owned());
    if testwright_evals::dataset::is_repository(&name) {
        return Ok(name);
    }
    Err(Error::usage("name the repository")
        .cause(format!("`{name}` is not OWNER/NAME"))
        .hint("pass its name with --name OWNER/NAME"))
}

fn head_of(repository: &Repository) -> Result<String> {
    let head = repository.commit().map(str::to_owned);
    head.ok_or_else(|| {
        Error::usage("read the history")
            .cause("it has no commits")
            .hint("pass a git repository with at least one commit")
    })
}

/// Reads the issues' texts, by candidate. Each text is requested from the server at most once.
async fn read_texts(
    candidates: &[Candidate],
    source: &IssueSource,
    work: &WorkFolder,
    quiet: bool,
) -> Result<BTreeMap<String, IssueTexts>> {
    let live = ProgressLine::new(Some(candidates.len()), quiet);
    let mut all = BTreeMap::new();
    for candidate in candidates {
        let mut texts = IssueTexts::default();
        for &number in &candidate.issues {
            live.set_status(&format!("issue #{number}"));
            match read_text(candidate, number, source, work).await? {
                Ok(text) => texts.found.push(text),
                Err(cause) => texts.missing.push(MissingText { number, cause }),
            }
        }
        live.advance(true);
        all.insert(candidate.id.clone(), texts);
    }
    live.clear();
    Ok(all)
}

async fn read_text(
    candidate: &Candidate,
    number: u64,
    source: &IssueSource,
    work: &WorkFolder,
) -> Result<std::result::Result<IssueText, String>> {
    let is_remote = matches!(source, IssueSource::GitHub { .. });
    if is_remote && let Some(saved_issue) = work.issue(&candidate.id, number) {
        return Ok(Ok(saved_issue));
    }
    let read = source.read(number, candidate.fixed_at).await;
    let read = read.map_err(|error| match error.kind {
        Kind::Unauthorized => error,
        _ => error.hint(
            "run the same command again to resume; set GITHUB_TOKEN for a higher rate limit, or read files with \
             --issues FOLDER",
        ),
    })?;
    let text = match read {
        Ok(text) => IssueText {
            number,
            title: text.title,
            body: text.body,
            origin: text.origin,
            created_at: text.created_at.map(|at| at.to_string()),
            later_edits: text.later_edits,
        },
        Err(cause) => return Ok(Err(cause)),
    };
    if is_remote {
        work.write_issue(&candidate.id, &text)?;
    }
    Ok(Ok(text))
}

/// Grades the golden tests of the candidates.
async fn verify(
    args: &Args,
    instances: &[Instance],
    work: &WorkFolder,
) -> Result<Vec<InstanceResult>> {
    if instances.is_empty() {
        return Ok(Vec::new());
    }
    let dataset = work.dataset();
    mine::write(&dataset, instances).map_err(write_error(&dataset))?;
    let grade = GradeArgs {
        dataset: Some(dataset),
        instances: InstanceArgs::default(),
        workers: args.workers,
        repositories: absolute_location(&args.repo),
        test_seconds: args.test_seconds,
        sandbox: args.sandbox.clone(),
        out: Some(work.grading()),
        json: args.json,
    };
    let grading = grade.grading_run(load_settings(&grade.sandbox.sources(|_| {}))?)?;
    let golden = [golden_tests(&grading.dataset)];
    let (_, results) = grade.grade(&grading, &golden, Vec::new(), None).await?;
    Ok(results)
}

fn write(
    args: &Args,
    plan: &MiningPlan,
    work: &WorkFolder,
    rows: &[Instance],
    table: &Table,
) -> Result<()> {
    if !rows.is_empty() {
        mine::write(&args.out, rows).map_err(write_error(&args.out))?;
    }
    let day = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M UTC").to_string();
    let mut facts = vec![
        ("repository", plan.repo.clone()),
        ("up to the commit", plan.head.clone()),
        ("committed since", day(plan.since)),
    ];
    facts.extend(plan.until.map(|until| ("committed before", day(until))));
    let most = plan.max_changed_lines.map(|most| most.to_string());
    facts.extend(most.map(|most| ("maximum changed lines of code", most)));
    let table_path = work.table();
    let name = table_path.strip_prefix(table_path.ancestors().nth(2).unwrap_or(Path::new("")));
    let name = name.unwrap_or(&table_path).display().to_string();
    let page = args.out.with_extension("md");
    let title = format!("Instances of {}", plan.repo);
    let text = table.markdown(&title, &facts, &name);
    write_file(&page, text.as_bytes()).map_err(write_error(&page))?;
    let json = serde_json::to_string_pretty(table).unwrap_or_default() + "\n";
    write_file(&table_path, json.as_bytes()).map_err(write_error(&table_path))
}

fn write_error(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |error| Error::io(format!("write {}", path.display()), &error)
}

/// Prints a note on texts that may have been edited after the fix, because such edits may reveal the fix.
fn print_edit_note(texts: &BTreeMap<String, IssueTexts>) {
    let issue_texts = texts.values().flat_map(|texts| &texts.found);
    let unknown = issue_texts
        .filter(|text| text.later_edits == "not known")
        .count();
    if unknown > 0 {
        let texts = count(unknown, "text");
        output::print_stderr(format!(
            "note: {texts} may have been edited after the fix (set GITHUB_TOKEN to check)"
        ));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn day_bounds_are_inclusive() {
        let bound = |text, of: fn(&str) -> std::result::Result<Timestamp, String>| {
            of(text).map(|time| time.to_string())
        };
        assert_eq!(
            bound("2026-04-01", parse_since).unwrap(),
            "2026-04-01T00:00:00Z"
        );
        assert_eq!(
            bound("2026-04-01", parse_until).unwrap(),
            "2026-04-02T00:00:00Z"
        );
        let exact = "2026-04-01T12:00:00Z";
        assert_eq!(bound(exact, parse_until).unwrap(), exact);
        let abroad = "2026-04-01T14:00:00+02:00";
        assert_eq!(bound(abroad, parse_until).unwrap(), exact);
        assert!(bound("2026-04-01T12:00:00", parse_since).is_err());
        assert!(bound("last week", parse_since).is_err());
    }
}
