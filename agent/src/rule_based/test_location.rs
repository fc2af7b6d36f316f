//! Selection of the file and the class for a new test: those that test the same functions.
//!
//! Test files get points if they are named after the module or the function under test, and for using the same names.
//! A name that few files use counts most for these files.

mod hits;

use serde_json::json;
use testwright_sandboxes::Pattern;
use testwright_tools::python::{Definition, Kind, Module, called_names, flatten};

use super::candidates::Candidate;
use super::policy_runner::{PolicyRunner, Turn};
use super::test_body::{value_of, words};
use super::test_name::snake_case;
use hits::Hits;

/// Weights of the names to search for, in their order.
const NAME_WEIGHTS: [f64; 6] = [1.0, 0.8, 0.6, 0.5, 0.4, 0.3];
/// Factor for the weight of a name that the test does not mention.
const UNMENTIONED_WEIGHT: f64 = 0.5;
/// Weight of a keyword argument.
const KEYWORD_WEIGHT: f64 = 0.8;
/// Points of a test file that is named after a module or function of the target.
const EXACT_NAME_POINTS: f64 = 8.0;
/// Points of a test file with a longer name.
const PARTIAL_NAME_POINTS: f64 = 3.0;
/// Points from which a test file is certain by its name and folder.
const CERTAIN_POINTS: f64 = 10.0;
/// Points of a test file with all uses of the first name.
const USE_POINTS: f64 = 12.0;
/// Additional points of a test file that is named after a method that it uses.
const CALL_NAME_POINTS: f64 = 3.0;
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
    let (mut scores, is_certain) = by_file_names(runner, &target)?;
    let mut hits = Hits::default();
    if !is_certain {
        hits = by_uses(runner, &target, &mut scores)?;
    }
    sort(&mut scores);
    let path = match scores.into_iter().next() {
        Some((path, _)) => {
            // The points come from one search for each name.
            let is_complete = target.names.len() == 1 && hits.is_complete_for(&path);
            if !target.names.is_empty() && (is_certain || !is_complete) {
                let names: Vec<&str> = target.names.iter().map(|(name, _)| &**name).collect();
                hits = search(runner, &names, Some(&path))?;
            }
            path
        }
        None => {
            let name = json!({"name": "*test*.py"});
            let answer = runner.call("find_file", name, "Which test files are there?")?;
            match paths(&answer).find(|p| is_test_file(p)) {
                Some(path) => path.to_owned(),
                None => return Ok(None),
            }
        }
    };
    let related = hits.related(&path, &target.terms());
    let line = related.map_or(1, |hit| hit.line);
    let answer = runner.call(
        "open_file",
        json!({"path": path, "line": line, "lines": WINDOW}),
        "How are its tests written?",
    )?;
    let text = file_text(&answer);
    let (class, after) = match related {
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

/// A function that a test is about.
struct Home<'a> {
    name: &'a str,
    file: &'a str,
    /// Whether the test mentions it. Functions that raise the exception and types of variables may be unmentioned.
    is_mentioned: bool,
}

/// The functions that a test is about.
struct Target<'a> {
    /// These functions: the innermost that failed, the mentioned ones, and the others.
    homes: Vec<Home<'a>>,
    /// Names to search for, with their weights; the names in the test come first.
    names: Vec<(String, f64)>,
    keywords: &'a [String],
}

impl<'a> Target<'a> {
    fn new(candidate: &'a Candidate) -> Self {
        let code = match &candidate.function {
            Some(function) => function.clone(),
            None => candidate.body.lines.join("\n"),
        };
        let code_words = words(&code);
        let mut homes: Vec<Home<'_>> = (candidate.homes.iter())
            .map(|(name, file)| Home {
                name,
                file,
                is_mentioned: code_words.contains(name),
            })
            .collect();
        if let [_, rest @ ..] = homes.as_mut_slice() {
            rest.sort_by_key(|home| !home.is_mentioned);
        }
        let called = called_names(&code);
        let (mentioned, others): (Vec<&Home<'_>>, Vec<&Home<'_>>) =
            homes.iter().partition(|home| home.is_mentioned);
        let mentioned = mentioned.into_iter().map(|home| (home.name, 1.0));
        let called = called.iter().map(|name| (name.as_str(), 1.0));
        let others = others.into_iter().map(|h| (h.name, UNMENTIONED_WEIGHT));
        let mut names = weighted_names(mentioned.chain(called).chain(others));
        if names.is_empty() {
            let imported = words(&candidate.body.imports.join(" "));
            let imported = imported.iter().map(|word| (word.as_str(), 1.0));
            let is_keyword = |word: &str| ["from", "import", "as"].contains(&word);
            names = weighted_names(imported.filter(|(word, _)| !is_keyword(word)));
        }
        Target {
            homes,
            names,
            keywords: &candidate.subject.keywords,
        }
    }

    /// Returns the names and the keyword arguments, with their weights.
    fn terms(&self) -> Vec<(&str, f64)> {
        let names = self.names.iter().map(|(name, weight)| (&**name, *weight));
        let keywords = self.keywords.iter();
        let keywords = keywords.map(|keyword| (keyword.as_str(), KEYWORD_WEIGHT));
        names.chain(keywords).collect()
    }
}

