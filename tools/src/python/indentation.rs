//! Indentation as text: a tab is not so many blanks, and Python refuses a block that mixes them.

/// What a line has in front.
pub fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// What a block of this text is indented by further than the line above it; `None` where nothing is indented.
pub fn step(text: &str) -> Option<String> {
    let (mut tabs, mut blanks) = (0, 0);
    // The least, since lines may be continued below a colon.
    let mut found: Option<&str> = None;
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
            && found.is_none_or(|found| more.len() < found.len())
        {
            found = Some(more);
        }
        opener = line.trim_end().ends_with(':').then_some(white);
    }
    match tabs > blanks {
        true => Some("\t".to_owned()),
        false if blanks == 0 => None,
        false => Some(found.unwrap_or("    ").to_owned()),
    }
}

fn is_blanks(white: &str) -> bool {
    white.chars().all(|c| c == ' ')
}

/// A text's steps of indentation where it goes into one that has others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    from: String,
    to: String,
}

impl Steps {
    /// `None` where both are of blanks, or of tabs, or nothing is indented.
    pub fn between(from: &str, to: &str) -> Option<Steps> {
        let is_same = from.starts_with('\t') == to.starts_with('\t');
        (!is_same && !from.is_empty() && !to.is_empty()).then(|| Steps {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }

    /// White space as it is there: as many steps, and what is left over of them.
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
    fn steps_are_those_of_most_lines() {
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
    fn steps_of_another_kind_are_translated() {
        assert_eq!(Steps::between("    ", "  "), None);
        assert_eq!(Steps::between("", "\t"), None);
        let steps = Steps::between("  ", "\t").unwrap();
        assert_eq!(steps.translated("     "), "\t\t ");
        let back = Steps::between("\t", "    ").unwrap();
        assert_eq!(back.translated("\t\t"), "        ");
    }
}
