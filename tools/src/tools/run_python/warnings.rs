//! Warnings in what a snippet printed: libraries give dozens of them while they are imported.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

/// Warnings of the repository's code that are shown: the last ones, since imports come first. Those of libraries are the same
/// each time.
const SHOWN: usize = 3;

/// `path:line: Category: message`, as Python's default format has it.
static WARNING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(.+):\d+: (\w*Warning): ").ok());

/// What was printed, with all warnings but the last left out and counted. Those that arise in the snippet itself stay,
/// and all stay if the snippet has to do with warnings.
pub fn folded(stderr: &str, code: &str) -> String {
    let speaks_of_them = code.to_lowercase().contains("warn");
    let Some(pattern) = WARNING.as_ref().filter(|_| !speaks_of_them) else {
        return stderr.to_owned();
    };
    let lines: Vec<&str> = stderr.split_inclusive('\n').collect();
    // Where each begins, how many lines it has (the line of source below is part of it), and its category.
    let mut found: Vec<(usize, usize, &str)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(parts) = pattern.captures(line) else {
            continue;
        };
        let (Some(path), Some(category)) = (parts.get(1), parts.get(2)) else {
            continue;
        };
        if path.as_str() != "snippet.py" {
            let source = lines.get(at + 1).is_some_and(|next| next.starts_with("  "));
            found.push((at, 1 + usize::from(source), category.as_str()));
        }
    }
    let is_library = |at: usize| lines.get(at).is_some_and(|line| line.starts_with('/'));
    let own = found.iter().filter(|(at, ..)| !is_library(*at)).count();
    let mut own_left_out = own.saturating_sub(SHOWN);
    let left_out: Vec<&(usize, usize, &str)> = (found.iter())
        .filter(|(at, ..)| {
            is_library(*at) || {
                let is_out = own_left_out > 0;
                own_left_out = own_left_out.saturating_sub(1);
                is_out
            }
        })
        .collect();
    let out = left_out.len();
    if out <= 1 {
        return stderr.to_owned();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut hidden = vec![false; lines.len()];
    for (at, length, category) in &left_out {
        *counts.entry(category).or_default() += 1;
        for line in hidden.iter_mut().skip(*at).take(*length) {
            *line = true;
        }
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(category, number)| format!("{number} {category}"))
        .collect();
    let note = format!(
        "[... {out} warnings left out: {}; mention `warnings` in the snippet to see all ...]\n",
        counts.join(", ")
    );
    let mut shown = String::new();
    for (at, line) in lines.iter().enumerate() {
        if found.first().is_some_and(|(first, ..)| *first == at) {
            shown.push_str(&note);
        }
        if !hidden[at] {
            shown.push_str(line);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn all_but_the_last_and_the_snippets_own_are_counted() {
        let mut printed = "start\n".to_owned();
        for n in 0..9 {
            printed.push_str(&format!(
                "lib/a.py:{n}: DeprecationWarning: old\n  import imp\n"
            ));
        }
        printed.push_str("snippet.py:1: UserWarning: own\n");
        printed.push_str("pkg/b.py:7: FutureWarning: told\nTraceback\n");
        assert_eq!(
            folded(&printed, "import lib"),
            "start\n[... 7 warnings left out: 7 DeprecationWarning; mention `warnings` in the snippet to \
             see all ...]\nlib/a.py:7: DeprecationWarning: old\n  import imp\nlib/a.py:8: DeprecationWarning: old\n  import imp\n\
             snippet.py:1: UserWarning: own\npkg/b.py:7: FutureWarning: told\nTraceback\n"
        );
        assert_eq!(folded(&printed, "import warnings"), printed);
        let libraries = "/l/a.py:1: DeprecationWarning: old\n/l/b.py:2: UserWarning: odd\nok\n";
        assert_eq!(
            folded(libraries, ""),
            "[... 2 warnings left out: 1 DeprecationWarning, 1 UserWarning; mention `warnings` in the snippet to see all ...]\nok\n"
        );
        let few: String = printed.lines().skip(13).map(|l| format!("{l}\n")).collect();
        assert_eq!(folded(&few, ""), few);
    }
}