/// Returns the first public names, each once, with the product of their own weights and those of their positions.
fn weighted_names<'n>(names: impl Iterator<Item = (&'n str, f64)>) -> Vec<(String, f64)> {
    let mut weighted: Vec<(String, f64)> = Vec::new();
    for (name, weight) in names {
        let Some(position_weight) = NAME_WEIGHTS.get(weighted.len()) else {
            break;
        };
        if is_public(name) && weighted.iter().all(|(other, _)| other != name) {
            weighted.push((name.to_owned(), weight * position_weight));
        }
    }
    weighted
}

fn is_public(name: &str) -> bool {
    name.len() > 2 && !name.starts_with(['_', '<'])
}

/// Test files with their points.
type Scores = Vec<(String, f64)>;

/// Rates the test files that are named after the modules and functions. Returns whether the best one is certain.
fn by_file_names(runner: &mut PolicyRunner, target: &Target<'_>) -> Result<(Scores, bool), Turn> {
    let mut scores = Scores::new();
    let mut stems: Vec<(String, &str)> = Vec::new();
    for home in &target.homes {
        let file = home.file;
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
        // Some test files are named after a function or class. A search for a part of the name covers it.
        let is_class = home.name.starts_with(char::is_uppercase);
        let word = snake_case(home.name);
        let is_covered = stems.iter().any(|(s, _)| word.contains(s.as_str()));
        if (home.is_mentioned || is_class) && is_public(home.name) && !is_covered {
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
            let fits = if is_named_after(path, stem) {
                EXACT_NAME_POINTS
            } else {
                PARTIAL_NAME_POINTS
            };
            let near = f64::from(shared_folders(path, file));
            add(&mut scores, path, fits + near - n.min(2) as f64);
        }
        let best = scores.iter().map(|(_, score)| *score).fold(0.0, f64::max);
        if best >= CERTAIN_POINTS {
            return Ok((scores, true));
        }
    }
    Ok((scores, false))
}

/// Rates the test files by their uses of the names. Returns the uses of the last name.
fn by_uses(
    runner: &mut PolicyRunner,
    target: &Target<'_>,
    scores: &mut Scores,
) -> Result<Hits, Turn> {
    let mut hits = Hits::default();
    for (at, (name, weight)) in target.names.iter().enumerate() {
        hits = search(runner, &[name], None)?;
        let has_home = target.homes.iter().any(|home| home.name == name);
        for (path, share) in hits.shares() {
            let extra = match !has_home && is_named_after(path, &snake_case(name)) {
                true => CALL_NAME_POINTS,
                false => 0.0,
            };
            add(scores, path, weight * (USE_POINTS * share + extra));
        }
        // Stop if the other names cannot change the result.
        sort(scores);
        let lead = match scores.as_slice() {
            [] => 0.0,
            [(_, only)] => *only,
            [(_, first), (_, second), ..] => first - second,
        };
        let rest = target.names.iter().skip(at + 1);
        let rest: f64 = rest.map(|(_, weight)| weight).sum();
        if lead > (USE_POINTS + CALL_NAME_POINTS) * rest {
            break;
        }
    }
    Ok(hits)
}

/// Searches for names in the test files, or in one file.
fn search(runner: &mut PolicyRunner, names: &[&str], path: Option<&str>) -> Result<Hits, Turn> {
    let names: Vec<String> = names.iter().map(|n| regex::escape(n)).collect();
    let pattern = format!(r"\b(?:{})\b", names.join("|"));
    let arguments = match path {
        Some(path) => json!({"pattern": pattern, "path": path}),
        None => json!({"pattern": pattern, "glob": "*test*.py"}),
    };
    let answer = runner.call("search", arguments, "Which tests use the same names?")?;
    Ok(Hits::read(&answer))
}

fn add(scores: &mut Scores, path: &str, points: f64) {
    if is_test_file(path) {
        *value_of(scores, path.to_owned()) += points;
    }
}

/// Sorts the best file to the front; of equal files, the one with the shorter path.
fn sort(scores: &mut [(String, f64)]) {
    scores.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.len().cmp(&b.0.len())));
}

/// Returns whether the name of a test file consists of a module's or function's name and the mark of a test.
fn is_named_after(path: &str, stem: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.trim_end_matches(".py");
    let marks = [
        name.strip_prefix("test_"),
        name.strip_prefix("unittest_"),
        name.strip_suffix("_test"),
    ];
    marks.contains(&Some(stem))
}

/// Returns whether pytest would collect the file; test data and support code do not count.
pub(super) fn is_test_file(path: &str) -> bool {
    static TEST: Pattern = Pattern::new(r"^(?:(?:test|unittest)_.*|.*_test)\.py$");
    static ASIDE: Pattern = Pattern::new(
        "(?:^|/)(?:roots|data|input|functional|testdata|example_scripts|regrtest_data|benchmarks)/",
    );
    let name = path.rsplit('/').next().unwrap_or(path);
    TEST.is_match(name) && !ASIDE.is_match(path)
}

/// Returns the paths in an answer of `find_file`.
pub(super) fn paths(answer: &str) -> impl Iterator<Item = &str> {
    answer
        .lines()
        .map(str::trim)
        .filter(|l| l.ends_with(".py") && !l.contains(' '))
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
