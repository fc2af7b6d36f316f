//! The lines that `search` shows, and their distribution over files and classes.

use crate::rule_based::test_body::{value_of, words};

/// A line that `search` shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hit {
    path: String,
    pub line: usize,
    text: String,
    /// Function or class around the line, or the one that it defines.
    pub scope: String,
}

impl Hit {
    /// Returns the class and the name of the test that the line is in.
    pub(super) fn test(&self) -> Option<(&str, &str)> {
        let mut start = 0;
        for name in self.scope.split('.') {
            if name.starts_with("test") {
                return Some((self.scope[..start].trim_end_matches('.'), name));
            }
            start += name.len() + 1;
        }
        None
    }
}

/// The lines in an answer of `search`.
#[derive(Debug, Default)]
pub(super) struct Hits {
    pub hits: Vec<Hit>,
    /// Files with the number of their lines that it does not show.
    unseen: Vec<(String, u32)>,
    /// Number of files with matches.
    files: usize,
    /// Whether there may be further files.
    is_cut: bool,
}

impl Hits {
    pub(super) fn read(answer: &str) -> Hits {
        let first_line = answer.lines().next().unwrap_or_default();
        let files = first_line.rsplit_once(" in ");
        let files = files.and_then(|(_, files)| files.split(' ').next()?.parse().ok());
        let mut all = Hits {
            is_cut: answer.contains(" matches shown. Narrow it "),
            files: files.unwrap_or_default(),
            ..Hits::default()
        };
        let (mut path, mut scope) = (String::new(), String::new());
        let count = |text: &str| text.split(' ').next().and_then(|n| n.parse::<u32>().ok());
        for line in answer.lines() {
            let numbered = line.split_once(": ");
            let numbered = numbered.and_then(|(n, text)| Some((n.parse::<usize>().ok()?, text)));
            if let Some((line, text)) = numbered {
                scope = scope_of(text, &scope);
                all.hits.push(Hit {
                    path: path.clone(),
                    line,
                    text: text.to_owned(),
                    scope: scope.clone(),
                });
            } else if let Some(around) = line.strip_prefix("in ") {
                scope = around.to_owned();
            } else if let Some(more) = line.strip_prefix("  … ").and_then(count) {
                all.unseen.push((path.clone(), more));
            } else if let Some((file, rest)) = line.trim_start().split_once(".py: ") {
                all.unseen
                    .push((format!("{file}.py"), count(rest).unwrap_or(1)));
            } else if line.ends_with(".py") && !line.starts_with(' ') {
                path = line.to_owned();
                scope.clear();
            }
        }
        all
    }

    /// Returns whether the answer shows all matches in a file.
    pub(super) fn is_complete_for(&self, path: &str) -> bool {
        let is_cut = self.unseen.iter().any(|(p, _)| p == path);
        !is_cut && (!self.is_cut || self.hits.iter().any(|hit| hit.path == path))
    }

    /// Returns each file's share of the matches, below 1. Square roots keep large files from winning by their size.
    pub(super) fn shares(&self) -> Vec<(&str, f64)> {
        let shown = self.hits.iter().map(|hit| (hit.path.as_str(), 1));
        let unseen = self.unseen.iter();
        let unseen = unseen.map(|(path, count)| (path.as_str(), *count));
        let mut shares = root_counts(shown.chain(unseen));
        let sum: f64 = shares.iter().map(|(_, root)| root).sum();
        // The answer may leave out files. One more match elsewhere makes a single match weak evidence.
        let files = self.files.max(shares.len()) as f64;
        let total = sum * files / shares.len().max(1) as f64 + 1.0;
        for (_, share) in &mut shares {
            *share /= total;
        }
        shares
    }

    /// Returns the last line of the class, or of the functions outside of classes, that uses the terms most. Each
    /// term has a weight; the fewer classes use it, the more it counts for each of them.
    pub(super) fn related(&self, path: &str, terms: &[(&str, f64)]) -> Option<&Hit> {
        let hits = self.hits.iter().filter(|hit| hit.path == path);
        let lines: Vec<(&str, &Hit, Vec<String>)> = hits
            .filter_map(|hit| Some((hit.test()?.0, hit, words(&hit.text))))
            .collect();
        let mut points: Vec<(&str, f64)> = Vec::new();
        for (term, weight) in terms {
            let uses = lines
                .iter()
                .filter(|(_, _, words)| words.iter().any(|word| word == term));
            let roots = root_counts(uses.map(|(class, _, _)| (*class, 1)));
            let sum: f64 = roots.iter().map(|(_, root)| root).sum();
            for (class, root) in roots {
                *value_of(&mut points, class) += weight * root / sum;
            }
        }
        let (class, _) = points.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut lines = lines.into_iter().rev();
        lines.find_map(|(c, hit, _)| (c == class).then_some(hit))
    }
}

/// Returns the square root of the sum of the counts for each key, in the order of the keys' first counts.
fn root_counts<'a>(counts: impl Iterator<Item = (&'a str, u32)>) -> Vec<(&'a str, f64)> {
    let mut sums: Vec<(&str, u32)> = Vec::new();
    for (key, count) in counts {
        *value_of(&mut sums, key) += count;
    }
    sums.into_iter()
        .map(|(key, sum)| (key, f64::from(sum).sqrt()))
        .collect()
}

/// Returns the scope of a line that `search` shows; `before` is the one that it names, or that of the line before.
fn scope_of(text: &str, before: &str) -> String {
    let code = text.trim_start();
    let indent = text.len() - code.len();
    let code = code.strip_prefix("async ").unwrap_or(code);
    let defined = code
        .strip_prefix("def ")
        .or_else(|| code.strip_prefix("class "));
    let name = defined.and_then(|d| d.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    // The scope of a definition is not named if it is also that of the line before.
    let depth = match name {
        Some(_) => indent.div_ceil(4),
        None if indent == 0 => 0,
        None => usize::MAX,
    };
    let outer = before
        .split('.')
        .filter(|part| !part.is_empty())
        .take(depth);
    outer.chain(name).collect::<Vec<_>>().join(".")
}
