//! Handles indentation as text. A tab has no fixed width in spaces, and Python refuses blocks that mix them.

/// Returns the leading white space of a line.
pub fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Returns one step of a text's indentation: the addition of a block to the line above it; `None` if nothing is
/// indented.
pub fn step(text: &str) -> Option<String> {
    let (mut tabs, mut blanks) = (0, 0);
    // Take the smallest addition, since lines may be continued below a colon.
    let mut smallest_step: Option<&str> = None;
    let mut opener = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let white = indentation(line);
        match white.chars().next() {
            Some('\t') => tabs += 1,
            Some(_) => blanks += 1,
            None => {}
        }
        let more = opener.and_then(|opener| white.strip_prefix(opener));
        if let Some(more) = more.filter(|more| more.starts_with(' ') && is_blanks(more))
            && smallest_step.is_none_or(|smallest| more.len() < smallest.len())
        {
            smallest_step = Some(more);
        }
        opener = line.trim_end().ends_with(':').then_some(white);
    }
    match tabs > blanks {
        true => Some("\t".to_owned()),
        false if blanks == 0 => None,
        false => Some(smallest_step.unwrap_or("    ").to_owned()),
    }
}

fn is_blanks(white: &str) -> bool {
    white.chars().all(|c| c == ' ')
}

/// The indentation steps of a text, and of the text that it is inserted into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    from: String,
    to: String,
}

impl Steps {
    /// Returns `None` if both use spaces, or both use tabs, or nothing is indented.
    pub fn between(from: &str, to: &str) -> Option<Steps> {
        let is_same = from.starts_with('\t') == to.starts_with('\t');
        (!is_same && !from.is_empty() && !to.is_empty()).then(|| Steps {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }

    /// Converts white space step by step, and keeps the remainder.
    pub fn translated(&self, white: &str) -> String {
        let mut out = String::new();
        let mut rest = white;
        while let Some(more) = rest.strip_prefix(self.from.as_str()) {
            out.push_str(&self.to);
            rest = more;
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn step_is_the_common_indentation() {
        assert_eq!(step("a\nb\n"), None);
        assert_eq!(step("if a:\n  b\n"), Some("  ".to_owned()));
        assert_eq!(
            step("'''\n b\n'''\nif a:\n    b\n"),
            Some("    ".to_owned())
        );
        assert_eq!(
            step("f({a:\n        b})\nif a:\n  b\n"),
            Some("  ".to_owned())
        );
        assert_eq!(step("if a:\n\tb\n\tc\n    d\n"), Some("\t".to_owned()));
    }

    #[test]
    fn spaces_and_tabs_are_converted() {
        assert_eq!(Steps::between("    ", "  "), None);
        assert_eq!(Steps::between("", "\t"), None);
        let steps = Steps::between("  ", "\t").unwrap();
        assert_eq!(steps.translated("     "), "\t\t ");
        let back = Steps::between("\t", "    ").unwrap();
        assert_eq!(back.translated("\t\t"), "        ");
    }
}
