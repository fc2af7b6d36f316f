//! `testwright show`: shows the result of a run, on a terminal or as a comment on an issue.

use std::path::PathBuf;

use super::{evidence_card, output};
use testwright_agent::agent::Outcome;
use testwright_agent::trajectory::{Event, Events, Started, TrajectoryError};
use testwright_config::error::{Error, Result};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of a run
    dir: PathBuf,
    /// Print Markdown, for a comment on the issue
    #[arg(long)]
    markdown: bool,
}

/// Maximum characters of the patch in a comment. GitHub accepts comments of up to 65,536 characters.
const MAX_PATCH_LEN: usize = 50_000;

pub(super) fn run(args: &Args) -> Result<()> {
    let wrong =
        |error: TrajectoryError| Error::usage(error.to_string()).hint("pass the folder of a run");
    let (mut first, mut outcome) = (None, None);
    for (number, event) in Events::open(&args.dir).map_err(wrong)?.enumerate() {
        match event.map_err(wrong)? {
            Event::Started(started) if number == 0 => first = Some(started),
            Event::Ended { outcome: last } => outcome = Some(last),
            _ => {}
        }
    }
    let (Some(started), Some(outcome)) = (&first, &outcome) else {
        let folder = args.dir.display();
        return Err(Error::usage(format!("show {folder}"))
            .cause("the run has not ended")
            .hint(format!("resume it: testwright run --resume {folder}")));
    };
    if args.markdown {
        output::print_stdout(markdown(started, outcome) + "\n");
    } else {
        output::print_stdout(evidence_card::render(outcome));
    }
    Ok(())
}

/// Formats the result as Markdown.
///
/// Untrusted text is fenced, so that it cannot mention people or create links.
fn markdown(started: &Started, outcome: &Outcome) -> String {
    let code = match &started.commit {
        Some(commit) => format!("commit {}", commit.chars().take(10).collect::<String>()),
        None => "the code as it was".to_owned(),
    };
    let by = match started.model.as_str() {
        // `snippet` uses rules and has no model to name.
        model if model.is_empty() || model == started.approach => started.approach.clone(),
        model => format!("{}, {model}", started.approach),
    };
    let by = inline_code(&by);
    let Outcome::Accepted { patch, evidence } = outcome else {
        let summary = fenced("text", &outcome.summary());
        return format!("**testwright** found no test for this issue ({code}; {by}).\n\n{summary}");
    };
    let card = fenced(
        "text",
        evidence_card::render_card(evidence).plain().trim_end(),
    );
    let patch = if patch.chars().count() > MAX_PATCH_LEN {
        format!(
            "The patch is too long for a comment: {} characters.",
            patch.chars().count()
        )
    } else {
        format!("For `git apply`:\n\n{}", fenced("diff", patch.trim_end()))
    };
    format!(
        "**testwright** wrote a test that fails on {code} for the reason this issue states ({by}).\n\n{card}\n\n{patch}"
    )
}

/// Puts text into a fenced block, with a fence longer than any run of backticks in it.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_backtick_run(text).max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

fn inline_code(text: &str) -> String {
    let fence = "`".repeat(longest_backtick_run(text) + 1);
    format!("{fence}{}{fence}", output::escape_line(text))
}

/// Returns the length of the longest run of backticks.
fn longest_backtick_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`');
    runs.map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_outlasts_inner_backticks() {
        assert_eq!(fenced("text", "a"), "```text\na\n```");
        assert_eq!(fenced("text", "````\n@ann"), "`````text\n````\n@ann\n`````");
        assert_eq!(inline_code("a`b"), "``a`b``");
    }
}
