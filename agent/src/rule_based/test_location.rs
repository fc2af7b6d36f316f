//! Selection of the file and the class for a new test: those that test the same functions.

use serde_json::json;
use testwright_tools::python::{Definition, Kind, Module, flatten};

use super::candidates::Candidate;
use super::policy_runner::{PolicyRunner, Turn};
use super::test_body::words;
use super::test_name::snake_case;

/// Maximum number of names to search for.
const MAX_NAMES: usize = 4;
/// Number of lines of a test file to read.
const WINDOW: usize = 400;

/// The place for a new test.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Location {
    pub path: String,
    /// Class of the related tests, at whose end the test goes.
    pub class: Option<String>,
    /// Last related test function outside of classes.
    pub after: Option<String>,
    /// Lines of the file around the related tests.
    pub text: String,
}

/// Finds the place by the modules and functions that the test is about; `None` if there are no test files.
pub(super) fn locate(
    runner: &mut PolicyRunner,
    candidate: &Candidate,
) -> Result<Option<Location>, Turn> {
    let target = Target::new(candidate);
    let (mut scores, is_sure) = by_file_names(runner, &target)?;
    let mut hits = Hits::default();
    if !target.names.is_empty() {
        let named = scores.first().map(|(path, _)| path.clone());
        hits = search(runner, &target, named.as_deref().filter(|_| is_sure))?;
        // A long answer leaves out the last files in the order of their names.
        if let Some(named) = named.filter(|named| hits.is_cut && !hits.mentions(named)) {
            let more = search(runner, &target, Some(&named))?;
            hits.hits.extend(more.hits);
            hits.unseen.extend(more.unseen);
        }
        for (path, points) in hits.points(&target) {
            add(&mut scores, &path, 1 + points.min(30) / 3);
        }
    }
    scores.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.len().cmp(&b.0.len())));
    let path = match scores.into_iter().next() {
        Some((path, _)) => path,
        None => {
            let name = json!({"name": "*test*.py"});
            let answer = runner.call("find_file", name, "Which test files are there?")?;
            match paths(&answer).find(|p| is_test_file(p)) {
                Some(path) => path.to_owned(),
                None => return Ok(None),
            }
        }
    };
    if hits.unseen.iter().any(|(p, _)| *p == path) {
        hits = search(runner, &target, Some(&path))?;
    }
    let related = hits.related(&path, &target);
    let line = related.as_ref().map_or(1, |hit| hit.line);
    let answer = runner.call(
        "open_file",
        json!({"path": path, "line": line, "lines": WINDOW}),
        "How are its tests written?",
    )?;
    let text = file_text(&answer);
    let (class, after) = match &related {
        // The test in the issue is a function.
        _ if candidate.function.is_some() => (None, None),
        Some(hit) => match hit.test() {
            Some(("", test)) => (None, Some(test.to_owned())),
            Some((class, _)) => (Some(class.to_owned()), None),
            None => (None, None),
        },
        None => (only_class(&text), None),
    };
    Ok(Some(Location {
        path,
        class,
        after,
        text,
    }))
}

/// The functions that a test is about.
struct Target<'a> {
    /// Functions with their files: the innermost that failed first.
    homes: &'a [(String, String)],
    names: Vec<String>,
    keywords: &'a [String],
}

impl<'a> Target<'a> {
    fn new(candidate: &'a Candidate) -> Self {
        let is_name = |name: &String| name.len() > 2 && !name.starts_with(['_', '<']);
        let mut names: Vec<String> = Vec::new();
        let homes = candidate.homes.iter().map(|(name, _)| name.clone());
        for name in homes.filter(is_name) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            let imported = words(&candidate.body.imports.join(" "));
            let is_keyword = |w: &String| ["from", "import", "as"].contains(&w.as_str());
            names.extend(
                imported
                    .into_iter()
                    .filter(|w| is_name(w) && !is_keyword(w)),
            );
        }
        names.truncate(MAX_NAMES);
        Target {
            homes: &candidate.homes,
            names,
            keywords: &candidate.subject.keywords,
        }
    }

    /// Rates a line of a test: the innermost function that failed counts most.
    fn points(&self, line: &str) -> u32 {
        let words = words(line);
        let name = self.names.iter().position(|n| words.contains(n));
        let keywords = self.keywords.iter().filter(|k| words.contains(k)).count();
        name.map_or(0, |at| 3_u32.saturating_sub(at as u32).max(1)) + 4 * keywords as u32
    }
}

