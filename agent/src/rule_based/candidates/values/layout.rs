//! Comparisons of texts that an issue shows in a block, where white space may be lost.

use super::quoted;
use crate::rule_based::probe::Check;

/// The strictest comparison under which the actual text of the issue equals today's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// All white space counts.
    Exact,
    /// White space at the start and at the end does not count. A block does not show a final newline.
    Ends,
    /// Trailing spaces and a common indentation do not count either.
    Lines,
    /// Counts only line breaks inside the text.
    LineBreaks,
}

impl Layout {
    /// Returns the comparison to use for an expected text. `today` is the check of the actual text in the issue,
    /// and `check` that of the expected one. Returns `None` if the actual text does not equal today's under any
    /// of them, because then the expected text would not either after a fix.
    pub(super) fn trusted(today: Option<&Check>, check: &Check) -> Option<Layout> {
        match today {
            Some(today) if today.exact => Some(Layout::Exact),
            // The issue shows the actual text as a literal, or not at all.
            Some(Check { same: None, .. }) | None => Some(match check.padded {
                true => Layout::Ends,
                false => Layout::Exact,
            }),
            Some(today) if today.ends => Some(Layout::Ends),
            Some(today) if today.lines => Some(Layout::Lines),
            Some(today) if today.spaces => Some(Layout::LineBreaks),
            Some(_) => None,
        }
    }

    /// Returns lines that assert that the text of the expression `text` equals `right`.
    pub(super) fn equality(
        self,
        text: &str,
        right: &str,
        imports: &mut Vec<String>,
    ) -> Vec<String> {
        let trimmed = right.trim();
        match self {
            Layout::Exact => vec![format!("assert {text} == {}", quoted(right))],
            Layout::Ends => vec![format!("assert {text}.strip() == {}", quoted(trimmed))],
            Layout::Lines => vec![
                shown_lines(text, imports),
                format!("assert shown == {}", list_of_lines(right)),
            ],
            Layout::LineBreaks => {
                let right = quoted(trimmed.replace(' ', "").trim());
                vec![format!("assert {text}.replace(' ', '').strip() == {right}")]
            }
        }
    }
}

/// Returns the line that binds `shown` to the lines of a text, without trailing spaces and common indentation.
pub(super) fn shown_lines(text: &str, imports: &mut Vec<String>) -> String {
    imports.push("import textwrap".to_owned());
    format!("shown = [line.rstrip() for line in textwrap.dedent({text}).strip('\\n').split('\\n')]")
}

/// Returns a Python list of the lines of a text, without trailing spaces and common indentation.
pub(super) fn list_of_lines(text: &str) -> String {
    let lines = text.trim_matches('\n').lines().map(str::trim_end);
    let indents = lines.clone().filter(|l| !l.is_empty());
    let indent = indents.map(|l| l.len() - l.trim_start().len()).min();
    let rows: Vec<String> = lines
        .map(|l| quoted(l.get(indent.unwrap_or_default()..).unwrap_or_default()))
        .collect();
    format!("[{}]", rows.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_lines_has_no_common_indentation() {
        assert_eq!(list_of_lines("  a \n\n    b\n"), "['a', '', '  b']");
        assert_eq!(list_of_lines(""), "[]");
    }
}
