//! Selection of the test file for a new test.

use serde_json::json;

use super::policy_runner::{PolicyRunner, Turn};

/// Finds a test file by the modules that the test is about and the names that it uses.
pub(super) fn test_file(
    runner: &mut PolicyRunner,
    homes: &[(String, String)],
    names: &[String],
) -> Result<Option<String>, Turn> {
    let mut scores: Vec<(String, u32)> = Vec::new();
    let mut stems: Vec<(&str, &str)> = Vec::new();
    for (_, file) in homes {
        let stem = file
            .rsplit('/')
            .next()
            .unwrap_or(file)
            .trim_end_matches(".py");
        let stem = match stem {
            "__init__" | "base" | "core" => file.rsplit('/').nth(1).unwrap_or(stem),
            stem => stem.trim_start_matches('_'),
        };
        if !stems.iter().any(|(s, _)| *s == stem) && !is_test_file(file) {
            stems.push((stem, file));
        }
    }
    for (n, (stem, file)) in stems.iter().take(3).enumerate() {
        let answer = runner.call(
            "find_file",
            json!({"name": format!("*test*{stem}*.py")}),
            "Which test file is about this module?",
        )?;
        for path in paths(&answer) {
            let exact = [
                format!("test_{stem}.py"),
                format!("{stem}_test.py"),
                format!("unittest_{stem}.py"),
            ];
            let name = path.rsplit('/').next().unwrap_or(path);
            let fits = if exact.iter().any(|e| e == name) {
                8
            } else {
                3
            };
            let near = shared_folders(path, file);
            add(&mut scores, path, fits + near - (n as u32).min(2));
        }
        let sure = scores
            .iter()
            .filter(|(_, score)| *score >= 10)
            .max_by_key(|(_, score)| *score);
        if let Some((path, _)) = sure {
            return Ok(Some(path.clone()));
        }
    }
    let alternatives: Vec<String> = names
        .iter()
        .filter(|n| n.len() > 2)
        .take(4)
        .map(|n| regex::escape(n))
        .collect();
    if !alternatives.is_empty() {
        let pattern = format!(r"\b(?:{})\b", alternatives.join("|"));
        let answer = runner.call(
            "search",
            json!({"pattern": pattern, "glob": "*test*.py"}),
            "Which tests use the same names?",
        )?;
        for (path, count) in matches(&answer) {
            add(&mut scores, &path, 1 + count.min(12) / 3);
        }
    }
    scores.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.len().cmp(&b.0.len())));
    if let Some((path, _)) = scores.into_iter().next() {
        return Ok(Some(path));
    }
    let answer = runner.call(
        "find_file",
        json!({"name": "*test*.py"}),
        "Which test files are there?",
    )?;
    Ok(paths(&answer).find(|p| is_test_file(p)).map(str::to_owned))
}

fn add(scores: &mut Vec<(String, u32)>, path: &str, points: u32) {
    if is_test_file(path) {
        match scores.iter_mut().find(|(p, _)| p == path) {
            Some((_, score)) => *score += points,
            None => scores.push((path.to_owned(), points)),
        }
    }
}

/// Returns whether pytest would collect the file; test data and support code do not count.
pub(super) fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let has_test_name =
        name.starts_with("test_") || name.starts_with("unittest_") || name.ends_with("_test.py");
    let aside = [
        "/roots/",
        "/data/",
        "/input/",
        "/functional/",
        "/testdata/",
        "/example_scripts/",
        "/regrtest_data/",
        "/benchmarks/",
    ];
    has_test_name && name.ends_with(".py") && !aside.iter().any(|a| format!("/{path}").contains(a))
}

/// Returns the paths in an answer of `find_file`.
pub(super) fn paths(answer: &str) -> impl Iterator<Item = &str> {
    answer
        .lines()
        .map(str::trim)
        .filter(|l| l.ends_with(".py") && !l.contains(' '))
}

/// Returns the files and their numbers of matches in an answer of `search`.
fn matches(answer: &str) -> Vec<(String, u32)> {
    let mut match_counts: Vec<(String, u32)> = Vec::new();
    for line in answer.lines() {
        if !line.starts_with(' ') && line.ends_with(".py") {
            match_counts.push((line.to_owned(), 0));
        } else if let Some((path, rest)) = line.trim().split_once(".py: ") {
            let count = rest
                .split(' ')
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or(1);
            match_counts.push((format!("{path}.py"), count));
        } else if line.starts_with("  ")
            && !line.starts_with("  in ")
            && let Some((_, count)) = match_counts.last_mut()
        {
            let more = line
                .trim()
                .strip_prefix("… ")
                .and_then(|l| l.split(' ').next()?.parse::<u32>().ok());
            *count += more.unwrap_or(1);
        }
    }
    match_counts
}

/// Counts the leading folders that a test file and a source file share (ignoring `src` and `tests`).
fn shared_folders(test: &str, source: &str) -> u32 {
    let folders = |path: &str| -> Vec<String> {
        let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
        parts.pop();
        parts.retain(|p| !["src", "lib", "tests", "test", "testing"].contains(&p.as_str()));
        parts
    };
    let (test, source) = (folders(test), folders(source));
    let shared = source.iter().filter(|f| test.contains(f)).count();
    (shared as u32 * 2).min(6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_matches_are_counted_by_file() {
        let answer = "4 matches in 2 files\n\ntests/test_a.py\n  in test_low\n    3: x = low(2)\n  … 2 more in this file\n\n\
                      Further files:\n  tests/test_b.py: 1 match\n";
        assert_eq!(
            matches(answer),
            [
                ("tests/test_a.py".to_owned(), 3),
                ("tests/test_b.py".to_owned(), 1)
            ]
        );
    }

    #[test]
    fn test_support_is_not_a_test_file() {
        assert!(is_test_file("pkg/tests/test_a.py"));
        assert!(!is_test_file("tests/roots/test-ext/test_x.py"));
        assert!(!is_test_file("pkg/testing.py"));
    }

    #[test]
    fn nearer_test_file_is_preferred() {
        assert!(
            shared_folders("pkg/shop/tests/test_a.py", "pkg/shop/a.py")
                > shared_folders("pkg/other/tests/test_a.py", "pkg/shop/a.py")
        );
    }
}
