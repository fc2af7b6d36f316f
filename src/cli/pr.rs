//! `testwright pr`: opens a draft pull request with the test of a run.

use std::path::{Path, PathBuf};

use super::accepted_test::{AcceptedTest, quote, quote_path, with_options};
use super::apply::{newest_accepted, read_test, work_tree};
use super::headings::{ISSUE, OUTPUT};
use super::output::{self, escape_line};
use super::repository_args::{load_github_settings, load_settings};
use super::run_options::title_words;
use super::show::{inline_code, pull_request_body};
use testwright_agent::issues::{self, Issue};
use testwright_agent::setup::interrupted;
use testwright_agent::trajectory::Started;
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Flags, RedactedUrl, Settings, Sources};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{NewBranch, PushRemote, WorkTree, touched_paths};
use testwright_server::draft_pull_request::{BRANCH_PREFIX, DraftPullRequest, GitHubRepository};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --create, nothing is changed or sent. With it, the test becomes a commit on top of the \
    commit that the run tested, on a new branch. git pushes that branch with your own credentials, and the token for \
    GitHub (GITHUB_TOKEN, or that of `gh auth token`) opens the draft. Your files and your current branch stay as they \
    are.\n\nExamples:\n  testwright pr\n  \
    testwright pr testwright-runs/2026-01-31T120000-title --xfail --create"
)]
pub(super) struct Args {
    /// Folder of a run [default: the newest run in testwright-runs that accepted a test]
    run: Option<PathBuf>,
    /// Folder of the repository [default: the repository of the run, or the current folder if it is
    /// a clone of it]
    #[arg(long, help_heading = ISSUE, value_name = "DIR")]
    repo: Option<String>,
    /// Remote to push to, a repository on GitHub
    #[arg(long, help_heading = OUTPUT, value_name = "NAME", default_value = "origin")]
    remote: String,
    /// Branch to merge into [default: the default branch of the repository]
    #[arg(long, help_heading = OUTPUT, value_name = "BRANCH")]
    base: Option<String>,
    /// Branch to create [default: testwright/issue-NUMBER, or testwright/ and words of the title]
    #[arg(long, help_heading = OUTPUT, value_name = "NAME")]
    branch: Option<String>,
    /// Mark the test as expected to fail until the issue is fixed
    #[arg(long, help_heading = OUTPUT)]
    xfail: bool,
    /// Push the branch and open the draft pull request
    #[arg(long, help_heading = OUTPUT)]
    create: bool,
    #[arg(from_global)]
    config: Option<PathBuf>,
}

const OPEN: &str = "open the pull request";

/// The pull request to open, and where.
struct PullRequestPlan {
    tree: WorkTree,
    remote: PushRemote,
    /// Name of the repository on GitHub.
    repository: String,
    /// Commit that the run tested.
    commit: String,
    branch: String,
    base: Option<String>,
    patch: String,
    /// Message of the commit.
    message: String,
    title: String,
    body: String,
}

pub(super) async fn run(args: &Args) -> Result<()> {
    let folder = match &args.run {
        Some(folder) => folder.clone(),
        None => newest_accepted()?,
    };
    let (started, test) = read_test(&folder)?;
    let command = args.command(&folder);
    let tree = work_tree(args.repo.as_deref(), args.run.is_some(), &test, &command)?;
    let sources = Sources::of_process(Flags::default()).config(args.config.clone());
    // Only opening a pull request needs a token.
    let settings = match args.create {
        true => load_github_settings(&sources)?,
        false => load_settings(&sources)?,
    };
    for note in &settings.notes {
        output::print_stderr(escape_line(&format!("note: {note}")));
    }
    let plan = PullRequestPlan::new(args, &started, &test, tree, &settings)?;
    if args.create {
        return plan.create(&settings).await;
    }
    plan.print();
    output::print_stderr("dry run: nothing was changed or sent");
    output::print_stderr("hint: add --create to push the branch and open the draft pull request");
    Ok(())
}

