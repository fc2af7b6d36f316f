//! `testwright clover build`: problems from repositories.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use testwright_evals::clover::build::{BuildOptions, build};
use testwright_evals::clover::context::Prompts as _;
use testwright_evals::clover::folder::{Benchmark, LOCATIONS, TABLE, location_key};
use testwright_evals::clover::manifest::{Manifest, RepositoryFacts};
use testwright_evals::clover::{Task, VERSION};
use testwright_evals::document::format::seconds;

use super::progress::CloverProgress;
use crate::cli::output::{self, single_line};
use crate::cli::place::{SandboxArgs, load};
use crate::clover::evaluation::open;
use crate::clover::prompts::TaskPrompts;
use crate::error::{Error, Result};
use crate::setup::{HarnessArgs, harness, interrupted};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A repository: a folder or a URL; several times for several
    #[arg(long, value_name = "PATH|URL", required = true)]
    repo: Vec<String>,
    /// Its commit, tag or branch; once for each --repo, in their order [default: HEAD]
    #[arg(long, value_name = "REV")]
    commit: Vec<String>,
    /// Only these tasks: 1 fills the blank of an assertion, 2 calls a given class or function, 3 covers given blocks
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "1,2,3"
    )]
    tasks: Vec<Task>,
    /// Decides every draw: the same commits and the same seed give the same problems
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How many sandboxes run tests at once [default: the number of processors]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Seconds that one test may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    test_seconds: u64,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// Folder for the problems, the files of their contexts, and the table of what was found, kept and dropped
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the manifest (manifest.json) alone, for programs
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args) -> Result<u8> {
    if !args.commit.is_empty() && args.commit.len() != args.repo.len() {
        return Err(Error::usage("build problems")
            .cause(format!(
                "there are {} repositories and {} commits",
                args.repo.len(),
                args.commit.len()
            ))
            .hint("give --commit once for each --repo, in their order"));
    }
    let settings = load(&args.sandbox.sources(|_| {}))?;
    let given = HarnessArgs {
        repositories: testwright_evals::harness::FORGE.to_owned(),
        test_time: Duration::from_secs(args.test_seconds),
        out: args.out.clone(),
    };
    let (harness, notes) = harness(&settings, given).await?;
    let progress = CloverProgress::new(None, args.json);
    let all_notes = settings.notes.iter().chain(&notes);
    all_notes.for_each(|note| progress.line(&format!("note: {note}")));
    let mut tasks = args.tasks.clone();
    tasks.sort_unstable();
    tasks.dedup();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let options = BuildOptions {
        seed: args.seed,
        workers: args.workers.unwrap_or(processors),
        timeout: Duration::from_secs(args.test_seconds),
        tasks,
    };
    let mut benchmark = Benchmark {
        manifest: Manifest {
            version: VERSION.to_owned(),
            seed: args.seed,
            tokenizer: TaskPrompts.tokenizer().name().to_owned(),
            repositories: Vec::new(),
        },
        problems: Vec::new(),
        sources: Vec::new(),
        locations: BTreeMap::new(),
    };
    let mut failed = 0;
    for (at, location) in args.repo.iter().enumerate() {
        let begun = Instant::now();
        let report = |text: &str| progress.status(text);
        let one = async {
            let revision = args.commit.get(at).map(String::as_str);
            let place = open(&harness, location, revision, &report).await?;
            let built = build(&place, &options, &TaskPrompts, &report).await;
            let doing = || format!("build problems from {location}");
            built.map_err(|error| Error::from(error).while_doing(doing()))
        };
        let built = tokio::select! {
            built = one => built,
            () = interrupted() => {
                progress.clear();
                harness.backend.abandon().await?;
                return Err(Error::interrupted("clover build: interrupted"));
            }
        };
        match built {
            Ok(built) => {
                progress.line(&summary(&built.facts, begun.elapsed()));
                let key = location_key(&built.facts.name, &built.facts.commit);
                benchmark.locations.insert(key, address(location));
                benchmark.manifest.repositories.push(built.facts);
                benchmark.problems.extend(built.problems);
                benchmark.sources.extend(built.sources);
            }
            // The others can be used without it.
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
    benchmark
        .write(&args.out)
        .map_err(|error| Error::infrastructure("write the problems").cause(error))?;
    if args.json {
        output::json(&benchmark.manifest)?;
    } else {
        let table = std::fs::read_to_string(args.out.join(TABLE));
        output::out(table.unwrap_or_default());
        output::err(single_line(&format!("problems: {}", args.out.display())));
    }
    if failed > 0 {
        return Err(
            Error::infrastructure(format!("use {failed} of the repositories"))
                .cause("see above")
                .hint(format!("the others are there; {LOCATIONS} names them")),
        );
    }
    Ok(0)
}

/// A folder as it can be found from elsewhere.
fn address(location: &str) -> String {
    let folder = std::path::Path::new(location);
    match folder.canonicalize() {
        Ok(folder) if !location.contains("://") => folder.display().to_string(),
        _ => location.to_owned(),
    }
}

fn summary(facts: &RepositoryFacts, took: Duration) -> String {
    let of_tasks = facts
        .tasks
        .iter()
        .map(|(task, counts)| format!("{} {} of {}", task.numeral(), counts.kept, counts.found));
    format!(
        "{}: {} of {} tests run alone; problems: {}; {}",
        facts.name,
        facts.tests.kept,
        facts.tests.found,
        of_tasks.collect::<Vec<_>>().join(", "),
        seconds(took.as_secs_f64())
    )
}
