//! Removes duplicates from what a reviewer is shown.

use testwright_tools::outcomes::text::more_parameter_sets;
use testwright_tools::python::Excerpt;

use super::super::fix_trials::sections;
use crate::gate::TestEvidence;

/// Percentage of an excerpt's lines that must be in a patch for the patch to show the excerpt.
const MIN_SHOWN_PERCENT: usize = 80;

/// Returns a patch without the lines above its hunks that name no file.
pub(super) fn without_headers(patch: &str) -> String {
    let mut output: Vec<&str> = Vec::new();
    for section in sections(patch) {
        // In some patches only the first line names the file.
        let names_file = section.iter().any(|line| line.starts_with("+++ "));
        let head = section.iter().take_while(|line| !line.starts_with("@@"));
        let head = head.filter(|line| {
            !names_file || !(line.starts_with("diff --git ") || line.starts_with("index "))
        });
        output.extend(head);
        output.extend(section.iter().skip_while(|line| !line.starts_with("@@")));
    }
    output.join("\n")
}

/// Shortens a patch of tests. Context lines are omitted around complete functions, classes and imports that
/// it adds.
pub(super) fn shorten_test_patch(patch: &str) -> String {
    let mut output = Vec::new();
    for section in sections(patch) {
        let head = section.iter().take_while(|line| !line.starts_with("@@"));
        let hunks = &section[head.count()..];
        output.extend_from_slice(&section[..section.len() - hunks.len()]);
        for hunk in hunks.chunk_by(|_, next| !next.starts_with("@@")) {
            let Some((_, lines)) = hunk.split_first() else {
                continue;
            };
            if !adds_whole_definitions(lines) {
                output.extend_from_slice(hunk);
                continue;
            }
            // The heading would name the function above.
            output.push("@@");
            let mut added: Vec<&str> = (lines.iter().copied())
                .filter(|line| line.starts_with('+'))
                .collect();
            // Of two equal decorators, a diff may report the lower one as new.
            let is_decorator = |line: &&&str| line[1..].trim_start().starts_with('@');
            let below = added.iter().rev().take_while(is_decorator).count();
            added.rotate_right(below);
            let is_blank = |line: &&str| line[1..].trim().is_empty();
            let first = added.iter().take_while(|line| is_blank(line)).count();
            let last = added.iter().rev().take_while(|line| is_blank(line)).count();
            output.extend_from_slice(&added[first..added.len() - last]);
        }
    }
    without_headers(&output.join("\n"))
}

fn adds_whole_definitions(lines: &[&str]) -> bool {
    let mut runs = lines.chunk_by(|a, b| a.starts_with('+') == b.starts_with('+'));
    let begins = |line: &str| {
        let code = line[1..].trim_start();
        let words = ["def ", "async def ", "class ", "@", "import ", "from "];
        words.iter().any(|word| code.starts_with(word))
    };
    !lines.iter().any(|line| line.starts_with('-'))
        && runs.all(|run| {
            let mut code = run.iter().filter(|line| !line[1..].trim().is_empty());
            !run[0].starts_with('+') || code.next().is_some_and(|line| begins(line))
        })
}

/// Returns only the changes of a patch, each with the line before and after it, for a reader who has the
/// code.
pub(super) fn changed_lines_only(patch: &str) -> String {
    let brief = without_headers(patch);
    let lines: Vec<&str> = brief.lines().collect();
    let is_change = |at: Option<usize>| {
        let line = at.and_then(|at| lines.get(at));
        line.is_some_and(|line| {
            (line.starts_with('+') && !line.starts_with("+++ "))
                || (line.starts_with('-') && !line.starts_with("--- "))
        })
    };
    let relevant_lines = lines.iter().enumerate().filter(|(at, line)| {
        let is_context = line.is_empty() || line.starts_with(' ');
        !is_context
            || (!line.trim().is_empty()
                && (is_change(at.checked_sub(1)) || is_change(Some(at + 1))))
    });
    // The counts in a hunk's header are for all its lines.
    let relevant_lines = relevant_lines.map(|(_, line)| match line.strip_prefix("@@ ") {
        Some(_) => hunk_head(line),
        None => (*line).to_owned(),
    });
    relevant_lines.collect::<Vec<_>>().join("\n")
}

/// Returns `@@ FUNCTION`.
fn hunk_head(line: &str) -> String {
    match line.rsplit_once("@@ ") {
        Some((_, function)) if !function.starts_with('-') => format!("@@ {function}"),
        _ => "@@".to_owned(),
    }
}

/// Removes excerpts that a patch of the same file shows almost completely.
pub(super) fn exclude_shown_in_patches(excerpts: Vec<Excerpt>, patches: &[&str]) -> Vec<Excerpt> {
    let is_shown = |excerpt: &Excerpt, patch: &str| {
        let name = format!("--- a/{}", excerpt.path);
        let old: Vec<&str> = (sections(patch).into_iter())
            .filter(|section| section.contains(&name.as_str()))
            .flatten()
            .filter_map(|line| line.strip_prefix([' ', '-']))
            .collect();
        let lines = excerpt.source.lines();
        let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
        let matching_lines = lines.iter().filter(|line| old.contains(line)).count();
        matching_lines * 100 >= lines.len() * MIN_SHOWN_PERCENT
    };
    (excerpts.into_iter())
        .filter(|excerpt| !patches.iter().any(|patch| is_shown(excerpt, patch)))
        .collect()
}

/// Merges lines `ID: FAILURE` of one test's parameter sets that fail the same way.
pub(super) fn folded(lines: &[String]) -> Vec<String> {
    // Each entry has a function, the text after the parameters, and a count of further ones.
    let mut entries: Vec<(&str, &str, &str, usize)> = Vec::new();
    for line in lines {
        let (function, rest) = line.split_once('[').unwrap_or((line, ""));
        let failure = rest.split_once("]: ").map_or("", |(_, failure)| failure);
        let mut earlier_entries = entries.iter_mut();
        let alike = earlier_entries
            .find(|(_, f, other, _)| !failure.is_empty() && (*f, *other) == (function, failure));
        match alike {
            Some((.., more)) => *more += 1,
            None => entries.push((line, function, failure, 0)),
        }
    }
    entries
        .into_iter()
        .map(|(line, _, _, more)| match more {
            0 => line.to_owned(),
            1 => format!("{line}; 1 more parameter set alike"),
            more => format!("{line}; {more} more parameter sets alike"),
        })
        .collect()
}

/// Groups each test's parameter sets that fail at the same line with the same exception. Returns one of each,
/// and a line that names the others.
pub(super) fn group_parameter_failures(failing: &[TestEvidence]) -> Vec<(&TestEvidence, String)> {
    let mut groups: Vec<(&TestEvidence, Vec<&str>)> = Vec::new();
    let function = |test: &TestEvidence| test.id.split_once('[').map(|(of, _)| of.to_owned());
    let place = |test: &TestEvidence| test.frame.as_ref().map(|f| (f.file.clone(), f.line));
    for test in failing {
        let is_alike = |(first, _): &&mut (&TestEvidence, Vec<&str>)| {
            function(first).is_some()
                && function(first) == function(test)
                && first.exception == test.exception
                && place(first) == place(test)
        };
        match groups.iter_mut().find(is_alike) {
            Some((_, others)) => others.push(&test.id),
            None => groups.push((test, Vec::new())),
        }
    }
    groups
        .into_iter()
        .map(|(first, others)| match others.is_empty() {
            true => (first, String::new()),
            false => (first, more_parameter_sets(others.iter().copied())),
        })
        .collect()
}

#[cfg(test)]
mod tests;