impl Args {
    /// Returns this command for the run in a folder.
    fn command(&self, folder: &Path) -> String {
        let command = format!("testwright pr {}", quote_path(folder));
        let remote = Some(self.remote.clone()).filter(|remote| remote != "origin");
        let options = [
            ("--repo", &self.repo),
            ("--remote", &remote),
            ("--base", &self.base),
            ("--branch", &self.branch),
        ];
        let flags = [("--xfail", self.xfail), ("--create", self.create)];
        with_options(command, &options, &flags)
    }
}

impl PullRequestPlan {
    /// Plans the pull request, and checks what can be checked without the network.
    fn new(
        args: &Args,
        started: &Started,
        test: &AcceptedTest,
        tree: WorkTree,
        settings: &Settings,
    ) -> Result<Self> {
        let server = settings.github.base_url.as_ref();
        let branch = args.branch.clone();
        let branch = branch.unwrap_or_else(|| default_branch_name(&started.issue));
        let remote = tree.remote(&args.remote).map_err(git_failed)?;
        let remote = remote.ok_or_else(|| {
            let root = tree.root().display();
            refused(format!("{root} has no remote `{}`", args.remote))
                .hint("add it with `git remote add`, or pass another one with --remote")
        })?;
        let repository = issues::github_repository(remote.url(), server);
        let repository =
            repository.ok_or_else(|| not_on_github(&remote, &test.folder, &branch, server))?;
        let commit = started.commit.clone().ok_or_else(|| {
            refused("the run tested no commit of a git repository")
                .hint("run testwright on a clone of the repository")
        })?;
        let found = tree.check_is_on_remote(&commit, &remote);
        found.map_err(git_failed)?.map_err(|reason| {
            let name = quote(remote.name());
            refused(reason).hint(format!("run `git fetch {name}`, or push that commit first"))
        })?;
        let free = tree.check_new_branch(&branch).map_err(git_failed)?;
        free.map_err(branch_refused)?;
        let patch = match args.xfail {
            true => {
                let files = tree.files_at(&commit, &test.patch).map_err(git_failed)?;
                let marked = test.mark(&files)?;
                marked.map_err(|reason| refused(reason).hint("leave out --xfail"))?
            }
            false => test.patch.clone(),
        };
        let link = issue_link(&started.issue, test.url(), &repository, server);
        let link = issue_with_title(link, test.cut_title(args.xfail).as_deref());
        let body = pull_request_body(started, &test.evidence, link.as_deref(), args.xfail);
        Ok(PullRequestPlan {
            tree,
            remote,
            repository,
            commit,
            branch,
            base: args.base.clone(),
            patch,
            message: test.commit_message(args.xfail),
            title: test.subject(args.xfail),
            body,
        })
    }

    fn print(&self) {
        let files: Vec<String> = touched_paths(&self.patch).into_iter().collect();
        let base = self.base.as_deref().unwrap_or("the default branch");
        let lines = [
            format!("repository: {} ({})", self.repository, self.remote.name()),
            format!("title: {}", self.title),
            format!("branch: {} on commit {}", self.branch, self.commit),
            format!("base: {base}"),
            format!("files: {}", files.join(", ")),
        ];
        for line in lines {
            output::print_stdout(format!("{}\n", escape_line(&line)));
        }
        output::print_stdout(format!("\n{}", self.body));
    }

    /// Opens the pull request. If that fails or is interrupted, the new branch is deleted again.
    async fn create(&self, settings: &Settings) -> Result<()> {
        let github = GitHubRepository::new(settings, &self.repository)?;
        // This also checks the token before anything is changed.
        let default = github.default_branch().await?;
        let branch = NewBranch {
            name: &self.branch,
            base: &self.commit,
            message: &self.message,
        };
        let mut interrupt = std::pin::pin!(interrupted());
        // From here on, an interrupt does not end the process, so that the branch can be deleted.
        tokio::select! {
            biased;
            () = &mut interrupt => return Err(Error::interrupted()),
            () = std::future::ready(()) => {}
        }
        let commit = self.tree.create_branch(branch, &self.patch);
        let commit = commit.map_err(git_failed)?.map_err(branch_refused)?;
        if let Err(error) = self.push(&commit) {
            return Err(self.undo(&commit, false, error));
        }
        let draft = DraftPullRequest {
            title: &self.title,
            head: &self.branch,
            base: self.base.as_ref().unwrap_or(&default),
            body: &self.body,
        };
        let opened = tokio::select! {
            biased;
            () = &mut interrupt => Err(Error::interrupted()),
            opened = github.open(draft) => opened,
        };
        match opened {
            Ok(address) => {
                let lines = [
                    format!("branch: {} (pushed to {})", self.branch, self.remote.name()),
                    format!("commit: {commit}"),
                    format!("pull request: {address}"),
                ];
                for line in lines {
                    output::print_stdout(format!("{}\n", escape_line(&line)));
                }
                Ok(())
            }
            Err(error) => Err(self.undo(&commit, true, error)),
        }
    }

