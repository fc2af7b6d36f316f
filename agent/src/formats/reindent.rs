//! Reindents lines of a reply like the lines around them in the file. It works on text, since spaces and tabs
//! differ.

use testwright_tools::python::indentation::{Steps, indentation, step};

/// The indentation in reply and file of the lines that both share.
#[derive(Debug, Default)]
pub(super) struct Reindent {
    shared: Vec<SharedLine>,
    /// Conversion between spaces in the reply and tabs in the file, or the reverse.
    steps: Option<Steps>,
}

#[derive(Debug)]
struct SharedLine {
    /// Line number in the reply.
    at: usize,
    reply: String,
    file: String,
}

impl Reindent {
    /// Creates it for lines of a reply that go into this file.
    pub(super) fn from_reply<'r>(reply: impl Iterator<Item = &'r str>, file: &str) -> Reindent {
        let lines: Vec<&str> = reply.collect();
        let all: String = lines.iter().map(|line| indentation(line)).collect();
        let steps = step(file).and_then(|there| {
            let is_other = match there.starts_with('\t') {
                true => !all.contains('\t'),
                false => !all.contains(' '),
            };
            let own = step(&lines.join("\n")).filter(|_| is_other)?;
            Steps::between(&own, &there)
        });
        Reindent {
            shared: Vec::new(),
            steps,
        }
    }

    /// Records that line `at` of the reply is this line of the file.
    pub(super) fn share(&mut self, at: usize, reply: &str, file: &str) {
        if reply.trim().is_empty() {
            return;
        }
        let (reply, file) = (indentation(reply).to_owned(), indentation(file).to_owned());
        self.shared.push(SharedLine { at, reply, file });
    }

    /// Indents line `at` of the reply, which the file does not have.
    pub(super) fn indented(&self, at: usize, line: &str) -> String {
        if line.trim().is_empty() {
            return String::new();
        }
        let white = indentation(line);
        format!("{}{}", self.there(at, white), &line[white.len()..])
    }

    /// Returns the indentation of the nearest shared line with this one. Otherwise extends that of an
    /// enclosing line, or takes that of a deeper line.
    fn there(&self, at: usize, white: &str) -> String {
        let nearest = |shared: &&SharedLine| (shared.at.abs_diff(at), shared.at > at);
        let same = self.shared.iter().filter(|shared| shared.reply == white);
        if let Some(same) = same.min_by_key(nearest) {
            return same.file.clone();
        }
        let outer = self.shared.iter();
        let outer = outer.filter(|shared| white.starts_with(&shared.reply));
        let closest = |shared: &&SharedLine| (white.len() - shared.reply.len(), nearest(shared));
        if let Some(outer) = outer.min_by_key(closest) {
            let further = self.translated(&white[outer.reply.len()..]);
            return format!("{}{further}", outer.file);
        }
        let inner = self.shared.iter();
        let inner = inner.filter(|shared| shared.reply.starts_with(white));
        let closest = |shared: &&SharedLine| (shared.reply.len(), nearest(shared));
        if let Some(inner) = inner.min_by_key(closest) {
            let less = &inner.reply[white.len()..];
            let file = inner.file.strip_suffix(less);
            let file = file.or_else(|| inner.file.strip_suffix(&self.translated(less)));
            return file.unwrap_or_default().to_owned();
        }
        self.translated(white)
    }

    fn translated(&self, white: &str) -> String {
        match &self.steps {
            Some(steps) => steps.translated(white),
            None => white.to_owned(),
        }
    }

    /// Returns whether the file's lines are indented differently from the reply's.
    pub(super) fn is_needed(&self) -> bool {
        self.shared.iter().any(|shared| shared.reply != shared.file)
    }

    /// Returns whether spaces are replaced by tabs, or tabs by spaces.
    pub(super) fn translates(&self) -> bool {
        self.steps.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_indented_like_neighbours() {
        let mut reindent = Reindent::from_reply(std::iter::empty(), "");
        reindent.share(0, "def f():", "    def f():");
        reindent.share(1, "    a", "      a");
        for (line, expected_line) in [
            ("def g():", "    def g():"),
            ("    b", "      b"),
            ("        c", "          c"),
            ("  d", "      d"),
            ("   ", ""),
        ] {
            assert_eq!(reindent.indented(2, line), expected_line, "{line}");
        }
        let mut further = Reindent::from_reply(std::iter::empty(), "");
        further.share(0, "        a", "    a");
        assert_eq!(further.indented(1, "    b"), "b");
        assert_eq!(further.indented(1, "b"), "b");
    }

    #[test]
    fn spaces_become_tabs() {
        let file = "class A:\n\tdef f(self):\n\t\treturn 1\n";
        let reindent = |reply: &str| {
            let mut reindent = Reindent::from_reply(reply.lines(), file);
            reindent.share(0, "class A:", "class A:");
            reindent.indented(1, reply)
        };
        assert_eq!(reindent("        x"), "\t\tx");
        // A line of a string, between lines with tabs.
        let reply = ["\tx = '''", "    y", "\t'''"];
        let reindent = Reindent::from_reply(reply.into_iter(), file);
        assert_eq!(reindent.indented(1, reply[1]), reply[1]);
        assert!(!reindent.translates());
    }
}
