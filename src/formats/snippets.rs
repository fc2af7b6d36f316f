//! The patches of AutoCodeRover (arXiv 2404.05427, §3.3): pieces of files as they are, and as they should be.
//!
//! ```text
//! # modification 1
//! <file>path/to/test_file.py</file>
//! <original>
//! def test_last():
//!     assert f(1) == 1
//! </original>
//! <patched>
//! def test_last():
//!     assert f(1) == 1
//!
//! def test_it():
//!     assert f(1) == 2
//! </patched>
//! ```

use super::{FormatError, OldFiles, ProposedFiles, paths, with_line_feeds};

/// What the pieces make of the old files. The error is of the first that cannot be carried out.
pub fn read(reply: &str, old: &dyn OldFiles) -> Result<ProposedFiles, FormatError> {
    let mut proposed = ProposedFiles::default();
    let text = with_line_feeds(reply);
    let mut rest = text.as_str();
    let mut found = false;
    while let Some((path, after)) = element(rest, "file") {
        let next = after.find("<file>").unwrap_or(after.len());
        let inside = &after[..next];
        let original = element(inside, "original").map(|(text, _)| text);
        let Some((patched, _)) = element(inside, "patched") else {
            return Err(FormatError::new(format!(
                "the modification of `{}` has no <patched>",
                path.trim()
            )));
        };
        apply(
            path,
            original.unwrap_or_default(),
            patched,
            old,
            &mut proposed,
        )?;
        found = true;
        rest = &after[next..];
    }
    match found {
        true => Ok(proposed),
        false => Err(FormatError::new("the reply holds no <file>")),
    }
}

/// What stands in the first element of this name, and what comes behind it.
fn element<'t>(text: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let (_, inside) = text.split_once(&format!("<{name}>"))?;
    Some(
        inside
            .split_once(&format!("</{name}>"))
            .unwrap_or((inside, "")),
    )
}

/// Without fences and without the line ends next to the tags.
fn lines(text: &str) -> Vec<&str> {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let mut lines: Vec<&str> = text.lines().collect();
    let is_odd = |line: Option<&&str>| line.is_some_and(|l| l.trim().is_empty() || is_fence(l));
    while is_odd(lines.first()) {
        lines.remove(0);
    }
    while is_odd(lines.last()) {
        lines.pop();
    }
    lines
}

fn apply(
    path: &str,
    original: &str,
    patched: &str,
    old: &dyn OldFiles,
    proposed: &mut ProposedFiles,
) -> Result<(), FormatError> {
    let mut path = paths::clean(path, old)?;
    let (original, patched) = (lines(original), lines(patched));
    if patched.is_empty() {
        return Err(FormatError::new(format!(
            "the <patched> of `{path}` is empty"
        )));
    }
    if proposed.text(&path, old).is_none()
        && !original.is_empty()
        && let Some(meant) = paths::meant(&path, old)
    {
        proposed.repaired(format!("`{path}` is `{meant}`"));
        path = meant;
    }
    let before = with_line_feeds(&proposed.text(&path, old).unwrap_or_default());
    let before: Vec<&str> = before.lines().collect();
    let after = if original.is_empty() {
        // Nothing is named that it should replace: a new file, or more at the end of one.
        let gap = if before.is_empty() {
            &[][..]
        } else {
            &["", ""]
        };
        [&before, gap, &patched]
            .concat()
            .iter()
            .map(|l| (*l).to_owned())
            .collect()
    } else {
        let Some((at, shift)) = position(&before, &original) else {
            return Err(FormatError::new(format!(
                "the <original> is not in `{path}`: {}",
                original.first().copied().unwrap_or_default().trim()
            )));
        };
        if shift != 0 {
            proposed.repaired("an <original> is indented otherwise than the file");
        }
        let moved = patched.iter().map(|line| indented(line, shift));
        let head = before[..at].iter().map(|line| (*line).to_owned());
        let tail = before[at + original.len()..]
            .iter()
            .map(|line| (*line).to_owned());
        head.chain(moved).chain(tail).collect::<Vec<String>>()
    };
    proposed
        .files
        .insert(path, Some(format!("{}\n", after.join("\n"))));
    Ok(())
}