    fn push(&self, commit: &str) -> Result<()> {
        let pushed = self.tree.push(&self.remote, &self.branch, commit);
        pushed.map_err(git_failed)?.map_err(|reason| {
            let name = quote(self.remote.name());
            refused(reason).hint(format!(
                "choose another name with --branch, or check that `git push {name}` works"
            ))
        })
    }

    /// Deletes the new branch. Returns the error that made this necessary.
    fn undo(&self, commit: &str, is_pushed: bool, error: Error) -> Error {
        let (remote, branch) = (quote(self.remote.name()), quote(&self.branch));
        let mut leftovers = Vec::new();
        if is_pushed {
            let deleted = self.tree.delete_pushed(&self.remote, &self.branch, commit);
            if !matches!(deleted, Ok(Ok(()))) {
                leftovers.push(format!("git push {remote} --delete {branch}"));
            }
        }
        if self.tree.delete_branch(&self.branch, commit).is_err() {
            leftovers.push(format!("git branch -D {branch}"));
        }
        match leftovers.is_empty() {
            true => error,
            false => error.hint(format!("delete the branch: {}", leftovers.join(" && "))),
        }
    }
}

fn refused(cause: impl Into<String>) -> Error {
    Error::usage(OPEN).cause(cause.into())
}

fn branch_refused(reason: String) -> Error {
    refused(reason).hint("choose another name with --branch")
}

fn git_failed(error: SandboxError) -> Error {
    Error::from(error).doing(OPEN)
}

/// Returns the error for a remote on another forge, with the commands that push the test there.
fn not_on_github(
    remote: &PushRemote,
    folder: &Path,
    branch: &str,
    server: Option<&RedactedUrl>,
) -> Error {
    let (name, branch) = (remote.name(), quote(branch));
    let server = issues::server_of(&issues::web_base_url(server));
    let cause = format!(
        "the remote {name} is not a repository on {server}: {}",
        remote.url()
    );
    refused(cause).hint(format!(
        "push the test yourself: testwright apply {} --branch {branch} --commit && git push {} {branch}",
        quote_path(folder),
        quote(name)
    ))
}

fn default_branch_name(issue: &Issue) -> String {
    let name = match (issue.number, title_words(&issue.title)) {
        (Some(number), _) => format!("issue-{number}"),
        (None, words) if words.is_empty() => "test".to_owned(),
        (None, words) => words,
    };
    format!("{BRANCH_PREFIX}{name}")
}

/// Returns the text that GitHub shows as a link to the issue: `#12` in the repository of the issue, otherwise its URL.
fn issue_link(
    issue: &Issue,
    url: Option<&str>,
    repository: &str,
    server: Option<&RedactedUrl>,
) -> Option<String> {
    let url = url.filter(|url| !url.contains(char::is_whitespace))?;
    let number = issue.number.filter(|number| {
        let page = url.strip_suffix(&format!("/issues/{number}"));
        let name = page.and_then(|page| issues::github_repository(page, server));
        name.is_some_and(|name| name.eq_ignore_ascii_case(repository))
    });
    Some(number.map_or_else(|| url.to_owned(), |number| format!("#{number}")))
}

/// Returns Markdown that names the issue, with its title if the title of the pull request cuts it.
fn issue_with_title(link: Option<String>, cut_title: Option<&str>) -> Option<String> {
    match (link, cut_title.map(inline_code)) {
        (Some(link), Some(title)) => Some(format!("{link}: {title}")),
        (None, Some(title)) => Some(format!("the issue {title}")),
        (link, None) => link,
    }
}

#[cfg(test)]
mod tests;