/// Rates the test files that are named after the modules, the best first, and says whether that one is certain.
fn by_file_names(
    runner: &mut PolicyRunner,
    target: &Target<'_>,
) -> Result<(Vec<(String, u32)>, bool), Turn> {
    let mut scores: Vec<(String, u32)> = Vec::new();
    let mut stems: Vec<(String, &str)> = Vec::new();
    for (name, file) in target.homes {
        let stem = file
            .rsplit('/')
            .next()
            .unwrap_or(file)
            .trim_end_matches(".py");
        let stem = match stem {
            "__init__" | "base" | "core" => file.rsplit('/').nth(1).unwrap_or(stem),
            stem => stem.trim_start_matches('_'),
        };
        if is_test_file(file) {
            continue;
        }
        if !stems.iter().any(|(s, _)| *s == stem) {
            stems.push((stem.to_owned(), file));
        }
        // Some test files are named after a function or class.
        let word = snake_case(name);
        let is_covered = stems
            .iter()
            .any(|(s, _)| word.contains(s.as_str()) || s.contains(&word));
        if target.names.contains(name) && !is_covered {
            stems.push((word, file));
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
        scores.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
        if scores.first().is_some_and(|(_, score)| *score >= 10) {
            return Ok((scores, true));
        }
    }
    Ok((scores, false))
}

fn search(
    runner: &mut PolicyRunner,
    target: &Target<'_>,
    path: Option<&str>,
) -> Result<Hits, Turn> {
    let names: Vec<String> = target.names.iter().map(|n| regex::escape(n)).collect();
    let pattern = format!(r"\b(?:{})\b", names.join("|"));
    let arguments = match path {
        Some(path) => json!({"pattern": pattern, "path": path}),
        None => json!({"pattern": pattern, "glob": "*test*.py"}),
    };
    let answer = runner.call("search", arguments, "Which tests use the same names?")?;
    Ok(Hits::read(&answer))
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

/// A line that `search` shows.
#[derive(Debug, Clone, PartialEq)]
struct Hit {
    path: String,
    line: usize,
    text: String,
    /// Function or class around the line, or the one that it defines.
    scope: String,
}

impl Hit {
    /// Returns the class and the name of the test that the line is in.
    fn test(&self) -> Option<(&str, &str)> {
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
struct Hits {
    hits: Vec<Hit>,
    /// Files with the number of their lines that it does not show.
    unseen: Vec<(String, u32)>,
    /// Whether there may be further files.
    is_cut: bool,
}

impl Hits {
    fn read(answer: &str) -> Hits {
        let mut all = Hits {
            is_cut: answer.contains(" matches shown. Narrow it "),
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

    fn mentions(&self, path: &str) -> bool {
        let mut paths = self.hits.iter().map(|hit| &hit.path);
        paths.any(|p| p == path) || self.unseen.iter().any(|(p, _)| p == path)
    }

    /// Rates the files.
    fn points(&self, target: &Target<'_>) -> Vec<(String, u32)> {
        let shown = self
            .hits
            .iter()
            .map(|hit| (&hit.path, target.points(&hit.text)));
        let mut all: Vec<(String, u32)> = Vec::new();
        for (path, points) in shown.chain(self.unseen.iter().map(|(path, count)| (path, *count))) {
            match all.iter_mut().find(|(p, _)| p == path) {
                Some((_, sum)) => *sum += points,
                None => all.push((path.clone(), points)),
            }
        }
        all
    }

    /// Returns the last line of the class, or of the functions outside of classes, that is most about the target.
    fn related(&self, path: &str, target: &Target<'_>) -> Option<Hit> {
        let mut groups: Vec<(&str, u32, &Hit)> = Vec::new();
        for hit in self.hits.iter().filter(|hit| hit.path == path) {
            let Some((class, _)) = hit.test() else {
                continue;
            };
            let points = target.points(&hit.text);
            match groups.iter_mut().find(|(c, _, _)| *c == class) {
                Some((_, sum, last)) => (*sum, *last) = (*sum + points, hit),
                None => groups.push((class, points, hit)),
            }
        }
        let best = groups.into_iter().max_by_key(|(_, points, _)| *points);
        best.map(|(_, _, hit)| hit.clone())
    }
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

/// Returns the source that an answer of `open_file` shows.
fn file_text(answer: &str) -> String {
    let mut text = String::new();
    for line in answer.lines().skip(1) {
        let code = line
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit());
        if code.len() == line.trim_start().len() {
            break;
        }
        text.push_str(code.strip_prefix("  ").unwrap_or(code));
        text.push('\n');
    }
    text
}

/// Returns the last class with tests of a file that has no tests outside of classes.
fn only_class(text: &str) -> Option<String> {
    let outline = Module::parse(text).outline();
    let is_test = |name: &str| name.starts_with("test");
    if outline
        .iter()
        .any(|d| d.kind == Kind::Function && is_test(&d.name))
    {
        return None;
    }
    let has_tests = |class: &&&Definition| {
        class.kind == Kind::Class && class.children.iter().any(|m| is_test(&m.name))
    };
    let classes = flatten(&outline);
    let last = classes.iter().rfind(has_tests);
    last.map(|class| class.qualified.clone())
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
mod tests;
