//! `testwright apply`: applies the test of a run to its repository.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::accepted_test::{AcceptedTest, apply_command, with_options};
use super::headings::{ISSUE, OUTPUT};
use super::list::newest_run;
use super::output;
use super::show::read_ended;
use testwright_agent::agent::Outcome;
use testwright_agent::trajectory::Started;
use testwright_config::error::{Error, Result};
use testwright_sandboxes::plain_file::{self, Links};
use testwright_sandboxes::repository::{Placement, WorkTree};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Nothing is changed unless the whole test applies, and only files without \
    uncommitted changes are touched.\n\nExamples:\n  testwright apply\n  \
    testwright apply testwright-runs/2026-01-31T120000-title --branch issue-7 --commit --xfail"
)]
pub(super) struct Args {
    /// Folder of a run [default: the newest run in testwright-runs that accepted a test]
    run: Option<PathBuf>,
    /// Folder of the repository [default: the repository of the run, or the current folder if it is
    /// a clone of it]
    #[arg(long, help_heading = ISSUE, value_name = "DIR")]
    repo: Option<String>,
    /// Create this branch at HEAD and switch to it
    #[arg(long, help_heading = OUTPUT, value_name = "NAME")]
    branch: Option<String>,
    /// Commit the files of the test, without hooks and without a signature
    #[arg(long, help_heading = OUTPUT)]
    commit: bool,
    /// Mark the test as expected to fail until the issue is fixed
    #[arg(long, help_heading = OUTPUT)]
    xfail: bool,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let folder = match &args.run {
        Some(folder) => folder.clone(),
        None => newest_accepted()?,
    };
    let (_, test) = read_test(&folder)?;
    let command = args.command(&folder);
    let tree = work_tree(args.repo.as_deref(), args.run.is_some(), &test, &command)?;
    let patch = match args.xfail {
        true => test.marked_patch(&tree, &command)?,
        false => test.patch.clone(),
    };
    let message = args.commit.then(|| test.commit_message(args.xfail));
    let placement = Placement {
        branch: args.branch.as_deref(),
        message: message.as_deref(),
    };
    let mut lines = test.apply(&tree, &patch, placement, &command)?;
    lines.extend(test.how_to_run(&tree));
    for line in lines {
        output::print_stdout(format!("{}\n", output::escape_line(&line)));
    }
    Ok(())
}

impl Args {
    /// Returns this command for the run in a folder.
    fn command(&self, folder: &Path) -> String {
        let options = [("--repo", &self.repo), ("--branch", &self.branch)];
        let flags = [("--commit", self.commit), ("--xfail", self.xfail)];
        with_options(apply_command(folder), &options, &flags)
    }
}

/// Finds the newest run that accepted a test, and prints which one it is.
pub(super) fn newest_accepted() -> Result<PathBuf> {
    newest_run("test.patch", "accepted test")
}

/// Reads the start of a run and the test that it accepted.
pub(super) fn read_test(folder: &Path) -> Result<(Box<Started>, AcceptedTest)> {
    let (started, outcome) = read_ended(folder)?;
    let (patch, evidence) = match outcome {
        Outcome::Accepted { patch, evidence } => (patch, evidence),
        other => {
            let action = format!("use the test of {}", folder.display());
            return Err(Error::usage(action).cause(other.summary()).hint(
                "pass the folder of a run that accepted a test; `testwright list` prints them",
            ));
        }
    };
    // A run that a server exported has no settings of the environment.
    let record = plain_file::read(
        &folder.join("run.json"),
        Links::Refuse,
        plain_file::MAX_DOCUMENT,
    );
    let record: Value = record
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    let location = started.settings["repository"].as_str();
    let test = AcceptedTest {
        folder: folder.to_owned(),
        location: location.unwrap_or_default().to_owned(),
        repository: started.repository.clone(),
        commit: started.commit.clone(),
        title: started.issue.title.clone(),
        origin: started.issue.origin.clone(),
        patch,
        evidence,
        runner: record["environment"]["recipe"]["runner"].clone(),
    };
    Ok((started, test))
}

/// Returns the work tree to change: in the folder `repo`, or that of the run, which may be `named` on the command line.
/// `command` is the command with the name of the run.
pub(super) fn work_tree(
    repo: Option<&str>,
    named: bool,
    test: &AcceptedTest,
    command: &str,
) -> Result<WorkTree> {
    const HINT: &str = "pass --repo the folder of your clone";
    let failed = |cause: String| {
        Error::usage(format!("use the test of {}", test.folder.display())).cause(cause)
    };
    if let Some(folder) = repo {
        let tree = WorkTree::find(folder)?.ok_or_else(|| {
            failed(format!("{folder} is not a folder with a work tree")).hint(HINT)
        })?;
        if test.commit.is_some() && !tree.is_repository() {
            return Err(failed(format!("{folder} is not a clone of the repository")).hint(HINT));
        }
        return Ok(tree);
    }
    let tree = test.work_tree()?.ok_or_else(|| {
        failed(format!("no work tree of {} is known", test.repository)).hint(HINT)
    })?;
    // An untrusted repository can contain a folder that looks like a run of another repository. A folder that is not in
    // a repository may contain the repository of its run.
    let is_expected = |here: WorkTree| {
        let contains = !here.is_repository() && tree.root().starts_with(here.root());
        contains || here.root() == tree.root()
    };
    let is_expected = WorkTree::find(".")?.is_some_and(is_expected);
    if !named && !is_expected {
        let root = tree.root().display();
        return Err(
            failed(format!("the newest run is of another repository, {root}"))
                .hint(format!("name the run: {command}")),
        );
    }
    Ok(tree)
}
