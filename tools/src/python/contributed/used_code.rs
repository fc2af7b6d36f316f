//! Finds the code of its file that a test uses: imports, helpers, fixtures, data, set-up.

use std::collections::BTreeSet;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dependencies::used_by;
use super::test_file::TestFile;
use crate::python::offsets::{line_of, line_start};
use crate::python::{Binding, Import, Module, joined_imports};
use crate::workspace::Layout;

/// An excerpt of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Excerpt {
    /// Path relative to the workspace.
    pub path: String,
    /// First line, from 1.
    pub line: usize,
    /// Text of the excerpt.
    pub source: String,
}

/// Returns the code of the file that these tests (`Class::function`) use, in file order, without the tests themselves.
pub fn used_code(path: &str, text: &str, tests: &[&str], layout: &Layout) -> Vec<Excerpt> {
    let module = Module::parse(text);
    let file = TestFile::read(&module, layout);
    let mut spans: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let own: BTreeSet<&str> = file.tests.iter().map(|test| test.unit.as_str()).collect();
    for test in &file.tests {
        if !tests.contains(&test.id.as_str()) {
            continue;
        }
        let keys = used_by(&file, test);
        names.extend(keys.iter().copied());
        let used = keys.into_iter().filter(|key| !own.contains(key));
        for span in used
            .filter_map(|key| file.units.get(key))
            .flat_map(|unit| &unit.spans)
        {
            spans.insert((span.start, span.end));
        }
    }
    let outermost = |span: &&(usize, usize)| {
        let mut others = spans.iter();
        !others.any(|other| other != *span && other.0 <= span.0 && span.1 <= other.1)
    };
    let imports = module.imports();
    let outer_spans = spans.iter().filter(outermost);
    outer_spans
        .map(|(start, end)| excerpt(path, text, *start..*end))
        .filter(|piece| !does_nothing(&piece.source))
        .map(|piece| with_used_names(piece, &imports, &names))
        .collect()
}

/// Returns whether code does nothing of interest: a function with only `pass`, such as many a `setUp`, or code that
/// runs the file as a script.
fn does_nothing(source: &str) -> bool {
    let mut lines = source.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let is_docstring =
        |line: &str| line.len() >= 6 && line.starts_with("\"\"\"") && line.ends_with("\"\"\"");
    let body: Vec<&str> = lines.filter(|line| !is_docstring(line)).collect();
    let is_script = ["unittest.main(", "pytest.main(", "sys.exit(pytest.main("];
    first.starts_with("def ") && body == ["pass"]
        || is_script.iter().any(|call| first.starts_with(call))
}

/// Reduces an import of several lines to the names that are used.
fn with_used_names(excerpt: Excerpt, imports: &[Import], names: &BTreeSet<&str>) -> Excerpt {
    let mut long = imports.iter().filter(|import| import.last > import.first);
    let Some(import) = long.find(|import| import.source == excerpt.source) else {
        return excerpt;
    };
    let used = (import.bindings.iter()).filter(|binding| names.contains(binding.local.as_str()));
    let statements: Vec<String> = used.map(Binding::statement).collect();
    match joined_imports(&statements).as_slice() {
        [] => excerpt,
        lines => Excerpt {
            source: lines.join("\n"),
            ..excerpt
        },
    }
}

/// Returns the excerpt, extended to the beginning of its first line.
fn excerpt(path: &str, text: &str, span: Range<usize>) -> Excerpt {
    let source = text.get(line_start(text, span.start)..span.end);
    Excerpt {
        path: path.to_owned(),
        line: line_of(text, span.start),
        source: source.unwrap_or_default().trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests;