/// Where these lines stand, and by how many columns they are further to the right there.
fn position(before: &[&str], wanted: &[&str]) -> Option<(usize, isize)> {
    let columns = |line: &str| (line.len() - line.trim_start().len()) as isize;
    let starts = 0..(before.len() + 1).saturating_sub(wanted.len());
    let exact =
        |at: &usize| (0..wanted.len()).all(|n| before[at + n].trim_end() == wanted[n].trim_end());
    if let Some(at) = starts.clone().find(exact) {
        return Some((at, 0));
    }
    let shifted = |at: usize| {
        let shift = columns(before[at]) - columns(wanted[0]);
        let fits = (0..wanted.len()).all(|n| {
            let (here, there) = (before[at + n], wanted[n]);
            let same = here.trim() == there.trim();
            same && (here.trim().is_empty() || columns(here) - columns(there) == shift)
        });
        fits.then_some((at, shift))
    };
    starts.into_iter().find_map(shifted)
}

fn indented(line: &str, shift: isize) -> String {
    if line.trim().is_empty() {
        return String::new();
    }
    match usize::try_from(shift) {
        Ok(more) => format!("{}{line}", " ".repeat(more)),
        Err(_) => {
            let white = line.len() - line.trim_start().len();
            line[shift.unsigned_abs().min(white)..].to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use super::*;

    fn old() -> BTreeMap<String, String> {
        let text = "import x\n\n\nclass TestX:\n    def test_a(self):\n        assert x.a() == 1\n";
        BTreeMap::from([("tests/test_x.py".to_owned(), text.to_owned())])
    }

    fn file(reply: &str, path: &str) -> String {
        read(reply, &old()).unwrap().files[path].clone().unwrap()
    }

    #[test]
    fn pieces_are_replaced_wherever_they_stand() {
        let reply = "Here:\n```\n# modification 1\n<file>./tests/test_x.py</file>\n<original>        assert x.a() == 1</original>\n\
                     <patched>        assert x.a() == 1\n\n    def test_b(self):\n        assert x.b() == 2</patched>\n```\n";
        assert!(
            file(reply, "tests/test_x.py")
                .ends_with("== 1\n\n    def test_b(self):\n        assert x.b() == 2\n")
        );
        // Indented otherwise, in a file that is named by its end.
        let reply = "<file>test_x.py</file>\n<original>\ndef test_a(self):\n    assert x.a() == 1\n</original>\n\
                     <patched>\ndef test_a(self):\n    assert x.a() == 2\n</patched>";
        let proposed = read(reply, &old()).unwrap();
        assert!(
            proposed.files["tests/test_x.py"]
                .as_deref()
                .unwrap()
                .ends_with("    def test_a(self):\n        assert x.a() == 2\n")
        );
        assert_eq!(proposed.repairs.len(), 2);
    }

    #[test]
    fn without_an_original_it_is_new() {
        let new = "<file>tests/test_y.py</file><original></original><patched>\ndef test_y():\n    pass\n</patched>";
        assert_eq!(file(new, "tests/test_y.py"), "def test_y():\n    pass\n");
        let more = "<file>tests/test_x.py</file>\n<patched>\ndef test_y():\n    pass\n</patched>";
        assert!(file(more, "tests/test_x.py").ends_with("== 1\n\n\ndef test_y():\n    pass\n"));
    }

    #[test]
    fn what_cannot_be_carried_out_says_why() {
        let error = |reply: &str| read(reply, &old()).unwrap_err().0;
        assert_eq!(error("No."), "the reply holds no <file>");
        assert!(error("<file>tests/test_x.py</file>").contains("no <patched>"));
        let absent =
            "<file>tests/test_x.py</file><original>y = 1</original><patched>y = 2</patched>";
        assert_eq!(
            error(absent),
            "the <original> is not in `tests/test_x.py`: y = 1"
        );
        assert!(
            error("<file>../x</file><patched>1</patched>").contains("no path of the repository")
        );
    }
}
