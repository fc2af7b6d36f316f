//! Lines of a reply, indented as the file has the lines around them: carried over as text, since blanks are no tabs.

use testwright_tools::python::indentation::{Steps, indentation, step};

/// How lines that a reply shares with the file are indented in both.
#[derive(Debug, Default)]
pub struct Reindent {
    shared: Vec<SharedLine>,
    /// Where the reply has blanks and the file tabs, or the other way round.
    steps: Option<Steps>,
}

#[derive(Debug)]
struct SharedLine {
    /// Its number among the reply's lines.
    at: usize,
    reply: String,
    file: String,
}

impl Reindent {
    /// For lines of a reply that go into this file.
    pub fn of<'r>(reply: impl Iterator<Item = &'r str>, file: &str) -> Reindent {
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

    /// Line `at` of the reply is this one of the file.
    pub fn share(&mut self, at: usize, reply: &str, file: &str) {
        if reply.trim().is_empty() {
            return;
        }
        let (reply, file) = (indentation(reply).to_owned(), indentation(file).to_owned());
        self.shared.push(SharedLine { at, reply, file });
    }

    /// Line `at` of the reply, which the file does not have.
    pub fn indented(&self, at: usize, line: &str) -> String {
        if line.trim().is_empty() {
            return String::new();
        }
        let white = indentation(line);
        format!("{}{}", self.there(at, white), &line[white.len()..])
    }

    /// Taken from the nearest line that is indented so; else from one around it, with what it has further; else from one
    /// that is indented further.
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

    /// Are lines indented in another way than the reply has them?
    pub fn is_needed(&self) -> bool {
        self.shared.iter().any(|shared| shared.reply != shared.file)
    }

    /// Blanks for tabs, or tabs for blanks.
    pub fn translates(&self) -> bool {
        self.steps.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_indented_as_those_around_them() {
        let mut reindent = Reindent::of(std::iter::empty(), "");
        reindent.share(0, "def f():", "    def f():");
        reindent.share(1, "    a", "      a");
        for (line, wanted) in [
            ("def g():", "    def g():"),
            ("    b", "      b"),
            ("        c", "          c"),
            ("  d", "      d"),
            ("   ", ""),
        ] {
            assert_eq!(reindent.indented(2, line), wanted, "{line}");
        }
        let mut further = Reindent::of(std::iter::empty(), "");
        further.share(0, "        a", "    a");
        assert_eq!(further.indented(1, "    b"), "b");
        assert_eq!(further.indented(1, "b"), "b");
    }

    #[test]
    fn blanks_become_tabs_where_the_reply_has_none() {
        let file = "class A:\n\tdef f(self):\n\t\treturn 1\n";
        let reindent = |reply: &str| {
            let mut reindent = Reindent::of(reply.lines(), file);
            reindent.share(0, "class A:", "class A:");
            reindent.indented(1, reply)
        };
        assert_eq!(reindent("        x"), "\t\tx");
        // A line of a string, between lines with tabs.
        let reply = ["\tx = '''", "    y", "\t'''"];
        let reindent = Reindent::of(reply.into_iter(), file);
        assert_eq!(reindent.indented(1, reply[1]), reply[1]);
        assert!(!reindent.translates());
    }
}
