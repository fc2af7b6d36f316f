//! The search through releases and commits.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use testwright_sandboxes::hex::hex;
use testwright_sandboxes::repository;

use super::answer::{Point, Verdict};
use super::bisection::{self, Boundary};
use super::prober::{AcceptedTests, Prober};
use super::releases::Releases;
use super::report::{Change, Entry, HistoryReport};
use super::repository_history::{History, run_blocking};
use crate::setup::{RepositoryLocation, Setup, open_options};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// Expected number of commits in the bisection between two releases.
const COMMITS_PER_CHANGE: usize = 5;

/// A part of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Releases, without the commits between them.
    Tags,
    /// Introduction of the bug.
    Introduced,
    /// Fix of the bug.
    Fixed,
}

/// Options of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryOptions {
    /// Branch in which the fix is searched; `None` for the repository's default branch.
    pub branch: Option<String>,
    /// Whether pre-releases count as releases.
    pub pre_releases: bool,
    /// Whether to run the tests on every release.
    pub all_tags: bool,
    /// Maximum number of commits on which the tests run.
    pub max_commits: usize,
    /// The only part of the search to make; `None` for all.
    pub only: Option<Part>,
}

/// An event of the search.
#[derive(Debug)]
pub enum HistoryEvent<'a> {
    /// The tests are about to run on a commit.
    Probing {
        /// Number of the commit, counted from 1.
        number: usize,
        /// Expected number of commits.
        expected: usize,
        /// Version or abbreviated hash.
        name: &'a str,
    },
    /// A commit was answered. The report can be stored, to resume from it.
    Answered {
        /// The new answer.
        entry: &'a Entry,
        /// Report as of now.
        report: &'a HistoryReport,
    },
}

