//! `search`: searches the files of the workspace for a regular expression.

mod scan;
#[cfg(test)]
mod tests;

use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::find_file::{self, FileList};
use super::line_numbers::{count, cut, listed};
use super::path_glob::path_glob;
use crate::python::{Scope, scopes};
use crate::tool::{Context, Effect, Reply, Result, Tool, ToolError, refusal};
use crate::workspace::{MAX_TEXT_LEN, Workspace, read_text};
pub(super) use scan::scan;
use scan::{FileMatches, Line};

/// Maximum number of lines shown, and the maximum for a single named file.
const LINES: usize = 60;
const FILE_LINES: usize = 200;
/// Maximum number of files whose lines are shown.
const FILES: usize = 20;
/// Maximum number of further files that are named with their number of matches.
const MAX_NAMED: usize = 20;
const WIDTH: usize = 200;

/// A tool that searches files for a regular expression.
pub struct Search;

/// Arguments of `search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    /// Regular expression.
    #[schemars(extend("plain" = true), example = r"def prepare_\w+\(")]
    pattern: Option<String>,
    /// A folder or file.
    #[schemars(extend("plain" = true))]
    path: Option<String>,
    /// A glob such as `test_*.py`, `src/**/*.py`.
    #[schemars(extend("plain" = true))]
    glob: Option<String>,
    /// Ignore the difference between upper and lower case.
    #[serde(default)]
    #[schemars(extend("unlisted" = true))]
    ignore_case: bool,
    /// Treat `pattern` as plain text, not as a regular expression.
    #[serde(default)]
    #[schemars(extend("unlisted" = true))]
    literal: bool,
}

/// Search results: matches of a pattern, or a list of files if there is no pattern.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SearchResult {
    /// Number of matching lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<usize>,
    /// Number of files with matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<usize>,
    /// The lines that the text shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<Vec<HitView>>,
    /// The files, if there is no pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<FileList>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct HitView {
    path: String,
    line: u64,
    text: String,
    /// The enclosing function or class.
    function: Option<String>,
}

impl Tool for Search {
    type Args = SearchArgs;
    type Data = SearchResult;
    const NAME: &'static str = "search";
    const TITLE: &'static str = "Search files";
    const DESCRIPTION: &'static str =
        "Search lines of files for a regular expression. Without `pattern`: list files.";
    const EFFECT: Effect = Effect::Reads;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let Some(pattern) = args.pattern.as_deref() else {
            if args.glob.is_none() && args.path.is_none() {
                return Err(ToolError::refused(
                    "Nothing to look for: give `pattern`, or `glob` or `path` for a list of files.",
                ));
            }
            let name = args.glob.as_deref().unwrap_or("*");
            let Reply { text, data } =
                find_file::list(context.workspace, name, args.path.as_deref(), "glob")?;
            let result = SearchResult {
                list: Some(data),
                ..SearchResult::default()
            };
            return Ok(Reply::new(text, result));
        };
        let matcher = matcher(pattern, &args)?;
        let glob = args.glob.as_deref().map(path_glob).transpose()?;
        let workspace = &*context.workspace;
        let start = match args.path.as_deref() {
            Some(path) => existing(workspace, path)?,
            None => workspace.root().to_path_buf(),
        };
        let file_matches = scan(workspace.root(), &start, &matcher, glob.as_ref());
        Ok(answer(workspace.root(), pattern, &args, &file_matches))
    }
}

fn existing(workspace: &Workspace, path: &str) -> Result<std::path::PathBuf> {
    let relative = workspace.resolve(path)?;
    let whole = workspace.root().join(&relative);
    if !whole.is_dir() {
        workspace.resolve_file(path)?;
    }
    Ok(whole)
}

fn matcher(pattern: &str, args: &SearchArgs) -> Result<RegexMatcher> {
    if pattern.is_empty() {
        return Err(ToolError::refused(
            "`pattern` is empty: it would match every line.",
        ));
    }
    let pattern = match args.literal {
        true => regex::escape(pattern),
        false => pattern.to_owned(),
    };
    RegexMatcherBuilder::new()
        .case_insensitive(args.ignore_case)
        .line_terminator(Some(b'\n'))
        .build(&pattern)
        .map_err(|e| {
            refusal!(
                "The pattern is not a regular expression that can be searched for:\n{e}\n\
                 Escape special characters with `\\` (e.g. `foo\\(`), or set `literal` to true."
            )
        })
}

fn no_match(pattern: &str, args: &SearchArgs) -> String {
    let mut text = format!("No match for `{pattern}`");
    if let Some(path) = &args.path {
        text.push_str(&format!(" in {path}"));
    }
    if let Some(glob) = &args.glob {
        text.push_str(&format!(" among files that fit `{glob}`"));
    }
    text.push('.');
    if !args.ignore_case && pattern.chars().any(char::is_uppercase) {
        text.push_str(match args.literal {
            true => " `ignore_case` may help.",
            false => " `(?i)` in front of it ignores case.",
        });
    }
    text
}

