//! `testwright show`: shows the result of a run, on a terminal or as a comment on an issue, or the report of any other
//! folder of results.

use std::path::{Path, PathBuf};

use super::accepted_test::quote_path;
use super::list::{check_exists, newest_run};
use super::{check, clover, eval, evidence_card, output, select};
use testwright_agent::agent::Outcome;
use testwright_agent::gate::Evidence;
use testwright_agent::job::recorded_outcome;
use testwright_agent::trajectory::{Event, Events, Started, TrajectoryError};
use testwright_comparisons::compare::report::{ComparisonReport, Data};
use testwright_comparisons::compare::{Plan, write_trajectory_page};
use testwright_config::error::{Error, Result};
use testwright_tools::tools::count;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of a run, or of results from eval, compare, select, clover eval or check [default: the
    /// newest run in testwright-runs]
    dir: Option<PathBuf>,
    /// Print Markdown, for a comment on the issue (only for a run)
    #[arg(long)]
    markdown: bool,
    /// Write trajectory.html into the folder: a page with the requests, replies and calls (only for
    /// a run)
    #[arg(long, conflicts_with = "markdown")]
    html: bool,
}

/// Maximum characters of the patch in a comment. GitHub accepts comments of up to 65,536 characters.
const MAX_PATCH_LEN: usize = 24_000;
/// Maximum characters of the failure's message.
const MAX_MESSAGE_LEN: usize = 160;

pub(super) fn run(args: &Args) -> Result<()> {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => newest_run("trajectory.jsonl", "run")?,
    };
    check_exists(&dir, "show")?;
    if !args.markdown
        && !args.html
        && let Some(report) = report(&dir)?
    {
        output::print_stdout(report);
        return Ok(());
    }
    let mut events = Vec::new();
    let (started, outcome) = read_events(&dir, |event| {
        if args.html {
            events.push(event);
        }
    })?;
    if args.html {
        let title = &started.issue.title;
        let page = write_trajectory_page(&dir, title, &events, &outcome)?;
        output::print_stdout(format!(
            "{}\n",
            output::escape_line(&page.display().to_string())
        ));
    } else if args.markdown {
        output::print_stdout(markdown(&started, &outcome) + "\n");
    } else {
        output::print_stdout(evidence_card::render(&outcome));
    }
    Ok(())
}

/// Reads the start and the outcome of a run that has ended.
pub(super) fn read_ended(dir: &Path) -> Result<(Box<Started>, Outcome)> {
    read_events(dir, |_| {})
}

/// Reads the start and the outcome of a run that has ended, and hands over each of its events.
fn read_events(dir: &Path, mut keep: impl FnMut(Event)) -> Result<(Box<Started>, Outcome)> {
    let wrong =
        |error: TrajectoryError| Error::usage(error.to_string()).hint("pass the folder of a run");
    check_exists(dir, "read the run in")?;
    let (mut first, mut outcome) = (None, None);
    for (number, event) in Events::open(dir).map_err(wrong)?.enumerate() {
        let event = event.map_err(wrong)?;
        match &event {
            Event::Started(started) if number == 0 => first = Some(started.clone()),
            Event::Ended { outcome: last } => outcome = Some(last.clone()),
            _ => {}
        }
        keep(event);
    }
    first.zip(outcome).ok_or_else(|| {
        let cause = recorded_outcome(dir).map_or_else(
            || "the run has not ended".to_owned(),
            |outcome| outcome.summary(),
        );
        Error::usage(format!("read the result of {}", dir.display()))
            .cause(cause)
            .hint(format!(
                "resume it: testwright run --resume {}",
                quote_path(dir)
            ))
    })
}

/// Returns the report of a folder of results; `None` if it has none, such as the folder of a run.
fn report(folder: &Path) -> Result<Option<String>> {
    // Results come first: `eval report` writes a file with the name of a comparison's plan beside them.
    let readers = [
        eval::report::read,
        read_comparison,
        select::read,
        clover::report::read,
        check::dataset::read,
    ];
    for read in readers {
        if let Some(report) = read(folder)? {
            return Ok(Some(report));
        }
    }
    Ok(None)
}

/// Reads the report of a comparison; `None` if the folder has none.
fn read_comparison(folder: &Path) -> Result<Option<String>> {
    if Plan::read(folder)?.is_none() {
        return Ok(None);
    }
    let report = ComparisonReport::from_data(&Data::read(folder)?);
    Ok(Some(report.table(output::stdout_columns())))
}

/// Formats the result as Markdown.
///
/// Untrusted text is fenced, so that it cannot mention people or create links.
fn markdown(started: &Started, outcome: &Outcome) -> String {
    let (code, by) = (code_name(started), author_name(started));
    let Outcome::Accepted { patch, evidence } = outcome else {
        let summary = fenced("text", &outcome.summary());
        return format!("**testwright** found no test for this issue ({code}; {by}).\n\n{summary}");
    };
    let (test, patch) = match patch.chars().count() {
        count if count > MAX_PATCH_LEN => (
            None,
            format!("The patch is too long for a comment: {count} characters."),
        ),
        _ => (added_source(patch), fenced("diff", patch.trim_end())),
    };
    let test = test.map_or_else(String::new, |source| fenced("python", &source) + "\n\n");
    format!(
        "**testwright** wrote a test that fails on {code} for the reason this issue states ({by}). {}\n\n\
         {test}{}\n{}",
        failure(evidence),
        folded("Patch for git apply", &patch),
        folded_card(evidence),
    )
}

