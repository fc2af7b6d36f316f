//! Bisection of a list of commits, some of which cannot be tested.
//!
//! A list goes from the oldest commit to the newest. Its last commit has the verdict after the change. The search is for
//! the newest change, so earlier changes in the list do not mislead it.

use super::answer::Verdict;

/// Maximum commits without a verdict while no commit is known to precede the change. Old releases often cannot be built.
const MAX_SKIPS_WITHOUT_START: usize = 6;

/// Knowledge about the newest change of the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Boundary {
    /// Last commit before the change; `None` if none is known.
    pub before: Option<usize>,
    /// First commit that is known to follow the change.
    pub after: usize,
}

/// Returns what the verdicts say about the newest change away from `before`. `None` stands for a commit that was not
/// asked yet.
pub(super) fn boundary(verdicts: &[Option<Verdict>], before: Verdict) -> Boundary {
    let last = verdicts.iter().rposition(|at| *at == Some(before));
    let first = last.map_or(0, |last| last + 1);
    let mut rest = verdicts.iter().skip(first);
    let after = rest.position(|at| *at == Some(before.opposite()));
    Boundary {
        before: last,
        after: after.map_or(verdicts.len().saturating_sub(1), |at| first + at),
    }
}

/// Returns the next commit to ask, or `None` if nothing more can be found out.
pub(super) fn next(verdicts: &[Option<Verdict>], before: Verdict) -> Option<usize> {
    let Boundary {
        before: last,
        after,
    } = boundary(verdicts, before);
    if last.is_none() && after > 0 && verdicts[0].is_none() {
        return Some(0);
    }
    let open = open(verdicts, before);
    let inside = &verdicts[last.map_or(0, |last| last + 1)..after];
    let skips = inside.iter().flatten().count();
    if last.is_none() {
        let known = verdicts[after..].iter().flatten().count();
        let nearest = inside.iter().rposition(Option::is_some)?;
        return match skips < MAX_SKIPS_WITHOUT_START {
            true => without_start(&open, nearest, after, known),
            false => None,
        };
    }
    let at = open.len() as f64 * fraction(skips);
    open.get(at as usize).copied()
}

/// Returns the next commit to ask while no commit is known to precede the change, and the oldest has no verdict.
///
/// The nearer a commit is to one with a verdict, the more likely it has one, too. So the search starts at the end of the
/// list, and its steps double with each of the `known` verdicts there.
fn without_start(open: &[usize], nearest: usize, after: usize, known: usize) -> Option<usize> {
    let step = 1_usize.checked_shl(known.saturating_sub(1) as u32)?;
    let target = match after - nearest {
        // The commits before `after` have no verdict.
        1 => nearest.saturating_sub(step),
        distance => (after.saturating_sub(step)).max(nearest + distance / 2),
    };
    let older = open.iter().rev().find(|at| **at <= target);
    older.or(open.first()).copied()
}

/// Returns the commits that may still be asked.
fn open(verdicts: &[Option<Verdict>], before: Verdict) -> Vec<usize> {
    let known = boundary(verdicts, before);
    let first = known.before.map_or(0, |last| last + 1);
    let inside = first..known.after;
    inside.filter(|at| verdicts[*at].is_none()).collect()
}

/// Returns the expected number of further questions.
pub(super) fn expected(verdicts: &[Option<Verdict>], before: Verdict) -> usize {
    questions(open(verdicts, before).len())
}

/// Returns the number of questions that a bisection of this many commits takes.
pub(super) fn questions(commits: usize) -> usize {
    (usize::BITS - commits.leading_zeros()) as usize
}

/// Returns the position to ask at after this many commits without a verdict: 1/2, 3/4, 1/4, 7/8, 3/8, …
///
/// Neighbours of such a commit often have the same problem, so the search moves away from it (van der Corput's
/// sequence).
fn fraction(skips: usize) -> f64 {
    let (mut rest, mut digit, mut sum) = (skips + 1, 0.5, 0.0);
    while rest > 0 {
        sum += digit * (rest % 2) as f64;
        rest /= 2;
        digit /= 2.0;
    }
    match skips {
        0 => sum,
        _ => 1.0 - sum,
    }
}

#[cfg(test)]
mod tests;
