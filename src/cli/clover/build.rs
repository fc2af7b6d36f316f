//! `testwright clover build`: generates problems from repositories.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use testwright_evals::cases::context::Tokenizer as _;
use testwright_evals::clover::build::{BuildOptions, build};
use testwright_evals::clover::folder::{Benchmark, LOCATIONS, MANIFEST, TABLE};
use testwright_evals::clover::manifest::{BuildLimits, Manifest, RepositoryFacts};
use testwright_evals::clover::{Task, VERSION};
use testwright_evals::document::format::seconds;
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::progress::CloverProgress;
use super::{open_harness, workers};
use crate::cli::headings::{DATA, ISSUE, LIMITS, OUTPUT};
use crate::cli::output::{self, escape_line};
use crate::cli::output_folder;
use crate::cli::repository_args::{SandboxArgs, absolute_location, load_settings};
use testwright_agent::agent::Progress as _;
use testwright_agent::setup::interrupted;
use testwright_comparisons::clover::evaluation::open;
use testwright_comparisons::clover::prompts::TaskPrompts;
use testwright_config::error::{Error, Result};
use testwright_tools::tools::count;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Repository: a folder or a URL; may be repeated
    #[arg(long, help_heading = ISSUE, value_name = "PATH|URL", required = true)]
    repo: Vec<String>,
    /// Commit, tag or branch; once for each --repo, in the same order [default: HEAD]
    #[arg(long, help_heading = ISSUE, value_name = "REV")]
    commit: Vec<String>,
    /// Tasks: 1 fills the blank of an assertion, 2 calls a given class or function, 3 covers given
    /// blocks
    #[arg(
        long, help_heading = DATA,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "1,2,3"
    )]
    tasks: Vec<Task>,
    /// Seed of all random choices: the same commits and seed give the same problems
    #[arg(long, help_heading = DATA, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Maximum number of tests to run for each repository; whole files are chosen at random
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_tests: u32,
    /// Maximum concurrent sandboxes [default: the number of CPUs]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    workers: Option<usize>,
    /// Maximum seconds for each test
    #[arg(long, help_heading = LIMITS, value_name = "SECONDS", default_value_t = 60)]
    test_seconds: u64,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// Folder for the problems, their contexts, and a table of the kept and dropped problems. Run
    /// again with the same folder to resume
    #[arg(short, long, help_heading = OUTPUT, value_name = "DIR")]
    out: PathBuf,
    /// Print only the manifest (manifest.json), for programs
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

pub(super) async fn run(args: &Args) -> Result<u8> {
    if !args.commit.is_empty() && args.commit.len() != args.repo.len() {
        return Err(Error::usage("build problems")
            .cause(format!(
                "--repo is given {}, and --commit {}",
                count(args.repo.len(), "time"),
                count(args.commit.len(), "time")
            ))
            .hint("pass --commit once for each --repo, in the same order"));
    }
    output_folder::check_is_folder(&args.out)?;
    let settings = load_settings(&args.sandbox.sources(|_| {}))?;
    let mut benchmark = open_benchmark(args)?;
    let (harness, notes) = open_harness(&settings, &args.out, args.test_seconds).await?;
    let progress = CloverProgress::new(None, args.json);
    let all_notes = settings.notes.iter().chain(&notes);
    all_notes.for_each(|note| progress.note(note));
    let options = BuildOptions {
        seed: args.seed,
        workers: workers(args.workers),
        limits: benchmark.manifest.limits.clone(),
    };
    let mut failed = 0;
    for (at, location) in args.repo.iter().enumerate() {
        let begun = Instant::now();
        let report = |text: &str| progress.status(text);
        let one = async {
            let revision = args.commit.get(at).map(String::as_str);
            let place = open(&harness, location, revision, &report).await?;
            let commit = place.source.commit.as_deref().unwrap_or_default();
            if benchmark.has(&place.source.name, commit) {
                return Ok(None);
            }
            let built = build(&place, &options, &TaskPrompts, &report).await;
            let doing = || format!("build problems from {location}");
            let built = built.map_err(|error| Error::from(error).while_doing(doing()));
            Ok::<_, Error>(Some(built?))
        };
        let built = tokio::select! {
            built = one => built,
            () = interrupted() => {
                progress.clear();
                harness.backend.abandon().await?;
                return Err(Error::interrupted());
            }
        };
        match built {
            Ok(None) => progress.line(&format!("{location}: already built")),
            Ok(Some(built)) => {
                progress.line(&summary(&built.facts, begun.elapsed()));
                benchmark.add(built, absolute_location(location));
                write(&benchmark, &args.out)?;
            }
            // The problems of other repositories are still useful.
            Err(error) if args.repo.len() > 1 => {
                failed += 1;
                progress.line(&error.render());
            }
            Err(error) => {
                progress.clear();
                return Err(error);
            }
        }
    }
    progress.clear();
    write(&benchmark, &args.out)?;
    if args.json {
        output::print_json(&benchmark.manifest)?;
    } else {
        let table = plain_file::read_text(&args.out.join(TABLE), Links::Refuse, MAX_DOCUMENT);
        output::print_stdout(table.unwrap_or_default());
        output::print_status(escape_line(&format!("problems: {}", args.out.display())));
    }
    if failed > 0 {
        return Err(
            Error::infrastructure(format!("use {failed} of the repositories"))
                .cause("their errors are listed above")
                .hint(format!(
                    "use the problems of the others, listed in {LOCATIONS}"
                )),
        );
    }
    Ok(0)
}

/// Reads the unfinished benchmark in the folder, or starts a new one. Fails if the folder has other settings.
fn open_benchmark(args: &Args) -> Result<Benchmark> {
    let mut tasks = args.tasks.clone();
    tasks.sort_unstable();
    tasks.dedup();
    let manifest = Manifest {
        version: VERSION.to_owned(),
        seed: args.seed,
        tokenizer: TaskPrompts.name().to_owned(),
        limits: BuildLimits {
            tasks,
            max_tests: args.max_tests,
            test_seconds: args.test_seconds,
        },
        repositories: Vec::new(),
    };
    if !args.out.join(MANIFEST).exists() {
        return Ok(Benchmark::new(manifest));
    }
    let doing = || format!("resume in {}", args.out.display());
    let another = "pass another folder with --out";
    let earlier = Benchmark::read(&args.out)
        .map_err(|error| Error::usage(doing()).cause(error).hint(another))?;
    let repositories = earlier.manifest.repositories.clone();
    let expected_manifest = Manifest {
        repositories,
        ..manifest
    };
    match earlier.manifest == expected_manifest {
        true => Ok(earlier),
        false => Err(Error::usage(doing())
            .cause("its problems were built with other settings")
            .hint(another)),
    }
}

fn write(benchmark: &Benchmark, out: &Path) -> Result<()> {
    let written = benchmark.write(out);
    written.map_err(|error| Error::infrastructure("write the problems").cause(error))
}

fn summary(facts: &RepositoryFacts, took: Duration) -> String {
    let of_tasks = facts.tasks.iter().map(|(task, counts)| {
        format!("{} {} of {}", task.numeral(), counts.selected, counts.found)
    });
    format!(
        "{}: {} of {} tests pass in isolation; problems: {}; {}",
        facts.name,
        facts.tests.selected,
        facts.tests.found,
        of_tasks.collect::<Vec<_>>().join(", "),
        seconds(took.as_secs_f64())
    )
}