/// Receives the events of the search. An error ends it.
pub type Watcher<'a> = &'a (dyn Fn(HistoryEvent<'_>) -> Result<()> + Sync);

/// Searches the history of a repository for the releases and commits on which the accepted tests fail.
///
/// Answers of an `earlier` report on the same tests are not asked again, except those that lack a verdict for a reason
/// outside of the code.
///
/// # Errors
///
/// Fails if the repository has no history, the tests do not fail on their own commit, the machine fails, or an interrupt
/// arrives.
pub async fn investigate(
    setup: &Setup<'_>,
    settings: &Settings,
    place: &RepositoryLocation,
    tests: &AcceptedTests,
    options: &HistoryOptions,
    earlier: Option<HistoryReport>,
    watcher: Watcher<'_>,
) -> Result<HistoryReport> {
    let (prober, source) = Prober::new(setup, place, tests).await?;
    let Some(base) = source.commit else {
        let cause = "the code is not a commit of a git repository";
        return Err(without_history(cause));
    };
    let (location, branch) = (place.location.clone(), options.branch.clone());
    let (cache, open) = (settings.cache.clone(), open_options(settings));
    let pre_releases = options.pre_releases;
    let history = run_blocking(move || {
        let repository = repository::open(&location, branch.as_deref(), &cache, &open)?;
        History::read(repository, branch.as_deref(), &base, pre_releases)
    });
    let history = history.await?;
    if history.is_shallow {
        return Err(
            without_history("it is a shallow clone, which lacks older commits")
                .hint("run `git fetch --unshallow --tags` in it, or pass the repository's URL"),
        );
    }
    let digest = digest(tests, &history.base.commit, settings);
    let earlier = earlier.filter(|earlier| earlier.digest == digest);
    let kept = |part: Part, change: fn(&HistoryReport) -> Option<Change>| {
        let is_skipped = options.only.is_some_and(|only| only != part);
        let earlier = earlier.as_ref().filter(|earlier| {
            is_skipped && earlier.head == history.head.commit && earlier.branch == history.branch
        });
        earlier.and_then(change)
    };
    let mut investigation = Investigation {
        prober,
        options,
        watcher,
        names: history.names(),
        answers: BTreeMap::new(),
        asked: 0,
        later: 0,
        report: HistoryReport {
            digest,
            base: history.base.commit.clone(),
            branch: history.branch.clone(),
            head: history.head.commit.clone(),
            // Parts that are not searched now stay as they were.
            introduced: kept(Part::Introduced, |earlier| earlier.introduced.clone()),
            fixed: kept(Part::Fixed, |earlier| earlier.fixed.clone()),
            tests: tests.ids().map(str::to_owned).collect(),
            ..HistoryReport::default()
        },
        history,
    };
    let answers = earlier.into_iter().flat_map(|earlier| earlier.answers);
    for entry in answers.filter(|entry| !entry.answer.is_external) {
        investigation.add(entry);
    }
    investigation.run().await?;
    Ok(investigation.report())
}

/// Returns a digest of everything that the answers depend on besides the commit. The failures for which the tests were
/// accepted are those of the base commit.
fn digest(tests: &AcceptedTests, base: &str, settings: &Settings) -> String {
    let run = &settings.run;
    let ids: Vec<&str> = tests.ids().collect();
    let image = (&run.image, &run.dockerfile);
    let options = (&run.python, image, &run.project, &settings.additions);
    let parts = format!("{base} {ids:?} {options:?} {}", tests.patch);
    hex(&Sha256::digest(parts.as_bytes()))
}

fn without_history(cause: &str) -> Error {
    Error::usage("read the history of the repository")
        .cause(cause)
        .hint("pass a git repository with --repo")
}

struct Investigation<'a> {
    prober: Prober<'a>,
    options: &'a HistoryOptions,
    watcher: Watcher<'a>,
    history: History,
    /// Versions of releases, by commit.
    names: BTreeMap<String, String>,
    /// Answers by commit.
    answers: BTreeMap<String, Entry>,
    /// Number of commits on which the tests ran.
    asked: usize,
    /// Expected number of commits in later parts of the search.
    later: usize,
    /// Report without the answers.
    report: HistoryReport,
}

impl Investigation<'_> {
    async fn run(&mut self) -> Result<()> {
        let only = self.options.only;
        let (base, head) = (self.history.base.clone(), self.history.head.clone());
        let Releases { older, newer, .. } = &self.history.releases;
        let newest = newer.last().or(older.last()).cloned();
        let older: Vec<Point> = older.iter().chain([&base]).cloned().collect();
        let mut newer: Vec<Point> = [&base].into_iter().chain(newer).cloned().collect();
        // A pass before the base commit is not a fix.
        let since_base = self.history.commits_between(Some(&base), &head);
        if !since_base.await?.is_empty() {
            newer.push(head.clone());
        }
        let for_commits = match only {
            Some(Part::Tags) => 0,
            _ => COMMITS_PER_CHANGE,
        };
        let for_older = bisection::questions(older.len()) + for_commits;
        let for_newer = bisection::questions(newer.len()) + for_commits;

        self.later = for_older + for_newer;
        self.ask(&base, 3).await?;
        self.check_base(&base)?;
        if only != Some(Part::Introduced) {
            self.ask(&head, 2).await?;
            if let Some(newest) = newest {
                self.ask(&newest, 1).await?;
            }
        }
        if self.options.all_tags {
            let all: Vec<Point> = self.history.releases.all().cloned().collect();
            for (number, release) in all.iter().enumerate() {
                self.ask(release, all.len() - number).await?;
            }
        }
        // The fix comes first, because old releases that cannot be built may use up the limit on commits.
        if only != Some(Part::Introduced) {
            self.find_pass(&newer).await?;
            let passes = |point: &Point| self.verdict(point) == Some(Verdict::Passes);
            if let Some(end) = newer.iter().rposition(passes) {
                self.later = for_older + for_commits;
                let until = &newer[..=end];
                let boundary = self.search(until, Verdict::Fails).await?;
                self.later = for_older;
                let change = self.change(until, boundary, Verdict::Fails).await?;
                self.report.fixed = Some(change);
                self.note_changes(&newer);
            }
        }
        if only != Some(Part::Fixed) {
            self.later = for_commits;
            let boundary = self.search(&older, Verdict::Passes).await?;
            self.later = 0;
            let change = self.change(&older, boundary, Verdict::Passes).await?;
            self.report.introduced = Some(change);
            self.note_changes(&older);
        }
        Ok(())
    }

    /// Checks that the tests fail on their own commit. Otherwise no other answer has a meaning.
    fn check_base(&self, base: &Point) -> Result<()> {
        let answer = self.answers.get(&base.commit).map(|entry| &entry.answer);
        let reason: &str = match answer {
            Some(answer) if answer.verdict == Verdict::Fails => return Ok(()),
            Some(answer) if answer.verdict == Verdict::Passes => "the tests pass",
            Some(answer) => &answer.reason,
            None => "the tests did not run",
        };
        let message = format!("repeat the accepted failure on {}", base.short());
        Err(Error::nothing(message).cause(reason))
    }

    /// Searches for a release that passes if the newest ones have no verdict. The tests may fit only the releases that
    /// follow their own commit.
    async fn find_pass(&mut self, newer: &[Point]) -> Result<()> {
        let passes = |point: &Point| self.verdict(point) == Some(Verdict::Passes);
        if !newer.iter().any(passes) {
            let newest_first: Vec<Point> = newer.iter().rev().cloned().collect();
            self.search(&newest_first, Verdict::Passes).await?;
        }
        Ok(())
    }

    /// Bisects points whose last one has the verdict after the change.
    async fn search(&mut self, points: &[Point], before: Verdict) -> Result<Boundary> {
        loop {
            let verdicts: Vec<_> = points.iter().map(|point| self.verdict(point)).collect();
            let expected = bisection::expected(&verdicts, before);
            let is_known = match bisection::next(&verdicts, before) {
                Some(at) => self.ask(&points[at], expected).await?,
                None => false,
            };
            if !is_known {
                return Ok(bisection::boundary(&verdicts, before));
            }
        }
    }

    /// Describes a change between two releases, and bisects the commits between them.
    async fn change(
        &mut self,
        points: &[Point],
        boundary: Boundary,
        before: Verdict,
    ) -> Result<Change> {
        let start = boundary.before.map(|at| &points[at]);
        let end = &points[boundary.after];
        let version = |point: &Point| self.names.get(&point.commit).cloned();
        let mut change = Change {
            bounded: start.is_some(),
            last_release_before: start.and_then(version),
            first_release_after: version(end),
            commits: Vec::new(),
        };
        if let Some(at) = boundary.before
            && at + 1 < boundary.after
        {
            let unknown = points[at + 1..boundary.after].iter();
            let unknown: Vec<&str> = unknown.map(Point::label).collect();
            let note = format!("Nothing is known about {}", unknown.join(", "));
            self.report.notes.push(note);
        }
        let is_searched = start.is_some() || points.len() == 1;
        if !is_searched || self.options.only == Some(Part::Tags) {
            return Ok(change);
        }
        let commits = self.history.commits_between(start, end).await?;
        let Some(first) = commits.first() else {
            return Ok(change);
        };
        let inner = self.search(&commits, before).await?;
        change.bounded |= inner.before.is_some();
        match (inner.before, start) {
            (Some(last), _) => {
                change.commits = commits[last + 1..=inner.after].to_vec();
                if let [merge] = &commits[last + 1..=inner.after]
                    && let Some(commit) = self.merged_change(&commits[last], merge, before).await?
                {
                    let (short, merge) = (commit.short(), merge.short());
                    let note = format!("{short} was merged by {merge}");
                    self.report.notes.push(note);
                    change.commits = vec![commit];
                }
            }
            (None, Some(start)) if self.verdict(first) == Some(before.opposite()) => {
                let verdict = before.opposite().as_str();
                let (fork, start) = (first.short(), start.label());
                let note =
                    format!("The commit {fork}, before {start} branched off, {verdict} already");
                self.report.notes.push(note);
            }
            (None, Some(_)) => change.commits = commits[..=inner.after].to_vec(),
            (None, None) => {}
        }
        Ok(change)
    }

    /// Bisects the commits that a merge added, and those of merges among them. Returns the one that made the change, unless
    /// several could have.
    async fn merged_change(
        &mut self,
        last: &Point,
        merge: &Point,
        before: Verdict,
    ) -> Result<Option<Point>> {
        let (mut last, mut merge, mut found) = (last.clone(), merge.clone(), None);
        loop {
            let mut merged = self.history.merged_commits(&last, &merge).await?;
            if merged.is_empty() {
                return Ok(found);
            }
            // The last of these points must have the verdict after the change.
            merged.push(merge.clone());
            let boundary = self.search(&merged, before).await?;
            match boundary.before {
                Some(at) if at + 1 == boundary.after && boundary.after + 1 < merged.len() => {
                    last = merged[at].clone();
                    merge = merged[boundary.after].clone();
                    found = Some(merge.clone());
                }
                _ => return Ok(found),
            }
        }
    }

    /// Adds a note if the verdict changes more than once.
    fn note_changes(&mut self, points: &[Point]) {
        let verdicts = (points.iter()).filter_map(|point| Some((point, self.verdict(point)?)));
        let known = verdicts.filter(|(_, verdict)| *verdict != Verdict::CannotTell);
        let mut changes: Vec<(&Point, Verdict)> = known.collect();
        changes.dedup_by_key(|(_, verdict)| *verdict);
        if changes.len() > 2 {
            let text = |(point, verdict): &(&Point, Verdict)| {
                format!("{} {}", point.label(), verdict.as_str())
            };
            let texts: Vec<String> = changes.iter().map(text).collect();
            let note = format!("The verdict changes more than once: {}", texts.join(", "));
            self.report.notes.push(note);
        }
    }

    fn verdict(&self, point: &Point) -> Option<Verdict> {
        let entry = self.answers.get(&point.commit)?;
        Some(entry.answer.verdict)
    }

    /// Runs the tests on a commit, unless its answer is known. Returns whether it is known now: the number of commits is
    /// limited. `remaining` is the expected number of commits in this part of the search.
    async fn ask(&mut self, point: &Point, remaining: usize) -> Result<bool> {
        if self.answers.contains_key(&point.commit) {
            return Ok(true);
        }
        if self.asked >= self.options.max_commits {
            self.report.incomplete = true;
            return Ok(false);
        }
        let name = self.names.get(&point.commit).map(String::as_str);
        (self.watcher)(HistoryEvent::Probing {
            number: self.asked + 1,
            expected: self.asked + remaining.max(1) + self.later,
            name: name.unwrap_or(point.label()),
        })?;
        self.asked += 1;
        let answer = self.prober.probe(&point.commit).await?;
        let point = point.clone();
        let entry = self.add(Entry { point, answer });
        (self.watcher)(HistoryEvent::Answered {
            entry: &entry,
            report: &self.report(),
        })?;
        Ok(true)
    }

    /// Adds an answer under the version of its commit, if it has one.
    fn add(&mut self, mut entry: Entry) -> Entry {
        let commit = entry.point.commit.clone();
        if let Some(name) = self.names.get(&commit) {
            entry.point.name = Some(name.clone());
        }
        self.answers.insert(commit, entry.clone());
        entry
    }

    /// Returns the report as of now.
    fn report(&self) -> HistoryReport {
        let mut report = self.report.clone();
        report.answers = self.answers.values().cloned().collect();
        report.answers.sort_by_key(|entry| entry.point.committed);
        report.summarize();
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_count_for_their_base_only() {
        let tests = AcceptedTests {
            patch: String::new(),
            failing: Vec::new(),
        };
        let digest = |base: &str| digest(&tests, base, &Settings::default());
        assert_eq!(digest("a"), digest("a"));
        assert_ne!(digest("a"), digest("b"));
    }
}