/// Formats the description of a pull request that adds an accepted test. `issue` is a link to the issue.
pub(super) fn pull_request_body(
    started: &Started,
    evidence: &Evidence,
    issue: Option<&str>,
    is_marked: bool,
) -> String {
    let (code, by) = (code_name(started), author_name(started));
    let link = issue.map_or_else(String::new, |issue| format!(" for {issue}"));
    let text = match evidence.tests.is_empty() {
        true => format!("Adds a test{link}.\n\n**testwright** wrote it for {code} ({by})."),
        false => format!(
            "Adds a failing test{link}.\n\n**testwright** wrote it ({by}). It fails on {code} for the reason the issue \
             states. {}",
            failure(evidence)
        ),
    };
    let mark = match is_marked {
        true => " It is marked as expected to fail until the issue is fixed.",
        false => "",
    };
    format!("{text}{mark}\n\n{}\n", folded_card(evidence))
}

fn code_name(started: &Started) -> String {
    match &started.commit {
        Some(commit) => format!("commit {}", commit.chars().take(10).collect::<String>()),
        None => "the code as it was".to_owned(),
    }
}

/// Returns the approach and the model.
fn author_name(started: &Started) -> String {
    inline_code(&match started.model.as_str() {
        // `snippet` uses rules and has no model to name.
        model if model.is_empty() || model == started.approach => started.approach.clone(),
        model => format!("{}, {model}", started.approach),
    })
}

fn folded_card(evidence: &Evidence) -> String {
    let card = evidence_card::render_card(evidence).plain();
    folded("Evidence", &fenced("text", card.trim_end()))
}

/// Describes how the first test fails, and whether a candidate fix makes the tests pass.
fn failure(evidence: &Evidence) -> String {
    let Some(test) = evidence.tests.first() else {
        return String::new();
    };
    let place = test.frame.as_ref().map_or_else(String::new, |frame| {
        let line = format!("{}:{}", frame.file, frame.line);
        format!(
            " in {} ({})",
            inline_code(&frame.function),
            inline_code(&line)
        )
    });
    let exception = inline_code(&test.exception);
    let message: String = test
        .message
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(MAX_MESSAGE_LEN)
        .collect();
    let message = match message.trim() {
        "" => String::new(),
        message => format!(": {}", inline_code(message)),
    };
    let fixed = evidence
        .fixes
        .iter()
        .find(|fix| fix.on_submitted_tests && fix.is_valid_fix(&evidence.tests));
    let fixed = match fixed.map(|fix| fix.existing_run) {
        None => String::new(),
        Some(0) => " It passes with a candidate fix.".to_owned(),
        Some(existing) => {
            let verb = if existing == 1 { "does" } else { "do" };
            let existing = count(existing, "existing test");
            format!(" It passes with a candidate fix, and so {verb} {existing}.")
        }
    };
    format!("It fails with {exception}{place}{message}.{fixed}")
}

/// Returns the lines that the patch adds, without common indentation; `None` if it also removes lines or adds to several
/// files.
fn added_source(patch: &str) -> Option<String> {
    let mut added: Vec<&str> = Vec::new();
    let mut in_hunk = false;
    for line in patch.lines() {
        match line.as_bytes().first() {
            Some(b'@') => in_hunk = true,
            Some(b'd') if !added.is_empty() => return None,
            Some(b'd') => in_hunk = false,
            Some(b'-') if in_hunk => return None,
            Some(b'+') if in_hunk => added.push(&line[1..]),
            _ => {}
        }
    }
    let indent = |line: &&str| line.len() - line.trim_start_matches(' ').len();
    let common = added
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(indent)
        .min()?;
    let lines = added
        .iter()
        .map(|line| line.get(common..).unwrap_or_default());
    let source = lines.collect::<Vec<_>>().join("\n");
    Some(source.trim_matches('\n').to_owned())
}

/// Formats a part that a reader has to open.
fn folded(title: &str, content: &str) -> String {
    format!("<details><summary>{title}</summary>\n\n{content}\n\n</details>")
}

/// Puts text into a fenced block, with a fence longer than any run of backticks in it.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_backtick_run(text).max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

pub(super) fn inline_code(text: &str) -> String {
    let fence = "`".repeat(longest_backtick_run(text) + 1);
    // Backticks at an end would become part of the fence. Markdown removes these spaces.
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{}{space}{fence}", output::escape_line(text))
}

/// Returns the length of the longest run of backticks.
fn longest_backtick_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`');
    runs.map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
