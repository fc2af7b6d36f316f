//! Change coverage ΔC (SWT-bench §3.3) and adequacy (Otter §5) from the lines that ran.
//!
//! ΔC compares how often a line ran with and without the prediction's tests. coverage.py records whether a line ran,
//! but not how often, so the runs are split. A line ran more often if a contributed test itself ran it
//! ([`CoveredLines::called`]). A line that runs during import ran more often if only the contributed tests ran it. A changed
//! test replaces its old version, so lines are counted in both versions ([`CoveredLines::counts`]).
//!
//! [`CoveredLines::called`]: testwright_tools::coverage::CoveredLines::called
//! [`CoveredLines::counts`]: testwright_tools::coverage::CoveredLines::counts

use std::ops::Range;

use testwright_tools::coverage::{Coverage, CoveredLines as Ran};

use super::changed_lines::{ChangedLines, Lines};

/// Coverage of one side, old or new.
#[derive(Debug, Clone, Default)]
pub(super) struct SideCoverage<'a> {
    /// Runs of the unmodified files of the base suite, one each.
    pub base: Vec<&'a Coverage>,
    /// Run with the golden tests.
    pub golden: Option<&'a Coverage>,
    /// Run of only the contributed tests.
    pub own: Option<&'a Coverage>,
    /// Line counts, if the prediction changes tests.
    pub changed: Option<ChangedTestCounts<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ChangedTestCounts<'a> {
    /// Counts of lines run by the changed tests in their old version.
    pub before: &'a Coverage,
    /// Counts of lines run by all contributed tests.
    pub after: &'a Coverage,
}

/// Number of relevant lines that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineCoverage {
    pub lines: u64,
    pub of: u64,
}

impl LineCoverage {
    /// Returns the share of lines that ran, or `None` if no lines are relevant.
    pub(super) fn share(self) -> Option<f64> {
        (self.of > 0).then(|| self.lines as f64 / self.of as f64)
    }
}

/// Reason why lines may have run without being recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CoverageError {
    #[error("no golden tests are available for comparison")]
    NoGoldenTests,
    #[error("coverage was not measured")]
    NotMeasured,
    #[error(
        "{tests}: {lost} processes started by tests were killed before their coverage was written"
    )]
    Lost { tests: &'static str, lost: u32 },
    #[error("{tests}: {problem}")]
    Incomplete {
        tests: &'static str,
        problem: String,
    },
}

/// Computes the ΔC of a prediction.
pub(super) fn change_coverage(
    changed: &ChangedLines,
    old: &SideCoverage<'_>,
    new: &SideCoverage<'_>,
) -> Result<LineCoverage, CoverageError> {
    let (mut covered, mut all) = (0u64, 0u64);
    for (lines, side) in [(&changed.removed, old), (&changed.added, new)] {
        // A side without changed lines needs no coverage.
        if lines.is_empty() {
            continue;
        }
        let golden = side.golden.ok_or(CoverageError::NoGoldenTests)?;
        check_measured(golden, "the golden tests")?;
        for base in &side.base {
            check_complete(base, "the base suite")?;
        }
        if let Some(own) = side.own {
            check_measured(own, "the contributed tests")?;
        }
        if let Some(changes) = side.changed {
            check_measured(changes.before, "the changed tests as they were")?;
            check_measured(changes.after, "the contributed tests, counted")?;
        }
        for (file, line) in each(lines) {
            let in_base = side.base.iter().any(|c| ran(c, file, line));
            if !in_base && !ran(golden, file, line) {
                continue;
            }
            all += 1;
            let is_called = side.own.is_some_and(|c| called(c, file, line));
            let is_more = match side.changed {
                Some(ChangedTestCounts { before, after }) => {
                    let end = end(golden, file, line);
                    let times = |coverage| times(coverage, file, line..end);
                    times(after) > times(before)
                }
                None => is_called,
            };
            // If the tests run the line themselves, it is unknown whether the base suite runs it.
            let is_imported = side.own.is_some_and(|c| ran(c, file, line)) && !is_called;
            covered += u64::from(is_more || (is_imported && !in_base));
        }
    }
    Ok(LineCoverage {
        lines: covered,
        of: all,
    })
}

