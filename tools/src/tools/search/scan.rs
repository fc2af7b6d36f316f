//! Searches files in parallel, and sorts the results by path.

use std::io::Read;
use std::path::Path;
use std::sync::Mutex;

use globset::GlobMatcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::WalkState;

use crate::workspace::{MAX_TEXT_LEN, forward, open_regular, transcoded, walker};

/// Maximum lines kept of one file, one more than are shown; further ones are only counted.
const MAX_KEPT_LINES: usize = super::FILE_LINES + 1;

/// Bytes read of each file to find its encoding.
const HEAD_LEN: usize = 1024;

/// Matches in one file; `path` is relative to the workspace.
pub(crate) struct FileMatches {
    pub path: String,
    pub total: usize,
    pub lines: Vec<Line>,
}

pub(crate) struct Line {
    pub number: u64,
    pub text: String,
}

/// Returns all matches below `start` (a folder or a file), sorted by path.
pub(crate) fn scan(
    root: &Path,
    start: &Path,
    matcher: &RegexMatcher,
    glob: Option<&GlobMatcher>,
) -> Vec<FileMatches> {
    let matches = Mutex::new(Vec::new());
    let is_included = |path: &Path| match (glob, path.strip_prefix(root)) {
        (Some(glob), Ok(relative)) => glob.is_match(relative),
        _ => true,
    };
    if start.is_file() {
        if is_included(start)
            && let Some(file) = search_file(root, start, &mut searcher(), matcher)
        {
            return vec![file];
        }
        return Vec::new();
    }
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8);
    walker(start).threads(threads).build_parallel().run(|| {
        let mut searcher = searcher();
        let (matches, is_included) = (&matches, &is_included);
        Box::new(move |entry| {
            if let Ok(entry) = entry
                && entry.file_type().is_some_and(|t| t.is_file())
                && is_included(entry.path())
                && let Some(file) = search_file(root, entry.path(), &mut searcher, matcher)
                && let Ok(mut matches) = matches.lock()
            {
                matches.push(file);
            }
            WalkState::Continue
        })
    });
    let mut matches = matches.into_inner().unwrap_or_default();
    matches.sort_unstable_by(|a: &FileMatches, b| a.path.cmp(&b.path));
    matches
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .build()
}

fn search_file(
    root: &Path,
    path: &Path,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
) -> Option<FileMatches> {
    let mut found = FileMatches {
        path: forward(path.strip_prefix(root).ok()?),
        total: 0,
        lines: Vec::new(),
    };
    // An unreadable file counts as one without a match.
    match transcoded(path, &head(path)?, MAX_TEXT_LEN) {
        Some(text) => searcher.search_slice(matcher, text.as_bytes(), &mut found),
        None => searcher.search_path(matcher, path, &mut found),
    }
    .ok()?;
    (found.total > 0).then_some(found)
}

/// Returns the first bytes of a file, which show its encoding and its line ends.
fn head(path: &Path) -> Option<Vec<u8>> {
    let file = open_regular(path).ok()?;
    let mut head = Vec::with_capacity(HEAD_LEN);
    file.take(HEAD_LEN as u64).read_to_end(&mut head).ok()?;
    Some(head)
}

impl Sink for FileMatches {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.total += 1;
        if self.lines.len() < MAX_KEPT_LINES {
            self.lines.push(Line {
                number: hit.line_number().unwrap_or_default(),
                text: String::from_utf8_lossy(hit.bytes()).trim_end().to_owned(),
            });
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, Self::Error> {
        self.total = 0;
        self.lines.clear();
        Ok(false)
    }
}
