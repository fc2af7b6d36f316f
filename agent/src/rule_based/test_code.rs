//! Writes a candidate as a test function.

use std::ops::Range;

use testwright_tools::python::edit::reindented;

use super::candidates::Candidate;
use super::extract::has_long_string;
use super::test_body::{CAPTURED, TestBody, words};
use super::test_style::TestStyle;

/// A test function, and the imports that it needs at the top of its file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TestCode {
    pub code: String,
    pub imports: Vec<String>,
}

/// Writes the function. Imports that bind one of the names in `inside` go into it.
pub(super) fn write(
    candidate: &Candidate,
    name: &str,
    style: &TestStyle,
    inside: &[String],
) -> TestCode {
    if let Some(function) = &candidate.function {
        return TestCode {
            code: format!("{function}\n"),
            imports: candidate.body.imports.clone(),
        };
    }
    let verbatim = candidate.body.lines.join("\n");
    let isolated = Isolated::new(&candidate.body, style);
    let has_capture = candidate.body.captured.is_some() && !style.is_unittest;
    let arguments: Vec<&str> = [
        style.in_class.then_some("self"),
        has_capture.then_some("capsys"),
        isolated.has_fixture.then_some("monkeypatch"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let function = |lines: &[String]| {
        let body = reindented(&spaced(lines).join("\n"), &style.indent);
        let head = format!("def {name}({}):", arguments.join(", "));
        style.format(&format!("{}{head}\n{body}\n", isolated.decorator))
    };
    let code = function(&isolated.lines);
    let imports = used_imports(&isolated.imports, &verbatim, &code);
    let clashes = |line: &String| words(line).iter().any(|word| inside.contains(word));
    let (within, above): (Vec<String>, Vec<String>) = imports.into_iter().partition(clashes);
    TestCode {
        code: match within.is_empty() {
            true => code,
            false => function(&[within, isolated.lines.clone()].concat()),
        },
        imports: above,
    }
}

/// A body whose changes of the process end with the test.
struct Isolated {
    lines: Vec<String>,
    imports: Vec<String>,
    decorator: &'static str,
    /// Whether it uses the fixture `monkeypatch`.
    has_fixture: bool,
}

impl Isolated {
    fn new(body: &TestBody, style: &TestStyle) -> Self {
        let mut isolated = Isolated {
            lines: body.lines.clone(),
            imports: body.imports.clone(),
            decorator: "",
            has_fixture: false,
        };
        // No captured line changes the process, so the changes keep their lines.
        if let Some(captured) = body.captured.clone().filter(|_| style.is_unittest) {
            isolated.redirect_output(captured);
        }
        for change in body.changes.iter().rev() {
            let has_leak = |part: &str| change.leaks.iter().any(|leak| leak == part);
            if !style.is_unittest && !change.patched.is_empty() {
                isolated.has_fixture = true;
                let patched = change.patched.iter().cloned();
                isolated.lines.splice(change.lines.clone(), patched);
                continue;
            }
            let attribute = change.patched.first();
            let attribute = attribute.and_then(|line| line.strip_prefix("monkeypatch.setattr("));
            if let Some(arguments) = attribute {
                let arguments = arguments.replace(", raising=False)", ", create=True)");
                let start = format!("mock.patch.object({arguments}.start()");
                let stop = "self.addCleanup(mock.patch.stopall)".to_owned();
                isolated.lines.splice(change.lines.clone(), [start, stop]);
                isolated.import("from unittest import mock");
                continue;
            }
            if has_leak("environ") && isolated.decorator.is_empty() {
                isolated.decorator = "@mock.patch.dict(os.environ)\n";
                isolated.import("from unittest import mock");
                isolated.import("import os");
            }
            if has_leak("folder") {
                let restore = match style.is_unittest {
                    true => "self.addCleanup(os.chdir, os.getcwd())",
                    false => "monkeypatch.chdir(os.getcwd())",
                };
                isolated.has_fixture |= !style.is_unittest;
                isolated
                    .lines
                    .insert(change.lines.start, restore.to_owned());
                isolated.import("import os");
            }
        }
        isolated
    }

    /// Captures the output of lines without pytest.
    fn redirect_output(&mut self, captured: Range<usize>) {
        for line in &mut self.lines[captured.end..] {
            *line = line.replace(CAPTURED, "stdout.getvalue()");
        }
        let inner = reindented(&self.lines[captured.clone()].join("\n"), "    ");
        let with = "with contextlib.redirect_stdout(io.StringIO()) as stdout:";
        let lines = std::iter::once(with).chain(inner.lines());
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        self.lines.splice(captured, lines);
        self.import("import contextlib");
        self.import("import io");
    }

    fn import(&mut self, line: &str) {
        if !self.imports.iter().any(|import| import == line) {
            self.imports.push(line.to_owned());
        }
    }
}

/// Leaves out the names that only the `verbatim` lines used.
fn used_imports(imports: &[String], verbatim: &str, code: &str) -> Vec<String> {
    let (before, after) = (words(verbatim), words(code));
    let is_used = |name: &&str| {
        let local = name.rsplit(" as ").next().unwrap_or(name);
        let local = local.split('.').next().unwrap_or(local).to_owned();
        after.contains(&local) || !before.contains(&local)
    };
    let mut used = Vec::new();
    for line in imports {
        let at = line.find("import ").map_or(0, |at| at + "import ".len());
        let (head, names) = line.split_at(at);
        let names: Vec<&str> = names.split(',').map(str::trim).filter(is_used).collect();
        if !names.is_empty() {
            used.push(format!("{head}{}", names.join(", ")));
        }
    }
    used
}

/// Puts blank lines around functions and classes, as black does.
fn spaced(lines: &[String]) -> Vec<String> {
    // A line in a long string may look like a definition.
    if lines.iter().any(|line| has_long_string(line)) {
        return lines.to_vec();
    }
    let mut out: Vec<String> = Vec::new();
    let (mut in_definition, mut is_decorated) = (false, false);
    for line in lines {
        let starts = |word: &str| line.starts_with(word);
        let is_definition = ["def ", "class ", "async def ", "@"]
            .into_iter()
            .any(starts);
        let is_inside = line.is_empty() || starts(" ") || starts("\t") || starts(")");
        let is_apart = is_definition || in_definition && !is_inside;
        if is_apart
            && !is_decorated
            && out
                .last()
                .is_some_and(|l| !l.is_empty() && !l.starts_with('#'))
        {
            out.push(String::new());
        }
        in_definition = is_definition || in_definition && is_inside;
        is_decorated = starts("@") || is_decorated && is_inside;
        out.push(line.clone());
    }
    out
}

#[cfg(test)]
mod tests;