/// Returns changed lines whose ΔC depends on whether the base suite runs them. The golden tests do not run these lines,
/// or the contributed tests run them only during import. The result is empty if ΔC cannot be computed.
pub(super) fn undecided(lines: &Lines, golden: Option<&Coverage>, own: Option<&Coverage>) -> Lines {
    let mut undecided_lines = Lines::new();
    let Some(golden) = golden.filter(|golden| check_measured(golden, "").is_ok()) else {
        return undecided_lines;
    };
    if own.is_some_and(|own| check_measured(own, "").is_err()) {
        return undecided_lines;
    }
    for (path, line) in each(lines) {
        let is_statement =
            file(golden, path).is_some_and(|f| f.statements.binary_search(&line).is_ok());
        let is_imported = own.is_some_and(|own| ran(own, path, line) && !called(own, path, line));
        if is_statement && (is_imported || !ran(golden, path, line)) {
            undecided_lines
                .entry(path.to_owned())
                .or_default()
                .insert(line);
        }
    }
    undecided_lines
}

/// Returns whether the tests themselves run one of the lines.
pub(super) fn any_called(lines: &Lines, own: Option<&Coverage>) -> bool {
    own.is_some_and(|own| each(lines).any(|(path, line)| called(own, path, line)))
}

/// Changed lines that are statements, and how many of them the contributed tests were seen to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AdequacyLines {
    pub covered: LineCoverage,
    /// Why more lines may have run.
    pub problem: Option<CoverageError>,
}

/// Computes the adequacy of a prediction from the lines its contributed tests ran on the old and the new code. Without
/// a prediction, the runs of the golden tests show which lines are statements.
pub(super) fn adequacy(
    changed: &ChangedLines,
    own: [Option<&Coverage>; 2],
    golden: [Option<&Coverage>; 2],
) -> AdequacyLines {
    let (mut covered, mut all) = (0u64, 0u64);
    let mut problem = None;
    for (at, lines) in [&changed.removed, &changed.added].into_iter().enumerate() {
        if lines.is_empty() {
            continue;
        }
        let own = own[at];
        let measurement = match own {
            Some(own) => check_measured(own, "the contributed tests"),
            None => Err(CoverageError::NotMeasured),
        };
        problem = problem.or(measurement.err());
        for (path, line) in each(lines) {
            // A run that was killed early recorded no statements.
            let file_coverage = own.and_then(|own| file(own, path));
            let file_coverage = file_coverage.filter(|file| !file.statements.is_empty());
            let file_coverage = file_coverage.or_else(|| file(golden[at]?, path));
            if file_coverage.is_some_and(|file| file.statements.binary_search(&line).is_ok()) {
                all += 1;
                covered += u64::from(own.is_some_and(|own| ran(own, path, line)));
            }
        }
    }
    let covered = LineCoverage {
        lines: covered,
        of: all,
    };
    AdequacyLines { covered, problem }
}

fn each(lines: &Lines) -> impl Iterator<Item = (&str, u32)> {
    lines
        .iter()
        .flat_map(|(file, lines)| lines.iter().map(move |line| (file.as_str(), *line)))
}

fn check_measured(coverage: &Coverage, tests: &'static str) -> Result<(), CoverageError> {
    match coverage.lost {
        0 => check_complete(coverage, tests),
        lost => Err(CoverageError::Lost { tests, lost }),
    }
}

/// Checks the coverage of the first process. That is enough for the base suite: lines run only by its child processes
/// cannot remove a line that the golden tests run.
fn check_complete(coverage: &Coverage, tests: &'static str) -> Result<(), CoverageError> {
    match coverage.problem.clone() {
        Some(problem) => Err(CoverageError::Incomplete { tests, problem }),
        None => Ok(()),
    }
}

fn file<'a>(coverage: &'a Coverage, file: &str) -> Option<&'a Ran> {
    coverage.files.get(file)
}

fn ran(coverage: &Coverage, path: &str, line: u32) -> bool {
    file(coverage, path).is_some_and(|f| f.executed.binary_search(&line).is_ok())
}

/// Returns the end of a statement: the line where the next statement begins.
fn end(coverage: &Coverage, path: &str, line: u32) -> u32 {
    let statements = file(coverage, path).map_or(&[][..], |f| f.statements.as_slice());
    let next = statements.get(statements.partition_point(|at| *at <= line));
    next.copied().unwrap_or(u32::MAX)
}

/// Returns how often a statement ran. Python before 3.8 may report any of its lines.
fn times(coverage: &Coverage, path: &str, lines: Range<u32>) -> u64 {
    let counts = file(coverage, path).map(|f| f.counts.range(lines));
    let times = counts.into_iter().flatten().map(|(_, times)| *times);
    times.max().unwrap_or_default()
}

fn called(coverage: &Coverage, path: &str, line: u32) -> bool {
    file(coverage, path).is_some_and(|f| f.called.binary_search(&line).is_ok())
}

#[cfg(test)]
mod tests;