/// Names the files whose matches are left out.
fn not_shown(files: &[FileMatches]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let lines = files
        .iter()
        .map(|file| format!("  {}: {}", file.path, count(file.total, "match")));
    let lines: Vec<String> = lines.collect();
    let more = |more: usize| format!("  … and {} more", count(more, "file"));
    format!("\nNot shown:\n{}", listed(&lines, MAX_NAMED, more))
}

fn answer(
    root: &Path,
    pattern: &str,
    args: &SearchArgs,
    file_matches: &[FileMatches],
) -> Reply<SearchResult> {
    let total: usize = file_matches.iter().map(|f| f.total).sum();
    if total == 0 {
        let text = no_match(pattern, args);
        return Reply::new(text, SearchResult::of_lines(0, 0, Vec::new()));
    }
    let is_one_file = (args.path.as_deref()).is_some_and(|path| root.join(path).is_file());
    // If the result must be cut, fewer lines suffice: the search needs narrowing anyway.
    let is_whole = is_one_file && total <= FILE_LINES + 1;
    let max_lines = if is_whole { FILE_LINES } else { LINES };
    let per_file = match total {
        _ if total <= max_lines => max_lines,
        _ => (max_lines / file_matches.len().min(FILES)).max(3),
    };
    let mut text = format!(
        "{} in {}\n",
        count(total, "match"),
        count(file_matches.len(), "file")
    );
    let mut views = Vec::new();
    let mut files = 0;
    for file in file_matches.iter().take(FILES) {
        if views.len() >= max_lines {
            break;
        }
        files += 1;
        let mut file_limit = per_file.min(max_lines - views.len());
        // A single line takes no more room than a note that it is left out.
        if file.total == file_limit + 1 {
            file_limit += 1;
        }
        let outline = outline(root, &file.path);
        text.push_str(&format!("\n{}\n", file.path));
        let hits: Vec<Hit<'_, '_>> = file
            .lines
            .iter()
            .take(file_limit)
            .map(|line| Hit::new(line, &outline))
            .collect();
        text.push_str(&grouped(&hits));
        views.extend(hits.into_iter().map(|hit| HitView {
            path: file.path.clone(),
            line: hit.line.number,
            text: hit.line.text.clone(),
            function: hit.function.map(|scope| scope.qualified.clone()),
        }));
        let remaining = file.total - file_limit.min(file.lines.len());
        if remaining > 0 {
            text.push_str(&format!("  … {remaining} more in this file\n"));
        }
    }
    text.push_str(&not_shown(&file_matches[files..]));
    if views.len() < total {
        text.push_str(&format!(
            "\n{} of {total} matches shown. Narrow it with `path`, `glob` or a stricter pattern.\n",
            views.len()
        ));
    }
    Reply::new(
        text,
        SearchResult::of_lines(total, file_matches.len(), views),
    )
}

impl SearchResult {
    fn of_lines(matches: usize, files: usize, views: Vec<HitView>) -> Self {
        SearchResult {
            matches: Some(matches),
            files: Some(files),
            shown: Some(views),
            list: None,
        }
    }
}

/// A matching line, and its enclosing function or class.
struct Hit<'a, 'o> {
    line: &'a Line,
    function: Option<&'o Scope>,
}

impl<'a, 'o> Hit<'a, 'o> {
    fn new(line: &'a Line, outline: &'o [Scope]) -> Self {
        let number = usize::try_from(line.number).unwrap_or_default();
        let function = Scope::innermost(outline, number);
        Hit { line, function }
    }

    /// Returns whether the line defines its function or class, and therefore names it.
    fn is_head(&self) -> bool {
        self.function.is_some_and(|scope| {
            let code = self.line.text.trim_start();
            let code = code.strip_prefix("async ").unwrap_or(code);
            let rest = code.strip_prefix("def ").or(code.strip_prefix("class "));
            rest.and_then(|rest| rest.strip_prefix(scope.name()))
                .is_some_and(|rest| rest.starts_with(['(', ':', '[', ' ']))
        })
    }
}

/// Formats the lines of one file, grouped by function or class unless a line above shows its name.
fn grouped(hits: &[Hit<'_, '_>]) -> String {
    let mut text = String::new();
    // The scope of the previous line, or the scope that the line defines.
    let mut last_scope = "";
    for group in hits.chunk_by(|a, b| a.function == b.function) {
        let [first, ..] = group else { continue };
        let scope = first.function.map_or("", |scope| scope.qualified.as_str());
        let (around, is_known) = match first.function {
            // Its indentation shows that it is outside the previous function.
            Some(own) if first.is_head() => (own.parent(), is_within(last_scope, own.parent())),
            _ => (scope, last_scope == scope),
        };
        if !around.is_empty() && !is_known {
            text.push_str(&format!("in {around}\n"));
        }
        last_scope = scope;
        for hit in group {
            let line = cut(hit.line.text.trim_end(), WIDTH);
            text.push_str(&format!("{}: {line}\n", hit.line.number));
        }
    }
    text
}

/// Returns whether a scope is the outer one, or inside it.
fn is_within(name: &str, outer: &str) -> bool {
    let rest = name.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn outline(root: &Path, path: &str) -> Vec<Scope> {
    if !path.ends_with(".py") {
        return Vec::new();
    }
    read_text(&root.join(path), MAX_TEXT_LEN)
        .map(|text| scopes(&text))
        .unwrap_or_default()
}
